//! Credentials of two apps in one nod. Holds places only, never a value. Pure.

use super::{SendMode, SettingOrigin, Sources};

/// Where the app's id and its secret stand, if apart and used.
pub fn apart(sources: &Sources, mode: SendMode) -> Option<(SettingOrigin, SettingOrigin)> {
    let place = |name| sources.get(name).map(|(_, origin)| origin.clone());
    let (id, secret) = place("FEISHU_APP_ID").zip(place("FEISHU_APP_SECRET"))?;
    (mode == SendMode::App && id != secret).then_some((id, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_in_two_places_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "FEISHU_APP_ID=a\nFEISHU_APP_SECRET=b\n").unwrap();
        let apart_with = |environment: &[(&str, &str)], mode| {
            let mut sources = Sources::of(environment);
            sources.add_file(file.path());
            apart(&sources, mode)
        };
        let id = ("FEISHU_APP_ID", "c");
        let places = (
            SettingOrigin::Environment,
            SettingOrigin::File(file.path().to_owned()),
        );
        assert_eq!(apart_with(&[id], SendMode::App), Some(places));
        assert_eq!(apart_with(&[id], SendMode::Webhook), None);
        assert_eq!(apart_with(&[], SendMode::App), None);
        let both = [id, ("FEISHU_APP_SECRET", "d")];
        assert_eq!(apart_with(&both, SendMode::App), None);
    }
}
