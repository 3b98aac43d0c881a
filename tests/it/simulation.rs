//! The pure cores together in virtual time: the link with its chunks, the
//! approvals, the cards and a session, between a Feishu, hooks and a Claude Code
//! that misbehave as a seed says. Days pass in seconds; the seed in a failure
//! replays it exactly.
//!
//! `NOD_SIMULATION_SEEDS=10000 cargo test --test it simulation`

mod cards;
mod feishu;
mod task;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use world::World;

const SEEDS: u64 = 300;

/// A mistake that the daemon around the cores could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// One event is not remembered, so that its copy counts again.
    ForgetsAnEvent,
    /// An ending is not on disk when the hook hears of it.
    WritesTooLate,
    /// A request that ran out of time is handed out as allowed.
    AllowsByDefault,
    /// A session hears of its child's death only by the next one.
    ForgetsAChild,
    /// The card book does not hear of taps.
    HidesTaps,
}

impl Bug {
    const ALL: [Self; 5] = [
        Self::ForgetsAnEvent,
        Self::WritesTooLate,
        Self::AllowsByDefault,
        Self::ForgetsAChild,
        Self::HidesTaps,
    ];
}

/// One life of everything, or what it broke.
fn play(seed: u64, bug: Option<Bug>) -> Result<World, String> {
    let life = AssertUnwindSafe(|| World::new(seed, bug).run());
    catch_unwind(life).map_err(|broken| {
        let words = broken.downcast_ref::<String>().cloned();
        let words = words.or_else(|| broken.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        words.unwrap_or_default()
    })
}

fn number_in(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// Plays every seed, on all cores.
fn play_all(seeds: std::ops::Range<u64>) -> Totals {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut totals = Totals::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return totals;
            }
            match play(seed, None) {
                Ok(world) => totals.add(&world),
                Err(broken) => panic!(
                    "seed {seed} broke: {broken}\nplay it again: \
                     NOD_SIMULATION_SEED={seed} cargo test --test it simulation"
                ),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut totals = Totals::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for one in running {
            match one.join() {
                Ok(more) => totals.join(&more),
                Err(broken) => std::panic::resume_unwind(broken),
            }
        }
    });
    totals
}

#[test]
fn the_cores_hold_together_for_every_seed() {
    if let Some(seed) = number_in("NOD_SIMULATION_SEED") {
        play_all(seed..seed + 1);
        return;
    }
    let seeds = number_in("NOD_SIMULATION_SEEDS").unwrap_or(SEEDS);
    let totals = play_all(0..seeds);
    crate::hooks::report(&format!("{seeds} seeds: {:?}", totals.0));
    for what in [
        "taps",
        "taps applied",
        "taps not confirmed",
        "crashes",
        "half-open lines",
        "connections",
        "sleeps",
        "texts carried out",
        "texts repeated by Feishu",
        "asks of a session decided",
        "asks of a session dropped",
        "children",
        "edits taken back",
        "cards looked for",
    ] {
        let times = totals.0.get(what).copied().unwrap_or(0);
        assert!(times >= seeds / 10, "{what}: only {times} times");
    }
}

#[test]
fn a_mistake_is_caught_and_its_seed_plays_it_again() {
    for bug in Bug::ALL {
        let caught = (0..200).find_map(|seed| Some((seed, play(seed, Some(bug)).err()?)));
        let Some((seed, broken)) = caught else {
            panic!("{bug:?} was not caught in 200 seeds");
        };
        crate::hooks::report(&format!("{bug:?} is caught by seed {seed}: {broken}"));
        assert!(broken.contains(&format!("seed {seed}")), "{broken}");
        let again = play(seed, Some(bug)).err();
        assert_eq!(again.as_ref(), Some(&broken), "the same seed, the same end");
        assert!(play(seed, None).is_ok(), "it is the mistake that breaks");
    }
}

/// What came up, and how often: a run that never meets a fault proves nothing
/// about it.
#[derive(Default)]
struct Totals(BTreeMap<&'static str, u64>);

impl Totals {
    fn add(&mut self, world: &World) {
        for (what, times) in world.counts() {
            *self.0.entry(what).or_default() += times;
        }
    }

    fn join(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }
}
