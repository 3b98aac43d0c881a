//! Files that a tool reads or writes: which hold secrets, which of them decide what runs, and which changes
//! of a manifest do.

use super::Danger;
use super::places::{self, Use};
use crate::text::lists;

/// More of a change than this is not looked at line by line.
const MAX_CHANGE: usize = 1 << 20;

/// What is dangerous about reading this file.
pub fn read(path: &str) -> Option<Danger> {
    places::of(path, Use::Read)
}

/// What is dangerous about writing this text to this file, or about changing
/// it from one of the texts to another.
pub fn written(path: &str, texts: &[&str]) -> Option<Danger> {
    let place = places::of(path, Use::Write);
    if place.is_some() {
        return place;
    }
    let lower = path.to_lowercase();
    let name = lower.rsplit(['/', '\\']).next().unwrap_or_default();
    let touches = |found: fn(&str) -> bool| {
        texts
            .iter()
            .any(|text| text.len() > MAX_CHANGE || found(text))
    };
    let decides = match name {
        "package.json" | "deno.json" | "deno.jsonc" | "composer.json" => touches(scripts),
        "pyproject.toml" | "setup.cfg" => touches(python),
        "cargo.toml" => touches(cargo),
        _ => false,
    };
    decides.then_some(Danger::BuildFiles)
}

/// Keys of a manifest that are words about it and run nothing.
const ABOUT: &str = "\
    name version description license author homepage url type email keywords private main \
    module types typings sideeffects node npm repository bugs directory funding packagemanager \
    import require default browser unpkg jsdelivr engines files";

fn scripts(text: &str) -> bool {
    let lower = text.to_lowercase();
    let sections = "\
        \"scripts\" \"bin\" \"husky\" \"lint-staged\" \"simple-git-hooks\" \"gypfile\" \
        \"tasks\" \"overrides\" \"resolutions\" \"prettier\" \"eslintconfig\" \"jest\" \
        \"babel\" \"pre-commit\" \"githooks\"";
    if lists::within(sections, &lower) || text.contains("\\u") {
        return true;
    }
    lower.lines().any(|line| {
        // A diff's sign is none of the line's.
        let line = line.trim_start_matches(['+', '-', ' ', '\t']);
        let Some((key, value)) = line.trim().split_once(':') else {
            return false;
        };
        let key = key.trim().trim_matches('"');
        let value = value.trim().trim_end_matches(',').trim_matches('"');
        !lists::has(ABOUT, key) && !is_version(value)
    })
}

/// A version, a range, or the beginning of another section.
fn is_version(value: &str) -> bool {
    let plain = value.trim_start_matches(['^', '~', '>', '<', '=', ' ', 'v']);
    value.is_empty()
        || matches!(
            value,
            "{" | "[" | "{}" | "[]" | "*" | "latest" | "next" | "true" | "false"
        )
        || value.starts_with("workspace:")
        || (plain.starts_with(|c: char| c.is_ascii_digit())
            && !value.contains(['&', ';', '$', '/']))
}

fn python(text: &str) -> bool {
    let sections = "\
        build-backend backend-path [build-system [project.scripts [tool.poetry.scripts \
        entry-points entry_points build.hooks [tool.pdm.build [tool.poe [tool.taskipy addopts \
        [tool.hatch.envs [tool.pdm.scripts [tool.rye.scripts [tool.setuptools.cmdclass \
        cmdclass index-url [[tool.poetry.source [[tool.uv.index";
    lists::within(sections, &text.to_lowercase())
}

fn cargo(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.lines().any(|line| {
        let line = line.trim_start_matches(['+', '-', ' ', '\t']);
        line.starts_with("build =") || line.starts_with("build=") || line.starts_with("links")
    }) || lower.contains("[build-dependencies")
        || lower.contains("proc-macro = true")
        || lower.contains("git =")
}
