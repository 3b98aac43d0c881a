//! Random lives of a session, held against what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const LIVES: u64 = 10_000;
const STEPS: usize = 40;

/// A small generator of our own, so that every failure names its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let n = u64::try_from(from.len()).expect("a small list");
        (n > 0).then(|| &from[usize::try_from(self.below(n)).expect("a small index")])
    }
}

/// What the outside world knows, written without looking inside the session.
#[derive(Default)]
struct World {
    alive: Option<ChildNo>,
    closing: bool,
    asked: BTreeSet<String>,
    settled: BTreeMap<String, AskEnding>,
    verdicts: BTreeSet<String>,
    allowed_by_a_person: BTreeSet<String>,
    said: BTreeSet<String>,
    fates: BTreeMap<String, TextFate>,
    /// Texts the present child got and has not ended.
    held: Vec<(String, bool)>,
    told_lost: usize,
}

impl World {
    fn see(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Start { child, .. } => {
                    assert_eq!(self.alive, None, "two children");
                    self.alive = Some(*child);
                    self.closing = false;
                    self.held.clear();
                }
                Effect::Write { child, say } => {
                    assert_eq!(self.alive, Some(*child), "written to nobody");
                    assert!(!self.closing, "written after the end");
                    match say {
                        Say::Text { uuid, .. } => self.held.push((uuid.clone(), false)),
                        Say::Verdict { request, verdict } => {
                            assert!(self.verdicts.insert(request.clone()), "answered twice");
                            if matches!(verdict, ToolVerdict::Allow { .. }) {
                                assert!(
                                    self.allowed_by_a_person.contains(request),
                                    "allowed by nobody"
                                );
                            }
                        }
                        Say::SetMode { .. } => {}
                        other => panic!("unexpected {other:?}"),
                    }
                }
                Effect::Close { child } => {
                    assert_eq!(self.alive, Some(*child));
                    assert!(!self.closing, "closed twice");
                    self.closing = true;
                }
                Effect::AskPermission { ask, .. } | Effect::AskQuestion { ask, .. } => {
                    assert!(self.asked.insert(ask.to_string()), "asked twice");
                }
                Effect::Settle { ask, ending } => {
                    let ask = ask.to_string();
                    assert!(self.asked.contains(&ask), "settled, never asked");
                    let before = self.settled.insert(ask, ending.clone());
                    assert_eq!(before, None, "settled twice");
                }
                Effect::Fate { uuid, fate } => {
                    assert!(self.said.contains(uuid));
                    let before = self.fates.insert(uuid.clone(), *fate);
                    assert_eq!(before, None, "a text ended twice");
                    self.held.retain(|(held, _)| held != uuid);
                }
                Effect::Tell(Notice::NotCarriedOut { texts }) => self.told_lost += texts,
                Effect::Tell(Notice::TooManyTexts) => self.told_lost += 1,
                Effect::Tell(_) | Effect::Progress(_) | Effect::Finished(_) => {}
            }
        }
    }

    fn open(&self) -> Vec<String> {
        let open = self
            .asked
            .iter()
            .filter(|ask| !self.settled.contains_key(*ask));
        open.cloned().collect()
    }
}

/// One random event, likely or not.
fn event(chance: &mut Chance, world: &mut World, serial: usize, now: &mut Millis) -> SessionInput {
    let child = match chance.below(20) {
        0 => world.alive.unwrap_or(1).saturating_sub(1),
        _ => world.alive.unwrap_or(1),
    };
    let open = world.open();
    let some_ask = if chance.below(8) == 0 {
        world.asked.iter().next().cloned()
    } else {
        chance.pick(&open).cloned()
    };
    match chance.below(14) {
        0 | 1 => {
            let uuid = format!("t{serial}");
            world.said.insert(uuid.clone());
            text(&uuid)
        }
        2 => line(child, &init()),
        3 => {
            let held: Vec<String> = world.held.iter().map(|(uuid, _)| uuid.clone()).collect();
            let uuid = chance.pick(&held).cloned().unwrap_or_default();
            let state = ["queued", "started", "completed", "cancelled"];
            line(child, &stage(&uuid, chance.pick(&state).expect("a state")))
        }
        4 => line(child, &wants(&format!("r{serial}"), "Bash", &json!({}))),
        5 => line(child, &question(&format!("q{serial}"))),
        6 | 7 => match some_ask {
            Some(id) => {
                world.allowed_by_a_person.insert(id.clone());
                SessionInput::Decided {
                    ask: ask(&id),
                    verdict: ToolVerdict::Allow {
                        input: json!({}),
                        updates: Vec::new(),
                    },
                }
            }
            None => SessionInput::Tick,
        },
        8 => line(child, &result("x")),
        9 => match some_ask {
            Some(request) => line(
                child,
                &json!({"type":"control_cancel_request","request_id":request}),
            ),
            None => line(
                child,
                &json!({"type":"assistant","message":{"content":"hm"}}),
            ),
        },
        10 => match chance.below(3) {
            0 => SessionInput::Command(SessionCommand::Stop),
            1 => SessionInput::Command(SessionCommand::Mode(Mode::Plan)),
            _ => SessionInput::Command(SessionCommand::Elsewhere),
        },
        11 if world.alive.is_some() && chance.below(3) == 0 => {
            if Some(child) == world.alive {
                world.alive = None;
                world.closing = false;
            }
            let exits = [
                Exit::Finished,
                Exit::UnknownSession,
                Exit::Crashed {
                    code: None,
                    words: None,
                },
            ];
            ended(child, chance.pick(&exits).expect("an exit").clone())
        }
        12 => {
            *now += [100, 60_000, 121_000, 31 * MINUTE][usize::try_from(chance.below(4)).unwrap()];
            SessionInput::Tick
        }
        _ => {
            *now += 10;
            SessionInput::Tick
        }
    }
}

fn live(seed: u64) -> World {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut session = session();
    let mut world = World::default();
    let mut now = 0;
    for serial in 0..STEPS {
        let input = event(&mut chance, &mut world, serial, &mut now);
        let ticked = input == SessionInput::Tick;
        world.see(&session.on(input, now));
        if ticked {
            assert!(session.wake_at().is_none_or(|at| at > now), "overslept");
        }
        let waits = matches!(
            session.status(),
            SessionStatus::WaitingForInput | SessionStatus::WaitingForConfirmation
        );
        assert_eq!(waits, !world.open().is_empty(), "status and asks agree");
        assert_eq!(session.saved().asks.len(), world.open().len());
    }
    // Let it end: everything must have been brought to an end by then.
    world.see(&session.on(SessionInput::Command(SessionCommand::Stop), now));
    while let Some(child) = world.alive.take() {
        world.closing = false;
        world.see(&session.on(ended(child, Exit::Killed), now));
    }
    assert_eq!(session.status(), SessionStatus::Idle);
    assert!(
        world.open().is_empty(),
        "asks left open: {:?}",
        world.open()
    );
    let ended: BTreeSet<_> = world.fates.keys().cloned().collect();
    assert_eq!(ended, world.said, "every text has its fate");
    let lost = world
        .fates
        .values()
        .filter(|f| **f == TextFate::Lost)
        .count();
    assert!(
        lost <= world.told_lost,
        "{lost} lost, {} told",
        world.told_lost
    );
    world
}

#[test]
fn ten_thousand_random_lives_keep_every_promise() {
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 1..=LIVES {
        let life = std::panic::catch_unwind(|| live(seed));
        let world = life.unwrap_or_else(|_| panic!("life {seed} broke a promise"));
        let asks = world.settled.values().map(|ending| format!("{ending:?}"));
        let texts = world.fates.values().map(|fate| format!("{fate:?}"));
        for ending in asks.chain(texts) {
            *endings.entry(ending).or_default() += 1;
        }
    }
    // A model that never meets an ending proves nothing about it.
    for ending in [
        "Decided",
        "TimedOut",
        "Cancelled",
        "Withdrawn",
        "ChildGone",
        "Done",
        "Failed",
        "Lost",
    ] {
        let times = endings.get(ending).copied().unwrap_or_default();
        assert!(times > 100, "{ending} came up {times} times");
    }
}
