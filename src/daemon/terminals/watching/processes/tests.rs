use super::*;

#[cfg(target_os = "linux")]
mod on_linux {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    /// A shell that runs this until it is dropped; it has said a word.
    struct Shell {
        child: Child,
    }

    impl Shell {
        fn runs(program: &Path, script: &str) -> Self {
            let mut child = Command::new(program)
                .arg0("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap();
            let mut word = String::new();
            let said = child.stdout.as_mut().unwrap();
            BufReader::new(said).read_line(&mut word).unwrap();
            assert_eq!(word, "ready\n");
            Self { child }
        }

        fn pid(&self) -> u32 {
            self.child.id()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let group = i32::try_from(self.pid()).unwrap();
            let group = rustix::process::Pid::from_raw(group).unwrap();
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = self.child.wait();
        }
    }

    #[test]
    fn a_process_is_the_one_it_was_only_if_it_began_then() {
        let own = std::process::id();
        let then = began(own).unwrap();
        assert_eq!(began(own), Some(then), "it does not change");
        assert!(is_alive(own, Some(&then.to_string())));
        assert!(is_alive(own, None), "an old file does not tell");
        assert!(!is_alive(own, Some(&(then + 1).to_string())), "another one");
        assert!(!is_alive(own, Some("yesterday")));
        assert_eq!(began(u32::MAX), None);
        assert!(!is_alive(u32::MAX, None), "nobody is there");
        assert!(!is_alive(u32::MAX, Some(&then.to_string())));
    }

    #[test]
    fn a_name_with_blanks_and_brackets_hides_no_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("a) 1 (b");
        std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
        let shell = Shell::runs(&odd, "echo ready; read word");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", shell.pid())).unwrap();
        assert!(stat.contains("(a) 1 (b)"), "{stat}");
        let then = began(shell.pid()).unwrap();
        assert!(then >= began(std::process::id()).unwrap());
    }

    #[test]
    fn the_children_of_a_process_are_told_with_their_arguments_and_no_older_ones() {
        let script = "sh -c 'echo ready; read word; exit' 'of the agent'; exit";
        let shell = Shell::runs(Path::new("/bin/sh"), script);
        let then = began(shell.pid()).unwrap();
        let found = children(shell.pid(), then);
        assert_eq!(found.len(), 1);
        let told = String::from_utf8_lossy(&found[0]);
        assert!(told.ends_with("\0of the agent\0"), "{told}");
        let long_after = then + 1_000_000;
        assert!(children(shell.pid(), long_after).is_empty());
        assert!(children(u32::MAX, 0).is_empty());
    }
}

#[cfg(not(target_os = "linux"))]
#[test]
fn where_the_system_says_nothing_a_process_counts_as_running() {
    assert!(is_alive(std::process::id(), Some("1")));
    assert!(children(std::process::id(), 0).is_empty());
}
