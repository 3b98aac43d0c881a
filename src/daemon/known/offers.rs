//! What may be offered for a request on this machine: the rules, once it is
//! known what the file is that the call names. Asked before the card is drawn,
//! and again at the tap.

use std::path::Path;

use crate::approvals::request::{Request, RequestKind};
use crate::daemon::known::machine;
use crate::rules::{self, Offer, PathKind};

pub(crate) async fn of(request: &Request) -> Offer {
    let offer = match &request.kind {
        RequestKind::Permission(offer) => offer,
        RequestKind::Question(_) => return Offer::NONE,
    };
    let Some(path) = rules::file_named(request) else {
        return (**offer).clone();
    };
    let project = request.origin.project.clone();
    let at = project.clone();
    // A file system that takes too long answers nothing, and then there is no rule.
    let found = machine::looked(&at, move || look(&path, &project)).await;
    rules::offer_here(request, found.unwrap_or_default())
}

/// Looks at the path without opening it. Links above the project are the
/// person's own; any other leads where the path does not say.
fn look(path: &Path, project: &Path) -> PathKind {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let meant = match path.strip_prefix(project) {
        Ok(below) => real(project).map(|project| project.join(below)),
        Err(_) => Some(path.to_owned()),
    };
    match std::fs::symlink_metadata(path) {
        Ok(is) if is.is_file() && meant.is_some() && real(path) == meant => PathKind::File,
        Ok(_) | Err(_) => PathKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_regular_file_by_its_own_path_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("shop");
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::write(project.join("src/a.rs"), "a").unwrap();
        std::fs::write(root.join("notes"), "n").unwrap();
        symlink(root.join("notes"), project.join("link")).unwrap();
        symlink(&root, project.join("up")).unwrap();
        symlink(&project, root.join("alias")).unwrap();
        for (path, found) in [
            (project.join("src/a.rs"), PathKind::File),
            (root.join("notes"), PathKind::File),
            (project.join("src"), PathKind::Other),
            (project.join("link"), PathKind::Other),
            (project.join("up/notes"), PathKind::Other),
            (project.join("new"), PathKind::Other),
            (project.clone(), PathKind::Other),
            (root.clone(), PathKind::Other),
            (root.join("alias/src/a.rs"), PathKind::Other),
            ("/dev/null".into(), PathKind::Other),
        ] {
            assert_eq!(look(&path, &project), found, "{}", path.display());
        }
        let alias = root.join("alias");
        assert_eq!(look(&alias.join("src/a.rs"), &alias), PathKind::File);
    }
}
