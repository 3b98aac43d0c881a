//! When the next dial is made, and what a refusal means for it.

use super::*;

#[test]
fn sleep_ends_any_wait_for_the_next_dial() {
    let mut bench = Bench::new();
    bench.steps();
    bench.link.dial_failed(
        Retry::Slowly(secs(300)),
        Text::new("没有此应用", "no such app"),
        bench.now,
    );
    bench.now.wall += secs(3_600);
    let seen = bench.pass(secs(1));
    assert!(seen.iter().any(|(_, step)| *step == Step::Dial), "{seen:?}");
}

#[test]
fn the_first_redial_is_immediate_and_later_ones_back_off() {
    let mut bench = Bench::up();
    bench.pass_alive(secs(60));
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    let seen = bench.pass(millis(250));
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].1, Step::Dial);
    let mut waits = Vec::new();
    for _ in 0..9 {
        bench
            .link
            .dial_failed(Retry::Soon, Text::new("refused", "refused"), bench.now);
        let start = bench.now.mono;
        while !bench.pass(millis(10)).iter().any(|(_, s)| *s == Step::Dial) {}
        waits.push((bench.now.mono - start).as_secs_f64());
    }
    assert!(waits.windows(2).all(|w| w[1] > w[0] * 0.6), "{waits:?}");
    assert!(
        waits[0] < 1.3 && *waits.last().unwrap() <= 73.0,
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
        while !bench.pass(millis(50)).iter().any(|(_, s)| *s == Step::Dial) {}
        total += bench.now.mono - start;
        bench.dialed();
        bench.steps();
    }
    assert!(total > secs(100), "{total:?}");
}

#[test]
fn a_fatal_refusal_is_shown_and_retried_slowly_for_ever() {
    let mut bench = Bench::new();
    bench.steps();
    for _ in 0..5 {
        bench.link.dial_failed(
            Retry::Slowly(secs(300)),
            Text::new("密钥不对", "the app secret is wrong"),
            bench.now,
        );
        assert!(
            matches!(bench.link.phase(), Phase::Degraded { why, .. } if why.get(Lang::En).contains("secret"))
        );
        let seen = bench.pass(secs(331));
        let dials: Vec<_> = seen.iter().filter(|(_, s)| *s == Step::Dial).collect();
        assert_eq!(dials.len(), 1);
        assert!(dials[0].0 >= secs(270));
    }
}

#[test]
fn a_hundred_drops_leave_one_peer_and_one_ping_timer() {
    let mut bench = Bench::up();
    for _ in 0..100 {
        bench.link.lost(Text::new("closed", "closed"), bench.now);
        while !bench.pass(secs(1)).iter().any(|(_, s)| *s == Step::Dial) {}
        bench.dialed();
        assert_eq!(bench.steps(), [ping()]);
        let seen = bench.pass_alive(secs(121));
        let pings = seen.iter().filter(|(_, s)| *s == ping()).count();
        assert_eq!(pings, 1);
        assert!(!seen.iter().any(|(_, s)| *s == Step::Dial));
    }
}
