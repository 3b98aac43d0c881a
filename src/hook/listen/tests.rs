//! Where a socket may lie, who may reach it, and who may take it away.

use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tempfile::TempDir;

fn private_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("nod")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o777
}

#[tokio::test]
async fn the_directory_is_made_and_both_are_closed_to_others() {
    let dir = private_dir();
    let path = dir.path().join("run/nod.sock");
    let listening = listen(&path, true).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    drop(listening);
    assert!(!path.exists());
}

#[tokio::test]
async fn unsafe_places_are_refused_by_name() {
    let dir = private_dir();
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let linked = dir.path().join("linked");
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::set_permissions(&inside, Permissions::from_mode(0o700)).unwrap();
    symlink(&inside, &linked).unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let link = dir.path().join("link.sock");
    symlink(&file, &link).unwrap();
    for path in [
        open.join("nod.sock"),
        linked.join("nod.sock"),
        file.clone(),
        link,
        "relative.sock".into(),
    ] {
        let refused = listen(&path, true);
        assert!(
            matches!(refused, Err(ListenError::UnsafePlace { .. })),
            "{path:?}: {refused:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let shared = dir.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(
        listen(&shared.join("nod.sock"), false),
        Err(ListenError::UnsafePlace { .. })
    ));
}

#[tokio::test]
async fn a_sticky_directory_will_do_for_a_chosen_path() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    let path = dir.path().join("chosen.sock");
    let listening = listen(&path, false).unwrap();
    assert_eq!(mode(&path), 0o600);
    connect::dial(&path).unwrap();
    drop(listening);
    let mut left: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["chosen.sock.lock"]);
}

#[tokio::test]
async fn a_path_that_is_too_long_says_so() {
    let dir = private_dir();
    let path = dir.path().join("x".repeat(120));
    let error = listen(&path, true).unwrap_err();
    assert!(matches!(&error, ListenError::PathTooLong { length, .. } if *length > 120));
    assert!(error.to_string().contains(&MAX_PATH.to_string()));
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    drop(StdListener::bind(&path).unwrap());
    assert!(path.exists(), "a stale socket is left behind");
    let first = listen(&path, true).unwrap();
    match listen(&path, true) {
        Err(ListenError::AlreadyRunning { pid }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    connect::dial(&path).unwrap();
    drop(first);

    let foreign_kind = StdListener::bind(&path).unwrap();
    assert!(
        matches!(
            listen(&path, true),
            Err(ListenError::AlreadyRunning { pid: None })
        ),
        "a server without our lock is alive all the same"
    );
    drop(foreign_kind);
}

#[tokio::test]
async fn a_displaced_daemon_leaves_its_successors_socket() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let old = listen(&path, true).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(dir.path().join("nod.sock.lock")).unwrap();
    let new = listen(&path, true).unwrap();
    drop(old);
    connect::dial(&path).unwrap();
    drop(new);
    assert!(!path.exists());
}

#[tokio::test]
async fn of_many_starting_at_once_exactly_one_listens() {
    let dir = private_dir();
    let path = dir.path().join("nod.sock");
    let handle = tokio::runtime::Handle::current();
    for _ in 0..50 {
        let barrier = std::sync::Barrier::new(4);
        let won: Vec<_> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let _runtime = handle.enter();
                        barrier.wait();
                        listen(&path, true).ok()
                    })
                })
                .collect();
            starts
                .into_iter()
                .filter_map(|start| start.join().unwrap())
                .collect()
        });
        assert_eq!(won.len(), 1);
        connect::dial(&path).unwrap();
    }
}

#[tokio::test]
async fn no_moment_shows_an_open_socket() {
    let dir = private_dir();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    let path = dir.path().join("nod.sock");
    let done = AtomicBool::new(false);
    let worst = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
                    if let Ok(found) = std::fs::symlink_metadata(entry.path())
                        && !found.is_symlink()
                    {
                        worst.fetch_or(found.mode() & 0o077, Ordering::Relaxed);
                    }
                }
            }
        });
        for _ in 0..200 {
            drop(listen(&path, false).unwrap());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(worst.into_inner(), 0);
}

#[tokio::test]
async fn a_lock_that_is_another_name_of_a_file_of_ours_is_not_written() {
    let dir = private_dir();
    let precious = dir.path().join("precious");
    let path = dir.path().join("old.sock");
    let lock = dir.path().join("old.sock.lock");
    for (what, make) in [
        (
            "a hard link",
            (|from, to| std::fs::hard_link(from, to)) as fn(&Path, &Path) -> _,
        ),
        ("a link", |from, to| symlink(from, to)),
        ("a long file", |_, to| std::fs::write(to, "0".repeat(40))),
        ("a directory", |_, to| std::fs::create_dir(to)),
        ("a fifo", |_, to| crate::files::make_fifo(to)),
    ] {
        std::fs::write(&precious, "1234").unwrap();
        make(&precious, &lock).unwrap();
        let refused = listen(&path, false);
        assert!(refused.is_err(), "{what}: {refused:?}");
        assert_eq!(
            std::fs::read_to_string(&precious).unwrap(),
            "1234",
            "{what}"
        );
        if lock.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir(&lock).unwrap();
        } else {
            std::fs::remove_file(&lock).unwrap();
        }
    }
    std::fs::write(&lock, "123\n").unwrap();
    let listening = listen(&path, false).unwrap();
    let text = std::fs::read_to_string(&lock).unwrap();
    assert_eq!(text.trim(), std::process::id().to_string());
    drop(listening);
}
