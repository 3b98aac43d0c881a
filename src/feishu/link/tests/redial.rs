//! When the next dial is made, and what a refusal means for it.

use super::*;

#[test]
fn sleep_ends_any_wait_for_the_next_dial() {
    let mut bench = Bench::new();
    bench.steps();
    bench.link.dial_failed(
        DialRetry::Slowly(secs(300)),
        Text::new("没有此应用", "no such app"),
        bench.now,
    );
    bench.now.wall += secs(3_600);
    let seen = bench.pass(secs(1));
    assert!(
        seen.iter().any(|(_, step)| *step == LinkStep::Dial),
        "{seen:?}"
    );
}

#[test]
fn the_first_redial_is_immediate_and_later_ones_back_off() {
    let mut bench = Bench::up();
    bench.pass_alive(secs(60));
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    let seen = bench.pass(millis(250));
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].1, LinkStep::Dial);
    let mut waits = Vec::new();
    for _ in 0..9 {
        bench
            .link
            .dial_failed(DialRetry::Soon, Text::new("refused", "refused"), bench.now);
        let start = bench.now.mono;
        while !bench
            .pass(millis(10))
            .iter()
            .any(|(_, s)| *s == LinkStep::Dial)
        {}
        waits.push((bench.now.mono - start).as_secs_f64());
    }
    assert!(waits.windows(2).all(|w| w[1] > w[0] * 0.6), "{waits:?}");
    assert!(
        waits[0] < 1.3 && *waits.last().unwrap() <= 15.1,
        "{waits:?}"
    );
}

#[test]
fn connections_that_die_young_back_off_too() {
    let mut bench = Bench::up();
    let mut total = Duration::ZERO;
    for _ in 0..10 {
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        let start = bench.now.mono;
        while !bench
            .pass(millis(50))
            .iter()
            .any(|(_, s)| *s == LinkStep::Dial)
        {}
        total += bench.now.mono - start;
        bench.dialed();
        bench.steps();
    }
    assert!(total > secs(50), "{total:?}");
}

#[test]
fn a_fatal_refusal_is_shown_and_retried_slowly_for_ever() {
    let mut bench = Bench::new();
    bench.steps();
    for _ in 0..5 {
        bench.link.dial_failed(
            DialRetry::Slowly(secs(300)),
            Text::new("密钥不对", "the app secret is wrong"),
            bench.now,
        );
        assert!(
            matches!(bench.link.phase(), Phase::Degraded { why, .. } if why.get(Lang::En).contains("secret"))
        );
        let seen = bench.pass(secs(331));
        let dials: Vec<_> = seen.iter().filter(|(_, s)| *s == LinkStep::Dial).collect();
        assert_eq!(dials.len(), 1);
        assert!(dials[0].0 >= secs(240));
    }
}

#[test]
fn a_hundred_drops_leave_one_peer_and_one_ping_timer() {
    let mut bench = Bench::up();
    for _ in 0..100 {
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        while !bench
            .pass(secs(1))
            .iter()
            .any(|(_, s)| *s == LinkStep::Dial)
        {}
        bench.dialed();
        assert_eq!(bench.steps(), [ping()]);
        let seen = bench.pass_alive(secs(121));
        let pings = seen.iter().filter(|(_, s)| *s == ping()).count();
        assert_eq!(pings, 1);
        assert!(!seen.iter().any(|(_, s)| *s == LinkStep::Dial));
    }
}

/// The pauses before each further dial when every one is refused like this.
fn pauses(bench: &mut Bench, retry: DialRetry, times: usize) -> Vec<f64> {
    let mut pauses = Vec::new();
    for _ in 0..times {
        let why = Text::new("拒绝", "refused");
        bench.link.dial_failed(retry, why, bench.now);
        let from = bench.now.mono;
        while !bench
            .pass(millis(10))
            .iter()
            .any(|(_, s)| *s == LinkStep::Dial)
        {}
        pauses.push((bench.now.mono - from).as_secs_f64());
    }
    pauses
}

fn within_limits(pauses: &[f64], limits: &[f64]) {
    assert_eq!(pauses.len(), limits.len());
    for (pause, limit) in pauses.iter().zip(limits) {
        assert!(*pause <= limit + 0.02, "{pauses:?}");
        assert!(*pause >= limit * 0.79, "{pauses:?}");
    }
}

fn lost() -> Bench {
    let mut bench = Bench::up();
    bench.pass_alive(secs(60));
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    bench.pass(millis(250));
    bench
}

#[test]
fn a_refusal_said_once_to_an_app_that_was_let_in_is_not_believed() {
    let refuse = DialRetry::Slowly(secs(300));
    let mut bench = lost();
    for pause in [1, 3, 10] {
        let why = Text::new("拒绝", "refused");
        bench.link.dial_failed(refuse, why, bench.now);
        assert!(matches!(bench.link.phase(), Phase::Waiting { .. }));
        let seen = bench.pass(secs(pause));
        assert!(seen.iter().any(|(_, s)| *s == LinkStep::Dial), "{pause}");
    }
    let why = Text::new("拒绝", "refused");
    bench.link.dial_failed(refuse, why, bench.now);
    assert!(matches!(bench.link.phase(), Phase::Degraded { .. }));
    // Let in again, the next one is in doubt as well.
    bench.dialed();
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    while !bench
        .pass(millis(50))
        .iter()
        .any(|(_, s)| *s == LinkStep::Dial)
    {}
    within_limits(&pauses(&mut bench, refuse, 2), &[1.0, 3.0]);
}

#[test]
fn the_limit_of_connections_is_tried_again_and_never_called_the_users_to_change() {
    let mut bench = lost();
    let tries = pauses(&mut bench, DialRetry::Crowded, 7);
    within_limits(&tries, &[1.0, 3.0, 10.0, 15.0, 15.0, 15.0, 15.0]);
    let mut bench = Bench::new();
    bench.steps();
    let tries = pauses(&mut bench, DialRetry::Crowded, 5);
    within_limits(&tries, &[10.0, 15.0, 15.0, 15.0, 15.0]);
    let why = Text::new("满", "full");
    bench.link.dial_failed(DialRetry::Crowded, why, bench.now);
    assert!(matches!(bench.link.phase(), Phase::Waiting { .. }));
}

#[test]
fn somebody_who_comes_to_wait_ends_any_pause() {
    let mut bench = lost();
    pauses(&mut bench, DialRetry::Soon, 9);
    let why = Text::new("断网", "no network");
    bench.link.dial_failed(DialRetry::Soon, why, bench.now);
    assert_eq!(bench.pass(secs(2)), [], "the pause is long by now");
    bench.link.set_hot(true, bench.now);
    assert_eq!(bench.steps(), [LinkStep::Dial]);
    bench.link.set_hot(true, bench.now);
    assert_eq!(bench.steps(), [], "one dial at a time begins");
}

#[test]
fn a_standing_refusal_is_tried_every_ten_seconds_while_somebody_waits() {
    let mut bench = Bench::new();
    bench.steps();
    bench.link.set_hot(true, bench.now);
    let tries = pauses(&mut bench, DialRetry::Slowly(secs(300)), 4);
    within_limits(&tries, &[10.0; 4]);
}

/// A network that is there or not, and what a dial into it comes to.
struct Network {
    /// Whether a dial into a dead network hangs rather than fails.
    hangs: bool,
    back_at: Instant,
    /// When each dial under way began.
    dials: Vec<Instant>,
}

impl Network {
    const TAKES: Duration = Duration::from_millis(300);
    const GIVES_UP: Duration = Duration::from_secs(10);

    /// What became of the dials by now: `true` when one got through.
    fn settle(&mut self, bench: &mut Bench) -> bool {
        let now = bench.now.mono;
        let (back_at, hangs) = (self.back_at, self.hangs);
        let through = |begun: &Instant| *begun >= back_at && now >= *begun + Self::TAKES;
        if self.dials.iter().any(through) {
            self.dials.clear();
            return true;
        }
        let failed =
            |begun: &Instant| *begun < back_at && (!hangs || now >= *begun + Self::GIVES_UP);
        let before = self.dials.len();
        self.dials.retain(|begun| !failed(begun));
        for _ in self.dials.len()..before {
            let why = Text::new("断网", "no network");
            bench.link.dial_failed(DialRetry::Soon, why, bench.now);
        }
        false
    }
}

/// How long after the network's return the link is up again.
fn outage(bench: &mut Bench, lasts: Duration, hangs: bool) -> Duration {
    let back_at = bench.now.mono + lasts;
    let dials = Vec::new();
    let mut network = Network {
        hangs,
        back_at,
        dials,
    };
    if hangs {
        // Nothing says that the line is dead but its silence.
        let silent = bench.pass(lasts.min(secs(7)));
        if !silent.iter().any(|(_, s)| *s == LinkStep::HangUp) {
            return Duration::ZERO;
        }
        let dialed = silent.iter().filter(|(_, s)| *s == LinkStep::Dial).count();
        network.dials = vec![bench.now.mono; dialed];
    } else {
        bench.link.lost(Text::new("reset", "reset"), bench.now);
    }
    loop {
        let seen = bench.pass(millis(20));
        assert!(network.dials.len() <= 10, "dials pile up");
        let begun = seen.iter().filter(|(_, s)| *s == LinkStep::Dial).count();
        network.dials.extend(vec![bench.now.mono; begun]);
        if network.settle(bench) {
            bench.dialed();
            bench.steps();
            return bench.now.mono.saturating_duration_since(back_at);
        }
    }
}

#[test]
fn while_somebody_waits_nod_is_back_within_two_seconds_of_the_networks_return() {
    for seed in 0..200 {
        for hangs in [false, true] {
            let mut bench = Bench::new();
            bench.link.rng = seed;
            bench.steps();
            bench.dialed();
            bench.link.set_hot(true, bench.now);
            bench.steps();
            for seconds in [2, 5, 10, 20, 60, 2, 2] {
                let lasts = secs(seconds) + millis(seed * 7);
                let late = outage(&mut bench, lasts, hangs);
                assert!(late <= secs(2), "{seconds} s, hangs: {hangs}: {late:?}");
                bench.pass_alive(secs(3));
            }
        }
    }
}

/// Seven faults, each made good by a connection that soon breaks.
fn seven_faults() -> Bench {
    let mut bench = lost();
    for retry in [
        DialRetry::Slowly(secs(300)),
        DialRetry::Crowded,
        DialRetry::Soon,
        DialRetry::Soon,
        DialRetry::Soon,
        DialRetry::Soon,
    ] {
        pauses(&mut bench, retry, 1);
        bench.dialed();
        bench.steps();
        bench.link.lost(Text::new("reset", "reset"), bench.now);
        while !bench
            .pass(millis(50))
            .iter()
            .any(|(_, s)| *s == LinkStep::Dial)
        {}
    }
    bench.dialed();
    bench.steps();
    bench
}

#[test]
fn after_any_number_of_faults_an_idle_link_is_back_in_fifteen_seconds() {
    let mut bench = seven_faults();
    for seconds in [5, 1, 60] {
        let late = outage(&mut bench, secs(seconds), false);
        assert!(late <= secs(15) + Network::TAKES, "{seconds} s: {late:?}");
    }
}

#[test]
fn who_comes_to_wait_or_writes_makes_the_pauses_short_again() {
    let event = || push("event", "m1", "1", "0", b"{}");
    for writes in [false, true] {
        let mut bench = seven_faults();
        if writes {
            bench.receive(&event());
        } else {
            bench.link.set_hot(true, bench.now);
            bench.link.set_hot(false, bench.now);
        }
        bench.steps();
        let late = outage(&mut bench, secs(2), false);
        assert!(late <= secs(2), "writes: {writes}: {late:?}");
    }
    let mut bench = seven_faults();
    bench.receive(&event());
    let late = outage(&mut bench, secs(40), false);
    assert!(
        late <= secs(2),
        "somebody is in the middle of a talk: {late:?}"
    );
}
