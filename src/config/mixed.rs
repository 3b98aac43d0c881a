//! Settings of two apps in one nod: a project's own `.env` may hold the same
//! names. Holds names and places only, never a value. Pure.

use std::path::{Path, PathBuf};

use super::{Origin, SETTINGS, SendMode, Sources};

/// What comes from more places than one person would choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mixed {
    /// Where the app's id and its secret stand, if apart and used.
    pub app: Option<(Origin, Origin)>,
    /// The working directory's file, and what in it wins over another value in
    /// nod's own.
    pub overridden: Option<(PathBuf, Vec<&'static str>)>,
}

pub fn mixed(sources: &Sources, mode: SendMode) -> Mixed {
    let place = |name| sources.get(name).map(|(_, origin)| origin.clone());
    let app = place("FEISHU_APP_ID").zip(place("FEISHU_APP_SECRET"));
    Mixed {
        app: app.filter(|(id, secret)| mode == SendMode::App && id != secret),
        overridden: overridden(sources),
    }
}

fn overridden(sources: &Sources) -> Option<(PathBuf, Vec<&'static str>)> {
    let own = Origin::File(sources.own_file()?);
    let mut file: Option<&Path> = None;
    let mut names = Vec::new();
    for name in SETTINGS.iter().map(|setting| setting.name) {
        let Some((value, Origin::File(path))) = sources.get(name) else {
            continue;
        };
        if sources
            .stands_in(name, &own)
            .is_some_and(|own| own != value)
        {
            file = Some(path);
            names.push(name);
        }
    }
    Some((file?.to_owned(), names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed_of(environment: &[(&str, &str)], here: &str, own: &str) -> Mixed {
        mixed_in(SendMode::App, environment, here, own)
    }

    fn mixed_in(mode: SendMode, environment: &[(&str, &str)], here: &str, own: &str) -> Mixed {
        let dir = tempfile::tempdir().unwrap();
        let mut sources = Sources::of(environment);
        sources.home = Some(dir.path().to_owned());
        let file = sources.own_file().unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, own).unwrap();
        std::fs::write(dir.path().join(".env"), here).unwrap();
        sources.add_foreign(&dir.path().join(".env"));
        sources.add_file(&file);
        mixed(&sources, mode)
    }

    #[test]
    fn an_app_in_two_places_and_a_value_over_another_are_seen() {
        let own = "FEISHU_APP_ID=a\nFEISHU_APP_SECRET=b\nNOD_LOG=info\n";
        let names = |mixed: &Mixed| mixed.overridden.clone().map(|(_, names)| names);
        let mixed = mixed_of(&[], "FEISHU_APP_ID=c\nNOD_LOG=info\n", own);
        assert!(mixed.app.is_some());
        assert_eq!(names(&mixed), Some(vec!["FEISHU_APP_ID"]));
        let mixed = mixed_of(&[("FEISHU_APP_ID", "c")], "NOD_LOG=warn\n", own);
        let unused = mixed_in(SendMode::Webhook, &[], "FEISHU_APP_ID=c\n", own);
        assert_eq!(unused.app, None);
        assert_eq!(names(&unused), Some(vec!["FEISHU_APP_ID"]));
        let (id, secret) = mixed.app.clone().unwrap();
        assert_eq!(id, Origin::Environment);
        assert!(matches!(secret, Origin::File(_)));
        assert_eq!(names(&mixed), Some(vec!["NOD_LOG"]));
    }

    #[test]
    fn one_place_for_all_of_it_is_nothing_to_tell() {
        let own = "FEISHU_APP_ID=a\nFEISHU_APP_SECRET=b\n";
        for here in [
            "",
            "FEISHU_APP_ID=a\nFEISHU_APP_SECRET=b\n",
            "FEISHU_CHAT_ID=c\n",
        ] {
            assert_eq!(mixed_of(&[], here, own), Mixed::default(), "{here}");
        }
        let all = [("FEISHU_APP_ID", "x"), ("FEISHU_APP_SECRET", "y")];
        assert_eq!(mixed_of(&all, "", own), Mixed::default());
    }
}
