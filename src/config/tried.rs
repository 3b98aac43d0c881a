//! A value that is not set yet, judged. Pure but for what a setting's own check
//! looks at.

use super::{Config, Problems, SettingProblem, Sources};

/// Whether nod could run with this value of a setting.
pub(crate) fn accepts(name: &str, value: &str) -> bool {
    let (_, problems) = Config::read(&Sources::only(name, value));
    !problems.name(name)
}

/// nod's own file as it would read with this value, beside what else stands
/// there; or what is wrong with the value. What overrules the file is left out.
pub(crate) fn tried(sources: &Sources, name: &str, value: &str) -> Result<Config, SettingProblem> {
    let (config, Problems(all)) = Config::read(&sources.own_with(name, value));
    let is_it = |one: &SettingProblem| matches!(one, SettingProblem::Wrong { name: wrong, .. } if *wrong == name);
    all.into_iter().find(is_it).map_or(Ok(config), Err)
}

impl SettingProblem {
    /// The setting it is about.
    pub(crate) const fn setting(&self) -> Option<&'static str> {
        match self {
            Self::Wrong { name, .. } | Self::Missing { name, .. } => Some(name),
            Self::BrokenFile(_)
            | Self::Exposed(_)
            | Self::Pass { .. }
            | Self::ExposedPass(_)
            | Self::SecretBesidePass(_)
            | Self::NoHome => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_judged_beside_what_else_stands_in_nods_own_file() {
        let dir = tempfile::tempdir().unwrap();
        let with = |own: &str, name: &str, value: &str| {
            let mut sources = Sources::of(&[("NOD_ALLOW_BYPASS", "true"), (name, "of the shell")]);
            sources.home = Some(dir.path().to_owned());
            let file = sources.own_file().unwrap();
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, own).unwrap();
            sources.add_file(&file);
            tried(&sources, name, value).is_ok()
        };
        let name = "TOOL_APPROVAL_ENABLED";
        assert!(with("NOD_ALLOW_BYPASS=true\n", name, "false"));
        assert!(
            !with("", name, "false"),
            "the shell's word is not the file's"
        );
        assert!(with("", name, "true"));
        assert!(with("NOD_LANG=fr\n", "NOD_LANG", "en"));
        assert!(!with("NOD_LANG=en\n", "NOD_LANG", "fr"));
        assert!(
            with("NOD_LANG=en\n", "NOD_LANG", ""),
            "nothing is a default"
        );
    }
}
