//! One allow rule more or less in a project's `.claude/settings.local.json`:
//! locked, atomic, and with everything else in the file kept as it stands.
//! Never follows a link out of the project, never touches a file it does not
//! fully understand. Blocking; a few milliseconds, most of them the disk's.

mod beneath;
mod root;
mod said;
mod text;

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use beneath::{open_beneath, rename_to_new_name};
use text::RuleEdit;

use super::json_text::Untouchable;

const DIR: &str = ".claude";
const FILE: &str = "settings.local.json";
/// Removed by whoever holds it last, so that it does not litter the project.
const LOCK: &str = "settings.local.json.nod-lock";
/// One name is enough: only the lock's holder writes it.
const TEMP: &str = "settings.local.json.nod-new";

const SIZE_MAX: u64 = 1024 * 1024;
const RULE_MAX: usize = 4096;
/// How often to start again when somebody else writes between our reading and
/// our writing.
const TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Two seconds: a click is waiting for its toast.
const LOCK_TRIES: u32 = 200;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The user has to mend the file; it was not touched.
    #[error("`{}` {why}", file.display())]
    Untouchable { file: PathBuf, why: Untouchable },
    /// The place could lead somewhere else; it was not touched.
    #[error("`{}` is not safe to write: {problem}", path.display())]
    Unsafe {
        path: PathBuf,
        problem: &'static str,
    },
    /// The rule must never stand in a settings file.
    #[error("the rule can't be written: {0}")]
    BadRule(&'static str),
    /// Another time may do.
    #[error("`{}` is being written by somebody else", file.display())]
    Busy { file: PathBuf },
    #[error("`{}` could not be {doing}: {source}", path.display())]
    Io {
        path: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
}

/// The file that a rule for this project goes to.
pub fn rules_file(project_dir: &Path) -> Result<PathBuf, SettingsError> {
    Ok(project_root(project_dir)?.join(DIR).join(FILE))
}

/// The directory that holds this project's rules, where it is another one: the
/// repository around it, or the main checkout of its worktree.
pub fn rules_elsewhere(project_dir: &Path) -> Option<PathBuf> {
    let root = project_root(project_dir).ok()?;
    (root != project_dir.canonicalize().ok()?).then_some(root)
}

/// `rule` is the text as it stands in the file: `Bash(npm run *)`. Whether it
/// was added; otherwise it was there already.
pub fn add_allow_rule(project_dir: &Path, rule: &str) -> Result<bool, SettingsError> {
    if rule.trim().is_empty() {
        return Err(SettingsError::BadRule("it is empty"));
    }
    if rule.len() > RULE_MAX {
        return Err(SettingsError::BadRule("it is too long"));
    }
    if rule.chars().any(char::is_control) {
        return Err(SettingsError::BadRule("it holds a control character"));
    }
    let root = project_root(project_dir)?;
    edit(&root, RuleEdit::Add(rule), LOCK_TRIES, &mut |_| Ok(()))
}

/// Whether it was there.
pub fn remove_allow_rule(project_dir: &Path, rule: &str) -> Result<bool, SettingsError> {
    let root = project_root(project_dir)?;
    edit(&root, RuleEdit::Remove(rule), LOCK_TRIES, &mut |_| Ok(()))
}

impl SettingsError {
    fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io {
            path,
            doing,
            source,
        }
    }
}

/// Points at which the process may die or the disk may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteStep {
    Locked,
    Read,
    Made,
    Written,
    Synced,
    Renamed,
    Settled,
}

type Steps<'a> = &'a mut dyn FnMut(WriteStep) -> io::Result<()>;

fn project_root(project_dir: &Path) -> Result<PathBuf, SettingsError> {
    if !project_dir.is_absolute() {
        return Err(SettingsError::Unsafe {
            path: project_dir.to_owned(),
            problem: "it is not an absolute path",
        });
    }
    root::of(project_dir).map_err(|why| SettingsError::io(project_dir, "found", why))
}

fn edit(
    root: &Path,
    edit: RuleEdit<'_>,
    lock_tries: u32,
    steps: Steps<'_>,
) -> Result<bool, SettingsError> {
    let make = matches!(edit, RuleEdit::Add(_));
    let Some(place) = ClaudeDir::open(root, make)? else {
        return Ok(false);
    };
    let _lock = place.lock(lock_tries)?;
    place.step(steps, WriteStep::Locked)?;
    for _ in 0..TRIES {
        let old = place.read()?;
        place.step(steps, WriteStep::Read)?;
        let text = old.as_ref().map(|old| old.text.as_slice());
        let new = text::edited(text, edit).map_err(|refused| place.untouchable(refused))?;
        let Some(new) = new else {
            return Ok(false);
        };
        if place.replace(old.as_ref(), &new, steps)? {
            return Ok(true);
        }
    }
    Err(place.busy())
}

/// The project's `.claude` directory, held open: what happens to the path
/// afterwards can't lead us elsewhere.
struct ClaudeDir {
    dir: File,
    path: PathBuf,
}

/// The settings file as it was read.
#[derive(PartialEq)]
struct ReadSettings {
    text: Vec<u8>,
    inode: (u64, u64),
    mode: u32,
    group: u32,
}

impl ClaudeDir {
    fn open(root: &Path, make: bool) -> Result<Option<Self>, SettingsError> {
        let path = root.join(DIR);
        let fail = |doing, errno: Errno| SettingsError::io(&path, doing, errno.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent =
            rustix::fs::open(root, flags, Mode::empty()).map_err(|errno| fail("reached", errno))?;
        let parent = File::from(parent);
        check_owner(root, &parent)?;
        let mut opened = open_beneath(&parent, DIR, flags, Mode::empty());
        if make && matches!(opened, Err(Errno::NOENT)) {
            match rustix::fs::mkdirat(&parent, DIR, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fail("made", errno)),
            }
            opened = open_beneath(&parent, DIR, flags, Mode::empty());
        }
        let dir = match opened {
            Ok(dir) => File::from(dir),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                return Err(SettingsError::Unsafe {
                    path,
                    problem: "it is a symbolic link or not a directory",
                });
            }
            Err(errno) => return Err(fail("opened", errno)),
        };
        check_owner(&path, &dir)?;
        Ok(Some(Self { dir, path }))
    }

    /// Whoever finds that the name it locked was removed meanwhile holds
    /// nothing, and tries again.
    fn lock(&self, tries: u32) -> Result<SettingsLock<'_>, SettingsError> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        for _ in 0..tries {
            let file = open_beneath(&self.dir, LOCK, flags, Mode::from_raw_mode(0o600));
            let file = File::from(file.map_err(|errno| self.cant_open(LOCK, errno))?);
            self.check_plain(LOCK, &file)?;
            match file.try_lock() {
                Ok(()) => {
                    if self.names(LOCK, &file) {
                        return Ok(SettingsLock {
                            place: self,
                            _file: file,
                        });
                    }
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(self.io(LOCK, "locked", error)),
            }
        }
        Err(self.busy())
    }

    fn read(&self) -> Result<Option<ReadSettings>, SettingsError> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open_beneath(&self.dir, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.cant_open(FILE, errno)),
        };
        let is = self.check_plain(FILE, &file)?;
        let mut text = Vec::new();
        (&file)
            .take(SIZE_MAX + 1)
            .read_to_end(&mut text)
            .map_err(|error| self.io(FILE, "read", error))?;
        if text.len() as u64 > SIZE_MAX {
            return Err(self.untouchable(Untouchable {
                line: 1,
                column: 1,
                problem: "it is larger than 1 MiB".to_owned(),
            }));
        }
        Ok(Some(ReadSettings {
            text,
            inode: (is.dev(), is.ino()),
            mode: is.mode() & 0o777,
            group: is.gid(),
        }))
    }

    /// `false` when the file is no longer the one that was read.
    fn replace(
        &self,
        old: Option<&ReadSettings>,
        new: &str,
        steps: Steps<'_>,
    ) -> Result<bool, SettingsError> {
        let temp = self.make_temp()?;
        let done = self.put_in_place(&temp, old, new, steps);
        if !matches!(done, Ok(true)) {
            self.unlink(TEMP);
        }
        done
    }

    fn put_in_place(
        &self,
        temp: &File,
        old: Option<&ReadSettings>,
        new: &str,
        steps: Steps<'_>,
    ) -> Result<bool, SettingsError> {
        self.step(steps, WriteStep::Made)?;
        self.fill(temp, old, new)
            .map_err(|error| self.io(TEMP, "written", error))?;
        self.step(steps, WriteStep::Written)?;
        temp.sync_all()
            .map_err(|error| self.io(TEMP, "synced", error))?;
        self.step(steps, WriteStep::Synced)?;
        if self.read()?.as_ref() != old || !self.names(TEMP, temp) {
            return Ok(false);
        }
        let renamed = match old {
            Some(_) => rustix::fs::renameat(&self.dir, TEMP, &self.dir, FILE),
            None => rename_to_new_name(&self.dir, TEMP, FILE),
        };
        match renamed {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.io(FILE, "replaced", errno.into())),
        }
        self.step(steps, WriteStep::Renamed)?;
        match rustix::fs::fsync(&self.dir) {
            // Some file systems can't sync a directory and do not need to.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(self.io(FILE, "synced", errno.into())),
        }
        self.step(steps, WriteStep::Settled)?;
        Ok(true)
    }

    /// A killed predecessor may have left one.
    fn make_temp(&self) -> Result<File, SettingsError> {
        let fail = |errno: Errno| self.io(TEMP, "made", errno.into());
        match rustix::fs::unlinkat(&self.dir, TEMP, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let temp = open_beneath(&self.dir, TEMP, flags, Mode::from_raw_mode(0o600));
        Ok(File::from(temp.map_err(fail)?))
    }

    fn fill(&self, mut temp: &File, old: Option<&ReadSettings>, new: &str) -> io::Result<()> {
        temp.write_all(new.as_bytes())?;
        let mode = old.map_or(0o644, |old| old.mode);
        if let Some(old) = old
            && temp.metadata()?.gid() != old.group
        {
            let group = rustix::fs::Gid::from_raw(old.group);
            // Kept where the system allows it: the group is no secret's guard here.
            if let Err(errno) = rustix::fs::fchown(temp, None, Some(group)) {
                tracing::debug!(path = %self.path.display(), %errno, "the group was not kept");
            }
        }
        temp.set_permissions(Permissions::from_mode(mode))
    }

    /// Whether `name` still leads to this very file.
    fn names(&self, name: &str, file: &File) -> bool {
        let there = open_beneath(
            &self.dir,
            name,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let Ok(there) = there.map(File::from) else {
            return false;
        };
        let inode = |file: &File| file.metadata().map(|is| (is.dev(), is.ino())).ok();
        let inode_here = inode(file);
        inode_here.is_some() && inode_here == inode(&there)
    }

    fn check_plain(&self, name: &str, file: &File) -> Result<std::fs::Metadata, SettingsError> {
        let is = file
            .metadata()
            .map_err(|error| self.io(name, "examined", error))?;
        let problem = if !is.is_file() {
            "it is not a regular file"
        } else if is.nlink() > 1 {
            "it has a second name elsewhere"
        } else if is.uid() != rustix::process::geteuid().as_raw() {
            "it belongs to another user"
        } else {
            return Ok(is);
        };
        Err(SettingsError::Unsafe {
            path: self.path.join(name),
            problem,
        })
    }

    fn cant_open(&self, name: &str, errno: Errno) -> SettingsError {
        match errno {
            Errno::LOOP | Errno::XDEV | Errno::MLINK => SettingsError::Unsafe {
                path: self.path.join(name),
                problem: "it is a symbolic link",
            },
            Errno::NXIO | Errno::ISDIR => SettingsError::Unsafe {
                path: self.path.join(name),
                problem: "it is not a regular file",
            },
            other => self.io(name, "opened", other.into()),
        }
    }

    fn unlink(&self, name: &str) {
        if let Err(errno) = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            tracing::debug!(path = %self.path.display(), name, %errno, "a file was left behind");
        }
    }

    fn step(&self, steps: Steps<'_>, step: WriteStep) -> Result<(), SettingsError> {
        steps(step).map_err(|error| self.io(FILE, "written", error))
    }

    fn io(&self, name: &str, doing: &'static str, source: io::Error) -> SettingsError {
        SettingsError::io(&self.path.join(name), doing, source)
    }

    fn untouchable(&self, why: Untouchable) -> SettingsError {
        let file = self.path.join(FILE);
        SettingsError::Untouchable { file, why }
    }

    fn busy(&self) -> SettingsError {
        SettingsError::Busy {
            file: self.path.join(FILE),
        }
    }
}

/// The kernel's lock goes with the open file; the name goes first, while
/// nobody else can hold it.
struct SettingsLock<'a> {
    place: &'a ClaudeDir,
    _file: File,
}

impl Drop for SettingsLock<'_> {
    fn drop(&mut self) {
        self.place.unlink(LOCK);
    }
}

fn check_owner(path: &Path, dir: &File) -> Result<(), SettingsError> {
    let is = dir.metadata();
    let is = is.map_err(|why| SettingsError::io(path, "examined", why))?;
    let problem = if is.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if is.mode() & 0o002 != 0 {
        "everybody can write there"
    } else {
        return Ok(());
    };
    Err(SettingsError::Unsafe {
        path: path.to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    const RULE: &str = "Bash(npm run *)";
    const OLD: &str = "{\n  \"model\": \"x\",\n  \"permissions\": {\n    \"deny\": [\"Read(.env)\"],\n    \"allow\": [\n      \"WebSearch\"\n    ]\n  }\n}\n";
    /// Contended locks in tests wait for disks shared with other tests.
    const PATIENT: u32 = 6_000;

    /// A project, and a place outside of it that nobody may write to.
    struct World {
        _keep: tempfile::TempDir,
        project: PathBuf,
        outside: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let keep = tempfile::tempdir().unwrap();
            let base = keep.path().canonicalize().unwrap();
            let world = Self {
                _keep: keep,
                project: base.join("shop"),
                outside: base.join("outside"),
            };
            fs::create_dir_all(world.claude()).unwrap();
            // A root of its own, wherever the temporary directory lies.
            fs::create_dir(world.project.join(".git")).unwrap();
            fs::write(world.project.join(".git/HEAD"), "ref: x").unwrap();
            fs::create_dir(&world.outside).unwrap();
            fs::write(world.outside.join(FILE), OLD).unwrap();
            world
        }

        fn with_file() -> Self {
            let world = Self::new();
            fs::write(world.file(), OLD).unwrap();
            world
        }

        fn claude(&self) -> PathBuf {
            self.project.join(DIR)
        }

        fn file(&self) -> PathBuf {
            self.claude().join(FILE)
        }

        fn add(&self) -> Result<bool, SettingsError> {
            add_allow_rule(&self.project, RULE)
        }

        fn rules(&self) -> Value {
            let text = fs::read_to_string(self.file()).unwrap();
            let settings: Value = serde_json::from_str(&text).unwrap();
            settings["permissions"]["allow"].clone()
        }

        #[track_caller]
        fn check_outside_untouched(&self) {
            let names = names_in(&self.outside);
            assert_eq!(names, [FILE]);
            let text = fs::read_to_string(self.outside.join(FILE)).unwrap();
            assert_eq!(text, OLD);
        }
    }

    fn names_in(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_rule_is_added_once_and_taken_out_again() {
        let world = World::with_file();
        fs::set_permissions(world.file(), Permissions::from_mode(0o640)).unwrap();
        assert_eq!(rules_file(&world.project).unwrap(), world.file());
        assert!(world.add().unwrap());
        assert_eq!(world.rules(), json!(["WebSearch", RULE]));
        assert_eq!(mode(&world.file()), 0o640);
        assert!(!world.add().unwrap());

        let remove = || remove_allow_rule(&world.project, RULE).unwrap();
        assert!(remove());
        assert_eq!(fs::read_to_string(world.file()).unwrap(), OLD);
        assert!(!remove());
        assert_eq!(names_in(&world.claude()), [FILE]);
    }

    #[test]
    fn directory_and_file_are_made_when_missing() {
        let world = World::new();
        fs::remove_dir(world.claude()).unwrap();
        let removed = remove_allow_rule(&world.project, RULE).unwrap();
        assert!(!removed);
        assert!(!world.claude().exists());

        let below = world.project.join("src/deep");
        fs::create_dir_all(&below).unwrap();
        assert!(add_allow_rule(&below, RULE).unwrap());
        assert_eq!(world.rules(), json!([RULE]));
        assert_eq!(mode(&world.file()), 0o644);
        assert_eq!(names_in(&world.claude()), [FILE]);
    }

    #[test]
    fn rules_that_could_spoil_the_file_are_refused() {
        let world = World::with_file();
        for rule in [
            "",
            " ",
            "Bash(a\nb)",
            "Bash(\u{1b})",
            &"x".repeat(RULE_MAX + 1),
        ] {
            let refused = add_allow_rule(&world.project, rule);
            assert!(
                matches!(refused, Err(SettingsError::BadRule(_))),
                "{rule:?}"
            );
        }
        let relative = add_allow_rule(Path::new("shop"), RULE);
        assert!(
            matches!(relative, Err(SettingsError::Unsafe { .. })),
            "{relative:?}"
        );
        let missing = add_allow_rule(&world.project.join("none"), RULE);
        assert!(
            matches!(missing, Err(SettingsError::Io { .. })),
            "{missing:?}"
        );
    }

    #[test]
    fn a_file_that_is_not_plain_json_stays_as_it_is() {
        let large = format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20));
        for old in [
            "{\n // mine\n}",
            "\u{feff}{}",
            "{\"a\":1,}",
            "{\"a\":1,\"a\":2}",
            "{",
            &large,
        ] {
            let world = World::new();
            fs::write(world.file(), old).unwrap();
            let refused = world.add().unwrap_err();
            assert!(
                matches!(refused, SettingsError::Untouchable { .. }),
                "{refused:?}"
            );
            assert_eq!(fs::read_to_string(world.file()).unwrap(), old);
            assert_eq!(names_in(&world.claude()), [FILE]);
        }
        let world = World::new();
        fs::write(world.file(), "{\n  \"a\": 1,\n}").unwrap();
        let words = world.add().unwrap_err().to_string();
        let file = world.file();
        assert_eq!(
            words,
            format!("`{}` line 3 column 1: it is not valid JSON", file.display())
        );
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused() {
        type Prepare = fn(&World);
        let cases: [(&str, Prepare); 8] = [
            ("the file is a link", |w| {
                symlink(w.outside.join(FILE), w.file()).unwrap();
            }),
            ("the file is a dangling link", |w| {
                symlink(w.outside.join("new"), w.file()).unwrap();
            }),
            ("the file has a second name", |w| {
                fs::hard_link(w.outside.join(FILE), w.file()).unwrap();
            }),
            ("the file is a directory", |w| {
                fs::create_dir(w.file()).unwrap();
            }),
            ("the file is a pipe", |w| {
                let made = Command::new("mkfifo").arg(w.file()).status().unwrap();
                assert!(made.success());
            }),
            ("the directory is a link", |w| {
                fs::remove_dir(w.claude()).unwrap();
                symlink(&w.outside, w.claude()).unwrap();
            }),
            ("the directory is a file", |w| {
                fs::remove_dir(w.claude()).unwrap();
                fs::write(w.claude(), "").unwrap();
            }),
            ("the directory is everybody's", |w| {
                fs::set_permissions(w.claude(), Permissions::from_mode(0o777)).unwrap();
            }),
        ];
        for (what, prepare) in cases {
            let world = World::new();
            prepare(&world);
            let refused = world.add();
            assert!(
                matches!(refused, Err(SettingsError::Unsafe { .. })),
                "{what}: {refused:?}"
            );
            world.check_outside_untouched();
        }
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "a skipped check must be seen")]
    fn what_belongs_to_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can give a file away");
            return;
        }
        for what in [".claude/settings.local.json", ".claude", ""] {
            let world = World::with_file();
            std::os::unix::fs::chown(world.project.join(what), Some(65_534), None).unwrap();
            let refused = world.add();
            assert!(
                matches!(refused, Err(SettingsError::Unsafe { .. })),
                "{what}: {refused:?}"
            );
            assert_eq!(fs::read_to_string(world.file()).unwrap(), OLD);
        }
    }

    #[test]
    fn a_lock_in_the_shape_of_a_link_is_not_followed() {
        let world = World::with_file();
        symlink(world.outside.join("lock"), world.claude().join(LOCK)).unwrap();
        let refused = world.add();
        assert!(
            matches!(refused, Err(SettingsError::Unsafe { .. })),
            "{refused:?}"
        );
        world.check_outside_untouched();
    }

    #[test]
    fn killed_at_any_step_the_file_is_the_old_or_the_new_one() {
        for had_file in [true, false] {
            let world = if had_file {
                World::with_file()
            } else {
                World::new()
            };
            let old = had_file.then(|| OLD.as_bytes().to_vec());
            let new = text::edited(old.as_deref(), RuleEdit::Add(RULE))
                .unwrap()
                .unwrap();
            let mut seen = Vec::new();
            // What lies on the disk at a step is what a kill there leaves.
            let mut look = |step| {
                let killed = World::new();
                for name in names_in(&world.claude()) {
                    fs::copy(world.claude().join(&name), killed.claude().join(&name))?;
                }
                let now = fs::read(killed.file()).ok();
                let is_new = now.as_deref() == Some(new.as_bytes());
                assert!(is_new || now == old, "{step:?}: {now:?}");
                killed.add().unwrap();
                assert_eq!(fs::read(killed.file()).unwrap(), new.as_bytes(), "{step:?}");
                assert_eq!(names_in(&killed.claude()), [FILE], "{step:?}");
                seen.push((step, is_new));
                Ok(())
            };
            assert!(edit(&world.project, RuleEdit::Add(RULE), PATIENT, &mut look).unwrap());
            assert_eq!(seen.first(), Some(&(WriteStep::Locked, false)));
            assert_eq!(seen.last(), Some(&(WriteStep::Settled, true)));
        }
    }

    #[test]
    fn a_disk_that_fails_at_any_step_leaves_the_old_or_the_new_file() {
        for fails_at in [
            WriteStep::Locked,
            WriteStep::Read,
            WriteStep::Made,
            WriteStep::Written,
            WriteStep::Synced,
            WriteStep::Renamed,
            WriteStep::Settled,
        ] {
            let world = World::with_file();
            let mut fail = |step| {
                if step == fails_at {
                    return Err(Errno::NOSPC.into());
                }
                Ok(())
            };
            let failed = edit(&world.project, RuleEdit::Add(RULE), PATIENT, &mut fail);
            assert!(
                matches!(failed, Err(SettingsError::Io { .. })),
                "{fails_at:?}: {failed:?}"
            );
            let renamed = matches!(fails_at, WriteStep::Renamed | WriteStep::Settled);
            let text = fs::read_to_string(world.file()).unwrap();
            assert_eq!(text != OLD, renamed, "{fails_at:?}");
            assert_eq!(names_in(&world.claude()), [FILE], "{fails_at:?}");
        }
    }

    #[test]
    fn an_edit_by_somebody_else_is_taken_up() {
        let world = World::with_file();
        let theirs = OLD.replace("WebSearch", "WebFetch");
        let mut once = Some(&theirs);
        let mut interfere = |step| {
            if step == WriteStep::Synced
                && let Some(text) = once.take()
            {
                fs::write(world.file(), text)?;
            }
            Ok(())
        };
        assert!(edit(&world.project, RuleEdit::Add(RULE), PATIENT, &mut interfere).unwrap());
        assert_eq!(world.rules(), json!(["WebFetch", RULE]));
    }

    #[test]
    fn a_file_that_never_rests_is_given_up() {
        let world = World::new();
        let mut round = 0;
        let mut interfere = |step| {
            if step == WriteStep::Synced {
                round += 1;
                fs::write(world.file(), format!("{{\"round\": {round}}}"))?;
            }
            Ok(())
        };
        let given_up = edit(&world.project, RuleEdit::Add(RULE), PATIENT, &mut interfere);
        assert!(
            matches!(given_up, Err(SettingsError::Busy { .. })),
            "{given_up:?}"
        );
        assert_eq!(round, TRIES);
        let text = fs::read_to_string(world.file()).unwrap();
        assert_eq!(text, format!("{{\"round\": {TRIES}}}"));
    }

    #[test]
    fn writers_side_by_side_lose_nothing() {
        let world = World::with_file();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let root = &world.project;
                scope.spawn(move || {
                    for n in 0..50 {
                        let rule = format!("Bash(make w{writer}-{n})");
                        edit(root, RuleEdit::Add(&rule), PATIENT, &mut |_| Ok(())).unwrap();
                    }
                });
            }
        });
        let rules = world.rules();
        let rules = rules.as_array().unwrap();
        assert_eq!(rules.len(), 1 + 8 * 50);
        for writer in 0..8 {
            for n in 0..50 {
                assert!(rules.contains(&json!(format!("Bash(make w{writer}-{n})"))));
            }
        }
        assert_eq!(names_in(&world.claude()), [FILE]);
    }

    /// `flock` of util-linux holds the lock as another `nod` would.
    #[cfg(target_os = "linux")]
    #[test]
    fn another_process_is_waited_for_but_not_for_ever() {
        let world = World::with_file();
        let mut holder = Command::new("flock")
            .arg(world.claude().join(LOCK))
            .args(["sh", "-c", "echo held && cat"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("`flock` is part of util-linux");
        let mut held = [0; 5];
        holder.stdout.take().unwrap().read_exact(&mut held).unwrap();

        let busy = edit(&world.project, RuleEdit::Add(RULE), 2, &mut |_| Ok(()));
        assert!(matches!(busy, Err(SettingsError::Busy { .. })), "{busy:?}");
        assert_eq!(fs::read_to_string(world.file()).unwrap(), OLD);

        drop(holder.stdin.take());
        assert!(
            edit(
                &world.project,
                RuleEdit::Add(RULE),
                PATIENT,
                &mut |_| Ok(())
            )
            .unwrap()
        );
        assert!(holder.wait().unwrap().success());
    }

    #[test]
    fn no_swap_at_any_step_leads_outside() {
        type Swap = fn(&World) -> io::Result<()>;
        let swaps: [(&str, Swap); 5] = [
            ("the file becomes a link", |w| {
                fs::remove_file(w.file())?;
                symlink(w.outside.join(FILE), w.file())
            }),
            ("the file gets a second name", |w| {
                fs::remove_file(w.file())?;
                fs::hard_link(w.outside.join(FILE), w.file())
            }),
            ("the new file becomes a link", |w| {
                fs::remove_file(w.claude().join(TEMP))?;
                symlink(w.outside.join(FILE), w.claude().join(TEMP))
            }),
            ("the directory becomes a link", |w| {
                fs::rename(w.claude(), w.project.join("spare"))?;
                symlink(&w.outside, w.claude())
            }),
            ("the project becomes a link", |w| {
                fs::rename(&w.project, w.project.with_extension("spare"))?;
                symlink(&w.outside, &w.project)
            }),
        ];
        for (what, swap) in swaps {
            for at in [
                WriteStep::Locked,
                WriteStep::Read,
                WriteStep::Made,
                WriteStep::Written,
                WriteStep::Synced,
            ] {
                let world = World::with_file();
                let mut hostile = |step| {
                    if step == at {
                        // Not every file exists at every step.
                        let _ = swap(&world);
                    }
                    Ok(())
                };
                let done = edit(&world.project, RuleEdit::Add(RULE), 3, &mut hostile);
                world.check_outside_untouched();
                let linked = fs::symlink_metadata(world.outside.join(FILE)).unwrap();
                assert!(linked.is_file(), "{what} at {at:?}: {done:?}");
            }
        }
    }

    #[test]
    fn a_thread_that_keeps_swapping_never_leads_outside() {
        let world = World::with_file();
        let over = AtomicBool::new(false);
        let spare = world.project.join("spare");
        // Each swap may fail when the other side was quicker; that is the game.
        let swap_file = || {
            let _ = fs::remove_file(world.file());
            let _ = symlink(world.outside.join(FILE), world.file());
            let _ = fs::remove_file(world.file());
            let _ = fs::hard_link(world.outside.join(FILE), world.file());
            let _ = fs::remove_file(world.file());
            let _ = symlink(world.outside.join("temp"), world.claude().join(TEMP));
            let _ = fs::write(world.file(), OLD);
        };
        let swap_directory = || {
            // An edit may have made a new directory in the gap.
            let _ = fs::remove_dir_all(&spare);
            let _ = fs::rename(world.claude(), &spare);
            let _ = symlink(&world.outside, world.claude());
            std::thread::yield_now();
            let _ = fs::remove_file(world.claude());
            let _ = fs::rename(&spare, world.claude());
        };
        let (mut wrote, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    swap_file();
                    swap_directory();
                    // Gives the other side a chance to get half way.
                    (0..50).for_each(|_| std::thread::yield_now());
                }
            });
            let mut tries = 0;
            while tries < 2_000 || (wrote.min(refused) == 0 && tries < 100_000) {
                tries += 1;
                let rule = format!("Bash(make {tries})");
                match edit(&world.project, RuleEdit::Add(&rule), 3, &mut |_| Ok(())) {
                    Ok(_) => wrote += 1,
                    Err(_) => refused += 1,
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        world.check_outside_untouched();
        assert!(
            wrote > 0 && refused > 0,
            "{wrote} written, {refused} refused"
        );
    }
}
