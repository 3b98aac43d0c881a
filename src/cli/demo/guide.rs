//! What the tour tells the page and what the page asks of the tour, both as
//! notes in the simulator's history.

use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{DemoCall, Printed, WaitingHook};
use super::language;
use super::scenes::{Prints, Scene, SceneOpening};
use super::stage::{DemoStage, Mishap};
use crate::clock::millis;
use crate::simulator::{HistoryEntry, Simulator};
use crate::text::{Lang, Text};
use crate::wording::LOCKED;

/// How long one look at an idle history lasts.
const LOOK: Duration = Duration::from_secs(60);

/// What a visitor asks for in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisitorWish {
    Next,
    /// The scene with this number.
    Play(usize),
    TerminalYes,
    TerminalEsc,
    /// What belongs to the scene befalls its machines, or is undone.
    Kill,
    /// `nod unlock`, after somebody wrote `/lock`.
    Unlock,
    /// The next cards in this language.
    Speak(Lang),
}

impl VisitorWish {
    /// Whether it ends the scene that plays.
    pub(super) fn leaves(self) -> bool {
        matches!(self, Self::Next | Self::Play(_))
    }

    /// A new language begins the scene anew: its cards were in the other.
    pub(super) fn or_again(self, number: usize) -> Self {
        match self {
            Self::Speak(_) => Self::Play(number),
            _ => self,
        }
    }
}

/// The wish a note holds, if it holds one.
pub(super) fn wish(entry: &HistoryEntry) -> Option<VisitorWish> {
    if entry.kind != "note" {
        return None;
    }
    let of = |key: &str| entry.detail.get(key);
    match of("ask")?.as_str()? {
        "next" => Some(VisitorWish::Next),
        "kill" => Some(VisitorWish::Kill),
        "unlock" => Some(VisitorWish::Unlock),
        "play" => {
            let number = of("scene")?.as_u64()?;
            usize::try_from(number).ok().map(VisitorWish::Play)
        }
        "speak" => language(of("lang")?.as_str()?).ok().map(VisitorWish::Speak),
        "terminal" => match of("answer")?.as_str()? {
            "yes" => Some(VisitorWish::TerminalYes),
            "esc" => Some(VisitorWish::TerminalEsc),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the history from where it stopped.
#[derive(Debug, Default)]
pub(super) struct HistoryReader {
    seen: u64,
}

impl HistoryReader {
    pub(super) fn read(&mut self, simulator: &Simulator) -> Vec<HistoryEntry> {
        let entries = simulator.history(self.seen);
        if let Some(last) = entries.last() {
            self.seen = last.seq;
        }
        entries
    }

    /// As [`Self::read`], once there is something.
    pub(super) async fn wait(&mut self, simulator: &Simulator) -> Vec<HistoryEntry> {
        let seen = self.seen;
        let ready = |simulator: &Simulator| {
            Some(simulator.history(seen)).filter(|entries| !entries.is_empty())
        };
        let _ = simulator.wait_for(LOOK, ready).await;
        self.read(simulator)
    }
}

fn both(text: &Text) -> Value {
    json!({"zh": text.zh, "en": text.en})
}

pub(super) fn programme(scenes: &[Scene], is_team: bool) -> Value {
    let scenes: Vec<Value> = scenes
        .iter()
        .map(|scene| json!({"name": scene.name, "title": both(&scene.title)}))
        .collect();
    json!({"note": "programme", "scenes": scenes, "team": is_team})
}

/// Which laptop it is, is of interest only where there are several.
pub(super) fn scene(number: usize, scene: &Scene, stage: &DemoStage, chat: &str) -> Value {
    let laptop = stage.laptop();
    let write = match &scene.opening {
        SceneOpening::Call(_) => None,
        SceneOpening::Words(words) => Some(both(words)),
    };
    json!({
        "note": "scene",
        "number": number,
        "name": scene.name,
        "title": both(&scene.title),
        "story": both(&scene.story),
        "hint": both(&scene.hint),
        "write": write,
        "chat_id": chat,
        "laptop": stage.team.as_ref().map(|_| laptop.name),
        "person": laptop.owner,
        "mishap": match scene.staging.mishap {
            Mishap::Crash => "crash",
            Mishap::Gateway => "gateway",
            Mishap::Sleep => "sleep",
        },
        "dialog": scene.call().is_some_and(DemoCall::has_dialog),
        "run": scene.run,
    })
}

/// `within` is how long the daemon lets the request wait.
pub(super) fn hook_in(number: usize, asked: &WaitingHook, within: Duration) -> Value {
    json!({"note": "hook_in", "scene": number, "stdin": asked.stdin, "within_ms": millis(within)})
}

pub(super) fn hook_out(number: usize, printed: &Printed) -> Value {
    json!({
        "note": "hook_out",
        "scene": number,
        "stdout": printed.stdout,
        "stderr": printed.stderr,
        "ms": millis(printed.took),
    })
}

pub(super) fn passed(number: usize, rule: &str) -> Value {
    json!({"note": "passed", "scene": number, "rule": rule})
}

/// `ending` is what the card of a task says; a call's is in what its hook
/// printed.
pub(super) fn scene_end(number: usize, ending: Option<&Text>) -> Value {
    json!({"note": "scene_end", "scene": number, "ending": ending.map(both)})
}

/// Whether a message says that nod is locked.
pub(super) fn says_locked(entry: &HistoryEntry) -> bool {
    let content = entry.detail.get("content").and_then(Value::as_str);
    let said = |content: &str| {
        let content: Value = serde_json::from_str(content).unwrap_or_default();
        let text = content["text"].as_str().unwrap_or_default();
        [&LOCKED.zh, &LOCKED.en]
            .iter()
            .any(|words| text.contains(words.as_ref()))
    };
    entry.kind == "message" && content.is_some_and(said)
}

/// Compares what a hook printed with what it should have.
pub(super) fn fits(prints: &Prints, printed: &Printed) -> Result<(), String> {
    let decision = printed.decision();
    let rules = &decision["updatedPermissions"];
    let fits = match prints {
        Prints::Allow => {
            decision["behavior"] == "allow" && rules.is_null() && decision["updatedInput"].is_null()
        }
        Prints::AllowWithRule(content) => {
            decision["behavior"] == "allow" && rules[0]["rules"][0]["ruleContent"] == *content
        }
        Prints::Answers(answers) => {
            let given = decision["updatedInput"]["answers"].as_object();
            let given = given.into_iter().flat_map(|given| given.values());
            decision["behavior"] == "allow" && given.eq(answers)
        }
        Prints::Plan => {
            decision["behavior"] == "allow" && decision["updatedInput"]["plan"].is_string()
        }
        Prints::Deny(reason) => {
            let message = decision["message"].as_str().unwrap_or_default();
            let told = reason
                .as_ref()
                .is_none_or(|text| message.contains(&*text.zh) || message.contains(&*text.en));
            decision["behavior"] == "deny" && decision["interrupt"].is_null() && told
        }
        Prints::Interrupt => decision["behavior"] == "deny" && decision["interrupt"] == true,
        Prints::Nothing => printed.stdout.is_empty(),
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "the hook should have printed something else than `{}`",
            printed.stdout
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(detail: &Value) -> HistoryEntry {
        HistoryEntry {
            seq: 1,
            at: 0,
            kind: "note",
            connection: None,
            detail: detail.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn only_whole_wishes_count() {
        for (detail, expected) in [
            (json!({"ask": "next"}), Some(VisitorWish::Next)),
            (json!({"ask": "kill"}), Some(VisitorWish::Kill)),
            (json!({"ask": "unlock"}), Some(VisitorWish::Unlock)),
            (
                json!({"ask": "play", "scene": 3}),
                Some(VisitorWish::Play(3)),
            ),
            (
                json!({"ask": "terminal", "answer": "yes"}),
                Some(VisitorWish::TerminalYes),
            ),
            (
                json!({"ask": "terminal", "answer": "esc"}),
                Some(VisitorWish::TerminalEsc),
            ),
            (
                json!({"ask": "speak", "lang": "en"}),
                Some(VisitorWish::Speak(Lang::En)),
            ),
            (json!({"ask": "speak", "lang": "fr"}), None),
            (json!({"ask": "play", "scene": -1}), None),
            (json!({"ask": "play"}), None),
            (json!({"ask": "stop"}), None),
            (json!({"note": "scene"}), None),
        ] {
            assert_eq!(wish(&note(&detail)), expected, "{detail}");
        }
        let mut other = note(&json!({"ask": "next"}));
        other.kind = "message";
        assert_eq!(wish(&other), None);
    }

    #[test]
    fn a_lock_is_known_by_what_nod_says() {
        let said = |text: &str| {
            let mut entry = note(&json!({"content": json!({"text": text}).to_string()}));
            entry.kind = "message";
            says_locked(&entry)
        };
        assert!(said(&LOCKED.zh) && said(&LOCKED.en));
        assert!(!said("/lock"));
        let whole = json!({"content": json!({"text": LOCKED.en}).to_string()});
        assert!(!says_locked(&note(&whole)), "only a message says it");
    }

    #[test]
    fn what_a_hook_printed_is_held_against_the_plan() {
        let printed = |decision: Value| Printed {
            stdout: json!({"hookSpecificOutput": {"decision": decision}}).to_string(),
            stderr: String::new(),
            took: Duration::ZERO,
        };
        let allow = printed(json!({"behavior": "allow"}));
        let deny = printed(json!({"behavior": "deny", "message": "no: use cents"}));
        let halt = printed(json!({"behavior": "deny", "interrupt": true}));
        let rule = printed(json!({"behavior": "allow", "updatedPermissions":
            [{"rules": [{"ruleContent": "ls"}]}]}));
        let chosen = printed(json!({"behavior": "allow", "updatedInput":
            {"answers": {"Which?": "A", "What?": "B, C"}}}));
        let plan = printed(json!({"behavior": "allow", "updatedInput": {"plan": "1. x"}}));
        let reason = Some(Text::new("分", "use cents"));
        let plans = [
            (
                Prints::Answers(vec!["A".to_owned(), "B, C".to_owned()]),
                &chosen,
            ),
            (Prints::Plan, &plan),
            (Prints::Allow, &allow),
            (Prints::AllowWithRule("ls"), &rule),
            (Prints::Deny(reason), &deny),
            (Prints::Interrupt, &halt),
        ];
        for (i, (plan, _)) in plans.iter().enumerate() {
            for (j, (_, printed)) in plans.iter().enumerate() {
                assert_eq!(fits(plan, printed).is_ok(), i == j, "{plan:?} {printed:?}");
            }
            assert!(fits(&Prints::Nothing, plans[i].1).is_err());
        }
    }
}
