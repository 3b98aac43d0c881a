//! What the set-up does for each agent that is installed.

use super::super::output;
use super::Setup;

impl Setup<'_> {
    /// Where there is another than Claude Code, whose steps tell of it anyway.
    pub(super) fn tell_agents(&self) {
        let environment = &self.config.sessions.environment;
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let found = |name: &str| {
            let dirs = path.map(|(_, dirs)| std::env::split_paths(dirs));
            let mut dirs = dirs.into_iter().flatten();
            dirs.any(|dir| dir.join(name).is_file())
        };
        let homes = &self.config.codex_homes;
        if found("codex") || homes.iter().any(|home| home.is_dir()) {
            output::say(self.words.for_claude(found("claude")));
            output::say(self.words.for_codex(homes.is_empty()));
        }
    }
}
