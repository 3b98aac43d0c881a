//! Whether a conversation went on elsewhere: an agent writes every turn to
//! the conversation's transcript, and a child that rests does not read what
//! another wrote there. Only lengths are looked at, never a word.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

use crate::ids::SessionId;

/// A child writes down the last of its turn after it has reported its end.
const SETTLES: Duration = Duration::from_secs(3);
/// Directories of projects that are looked into.
const MAX_PROJECTS: usize = 4_096;

/// Where Claude Code keeps its projects' transcripts, by the child's variables.
pub fn home(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let set = |name: &str| {
        let mut all = environment.iter();
        let (_, value) = all.find(|(known, _)| known == name)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    let own = set("CLAUDE_CONFIG_DIR").or_else(|| Some(set("HOME")?.join(".claude")))?;
    Some(own.join("projects"))
}

/// The transcript as a child left it when it came to rest.
#[derive(Debug)]
pub struct LeftTranscript {
    place: TranscriptPlace,
    length: AbortOnDropHandle<Option<u64>>,
}

#[derive(Debug, Clone)]
enum TranscriptPlace {
    /// Beneath a directory for each project.
    Named {
        home: PathBuf,
        session: SessionId,
    },
    File(PathBuf),
}

impl LeftTranscript {
    /// Looks once the child has written all of its turn.
    pub fn by(home: PathBuf, session: SessionId) -> Self {
        Self::at(TranscriptPlace::Named { home, session })
    }

    /// As [`Self::by`], of this very file.
    pub fn of(file: PathBuf) -> Self {
        Self::at(TranscriptPlace::File(file))
    }

    fn at(place: TranscriptPlace) -> Self {
        let looked_at = place.clone();
        let look = async move {
            tokio::time::sleep(SETTLES).await;
            length(looked_at).await
        };
        Self {
            place,
            length: AbortOnDropHandle::new(tokio::spawn(look)),
        }
    }

    /// Whether somebody else is known to have written since.
    pub async fn went_on(self) -> bool {
        if !self.length.is_finished() {
            return false;
        }
        let (Ok(Some(before)), now) = (self.length.await, length(self.place).await) else {
            return false;
        };
        now.is_some_and(|now| now != before)
    }
}

async fn length(place: TranscriptPlace) -> Option<u64> {
    let is_file = |is: &std::fs::Metadata| is.is_file();
    let look = move || match place {
        TranscriptPlace::File(file) => file.metadata().ok().filter(is_file).map(|file| file.len()),
        TranscriptPlace::Named { home, session } => {
            let name = format!("{session}.jsonl");
            let projects = std::fs::read_dir(home).ok()?.take(MAX_PROJECTS);
            let mut files = projects.filter_map(|dir| {
                let file = dir.ok()?.path().join(&name);
                file.metadata().ok().filter(is_file)
            });
            files.next().map(|file| file.len())
        }
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_transcripts_are_where_the_child_keeps_them() {
        let set = |all: &[(&str, &str)]| {
            let all = all.iter();
            let all: Vec<_> = all.map(|(k, v)| (k.into(), v.into())).collect();
            home(&all)
        };
        let own = Some(PathBuf::from("/h/.claude/projects"));
        assert_eq!(set(&[("HOME", "/h")]), own);
        assert_eq!(set(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "")]), own);
        let moved = set(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]);
        assert_eq!(moved, Some(PathBuf::from("/c/projects")));
        assert_eq!(set(&[]), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_of_another_is_noticed_and_the_childs_own_last_words_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionId::parse("6b5f").unwrap();
        let project = dir.path().join("-src-shop");
        fs::create_dir(&project).unwrap();
        let file = project.join("6b5f.jsonl");
        fs::write(&file, "one\n").unwrap();
        let left = || LeftTranscript::by(dir.path().to_owned(), session.clone());
        let rested = async |left: &LeftTranscript| {
            while !left.length.is_finished() {
                tokio::time::sleep(SETTLES).await;
            }
        };
        let early = left();
        fs::write(&file, "one\ntwo\n").unwrap();
        assert!(!early.went_on().await, "it may be the child's own");
        let still = left();
        rested(&still).await;
        assert!(!still.went_on().await);
        let (newer, by_file) = (left(), LeftTranscript::of(file.clone()));
        rested(&newer).await;
        rested(&by_file).await;
        fs::write(&file, "one\ntwo\nthree\n").unwrap();
        assert!(newer.went_on().await && by_file.went_on().await);
        let gone = left();
        rested(&gone).await;
        fs::remove_file(&file).unwrap();
        assert!(!gone.went_on().await);
    }
}
