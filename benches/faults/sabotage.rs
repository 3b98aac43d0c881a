//! What a broken nod would have left behind, one kind for each invariant, so
//! that the checker can be seen to notice it.

use std::collections::HashSet;

use super::checker::Invariant;
use super::histories::{Held, Histories, Said, Seen};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    Invented,
    Doubled,
    Lost,
    Hung,
    Lie,
    Rule,
    Swapped,
    Leak,
    Rerun,
    Rejected,
    Denied,
}

impl Sabotage {
    pub(crate) const ALL: [Self; 11] = [
        Self::Invented,
        Self::Doubled,
        Self::Lost,
        Self::Hung,
        Self::Lie,
        Self::Rule,
        Self::Swapped,
        Self::Leak,
        Self::Rerun,
        Self::Rejected,
        Self::Denied,
    ];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == text)
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invented => "invented",
            Self::Doubled => "doubled",
            Self::Lost => "lost",
            Self::Hung => "hung",
            Self::Lie => "lie",
            Self::Rule => "rule",
            Self::Swapped => "swapped",
            Self::Leak => "leak",
            Self::Rerun => "rerun",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
        }
    }

    /// The one that must notice it.
    pub(crate) fn breaks(self) -> Invariant {
        match self {
            Self::Invented => Invariant::NoInvention,
            Self::Doubled => Invariant::OneOutcome,
            Self::Lost => Invariant::NoFalseSuccess,
            Self::Hung => Invariant::NoHang,
            Self::Lie => Invariant::TrueCards,
            Self::Rule => Invariant::RulesOfTheWinner,
            Self::Swapped => Invariant::SameInput,
            Self::Leak => Invariant::Bounded,
            Self::Rerun => Invariant::MessagesOnce,
            Self::Rejected => Invariant::FailToTerminal,
            Self::Denied => Invariant::RanIsSaid,
        }
    }

    /// Alters one entry; `None` when the run holds nothing to alter.
    pub(crate) fn commit(self, histories: &mut Histories) -> Option<()> {
        match self {
            // A decision whose tap nobody made.
            Self::Invented => {
                let mut endings = histories.endings.iter_mut();
                let ending =
                    endings.find(|it| it.decision == "allow" || it.decision == "always")?;
                ending.event = Some("nobody".to_owned());
            }
            Self::Doubled => {
                let ending = histories.endings.last()?.clone();
                histories.endings.push(ending);
            }
            // A hook that never heard what its person was told.
            Self::Lost => {
                let is_success =
                    |seen: &Seen| matches!(seen, Seen::Toast { kind, .. } if kind == "success");
                let applied: HashSet<_> = histories
                    .taps
                    .iter()
                    .filter(|tap| is_success(&tap.seen))
                    .map(|tap| tap.request.clone())
                    .collect();
                let mut hooks = histories.asked.iter_mut();
                let hook = hooks.find(|asked| {
                    let its = asked.request.as_ref();
                    !asked.killed && its.is_some_and(|id| applied.contains(id))
                })?;
                hook.printed.clear();
            }
            Self::Hung => histories.asked.last_mut()?.took_ms = histories.patience_ms + 1,
            Self::Lie => "已批准".clone_into(find_denied(histories)?),
            Self::Rule => {
                let rule = histories.rules.first()?.clone();
                histories.rules.push(rule);
            }
            // Shown for one input, printed for another.
            Self::Swapped => {
                let mut hooks = histories.asked.iter_mut();
                let hook = hooks.find(|asked| !asked.printed.is_empty())?;
                hook.digest = "0".repeat(64);
            }
            Self::Leak => histories.held.push(Held {
                kib: histories.most.kib + 1,
                ..Held::default()
            }),
            // A reply that was pushed again and counted again.
            Self::Rerun => {
                let events: HashSet<_> = histories
                    .taps
                    .iter()
                    .filter(|tap| tap.seen == Seen::Words)
                    .map(|tap| tap.event.clone())
                    .collect();
                let ran = |event: &Option<String>| {
                    event.as_ref().is_some_and(|event| events.contains(event))
                };
                let ending = histories.endings.iter().find(|it| ran(&it.event))?;
                let mut again = ending.clone();
                again.request.push_str("-again");
                histories.endings.push(again);
            }
            // A time-out that Claude Code hears of as a person's no.
            Self::Rejected => {
                let decided: HashSet<_> = histories
                    .endings
                    .iter()
                    .filter(|it| it.operator.is_some())
                    .map(|it| it.request.as_str())
                    .collect();
                let mut hooks = histories.asked.iter_mut();
                let hook = hooks.find(|asked| {
                    let its = asked.request.as_deref();
                    asked.printed.is_empty() && its.is_none_or(|id| !decided.contains(id))
                })?;
                hook.printed.push(Said::Deny { interrupt: false });
            }
            // The terminal's yes, and a card that still says no.
            Self::Denied => {
                let ran = histories.asked.iter().filter(|asked| asked.ran);
                let ran: HashSet<_> = ran.filter_map(|asked| asked.request.clone()).collect();
                let mut faces = histories.faces.iter_mut();
                let face = faces.find(|face| ran.contains(&face.request))?;
                "已拒绝".clone_into(&mut face.title);
            }
        }
        Some(())
    }
}

/// The title of a card that says something else than "allowed".
fn find_denied(histories: &mut Histories) -> Option<&mut String> {
    let mut faces = histories.faces.iter_mut();
    let face = faces.find(|face| !face.title.starts_with("已批准"))?;
    Some(&mut face.title)
}
