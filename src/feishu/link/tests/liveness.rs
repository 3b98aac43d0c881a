//! Whether the peer is alive: pings, silence, sleep, and lines too old to trust.

use super::*;

#[test]
fn pings_follow_the_servers_interval_and_its_changes() {
    let mut bench = Bench::up();
    let pings = |seen: Vec<(Duration, LinkStep)>| -> Vec<u64> {
        seen.into_iter()
            .filter(|(_, step)| *step == ping())
            .map(|(at, _)| at.as_secs())
            .collect()
    };
    assert_eq!(pings(bench.pass_alive(secs(250))), [120, 240]);
    bench.receive(&pong(r#"{"PingInterval":10}"#));
    assert_eq!(pings(bench.pass_alive(secs(25))), [1, 11, 21]);
}

#[test]
fn a_pong_without_usable_settings_changes_nothing() {
    for payload in ["", "{}", "not json", "[]", r#"{"PingInterval":0}"#] {
        let mut bench = Bench::up();
        bench.receive(&pong(payload));
        let pings = bench
            .pass_alive(secs(125))
            .into_iter()
            .filter(|(_, step)| *step == ping())
            .count();
        assert_eq!(pings, 1, "{payload}");
    }
}

#[test]
fn a_silent_peer_is_dead_within_twenty_seconds_idle_and_six_hot() {
    for (hot, limit) in [(false, 20), (true, 6)] {
        let mut bench = Bench::up();
        bench.link.set_hot(hot, bench.now);
        let seen = bench.pass(secs(60));
        let hang_up = seen
            .iter()
            .find(|(_, step)| *step == LinkStep::HangUp)
            .expect("the peer must be given up");
        assert_eq!(hang_up.0, secs(limit), "hot: {hot}");
        let probes: Vec<_> = seen
            .iter()
            .take_while(|(_, step)| *step != LinkStep::HangUp)
            .map(|(_, step)| step.clone())
            .collect();
        assert_eq!(
            probes,
            [LinkStep::Ping, ping()],
            "once in each kind of ping"
        );
        assert!(seen.iter().any(|(_, step)| *step == LinkStep::Dial));
    }
}

#[test]
fn one_lost_probe_does_not_cost_the_connection() {
    let mut bench = Bench::up();
    let seen = bench.pass(secs(14));
    assert_eq!(seen, [(secs(10), LinkStep::Ping)]);
    bench.link.received(Incoming::Pong, bench.now);
    assert_eq!(bench.pass(secs(9)), []);
    assert!(matches!(bench.link.phase(), Phase::Up { .. }));
}

#[test]
fn any_inbound_frame_is_life() {
    let frames: [Incoming; 6] = [
        Incoming::Pong,
        Incoming::Ping,
        Incoming::Text,
        Incoming::Binary(Bytes::from_static(b"\xff\xff")),
        Incoming::Binary(pong("{}").to_bytes()),
        Incoming::Binary(
            Frame {
                method: 2,
                ..Frame::default()
            }
            .to_bytes(),
        ),
    ];
    for frame in frames {
        let mut bench = Bench::up();
        for _ in 0..10 {
            bench.pass(secs(14));
            bench.link.received(frame.clone(), bench.now);
        }
        assert!(
            matches!(bench.link.phase(), Phase::Up { .. }),
            "{frame:?} was not taken for life"
        );
    }
}

#[test]
fn a_server_ping_is_not_answered() {
    let mut bench = Bench::up();
    let server_ping = Frame::ping(SERVICE);
    assert_eq!(bench.receive(&server_ping), []);
}

#[test]
fn after_sleep_the_peer_is_asked_at_once_and_given_up_in_four_seconds() {
    let mut bench = Bench::up();
    bench.pass_alive(secs(3));
    bench.now.wall += secs(600);
    let seen = bench.pass(secs(8));
    let at = |wanted: LinkStep| {
        seen.iter()
            .find(|(_, step)| *step == wanted)
            .map(|(at, _)| *at)
    };
    assert!(at(LinkStep::Ping).unwrap() <= secs(1), "{seen:?}");
    assert!(at(LinkStep::HangUp).unwrap() <= secs(5), "{seen:?}");
    assert!(at(LinkStep::Dial).unwrap() <= secs(6), "{seen:?}");
}

#[test]
fn a_peer_that_answers_after_sleep_is_kept() {
    let mut bench = Bench::up();
    bench.now.wall += secs(600);
    bench.pass(secs(1));
    bench.link.received(Incoming::Pong, bench.now);
    assert_eq!(bench.pass(secs(9)), []);
}

#[test]
fn a_clock_that_jumps_back_is_no_sleep() {
    let mut bench = Bench::up();
    bench.now.wall -= secs(3_600);
    assert_eq!(bench.pass(secs(2)), []);
}

#[test]
fn an_idle_connection_is_renewed_after_four_hours_and_a_busy_one_is_not() {
    let renewed = |seen: &[(Duration, LinkStep)]| seen.iter().any(|(_, s)| *s == LinkStep::HangUp);
    let mut idle = Bench::up();
    assert!(renewed(&idle.pass_alive(secs(4 * 3_600 + 2))));
    let mut hot = Bench::up();
    hot.link.set_hot(true, hot.now);
    assert!(!renewed(&hot.pass_alive(secs(4 * 3_600 + 2))));
}

/// Dies twice as long after its first hot probe as `after` says.
fn dies_behind_a_hot_probe(bench: &mut Bench, after: Duration) {
    let mut seen = bench.pass(secs(2));
    seen.retain(|(_, step)| *step == LinkStep::Ping);
    assert_eq!(seen.len(), 1, "it is asked at the hot pace");
    bench.link.received(Incoming::Pong, bench.now);
    while bench.now.mono < bench.link.last.mono + after {
        bench.now.mono += millis(100);
        bench.now.wall += millis(100);
    }
    bench.link.lost(Text::new("closed", "closed"), bench.now);
    while !bench
        .pass(millis(50))
        .iter()
        .any(|(_, s)| *s == LinkStep::Dial)
    {}
    bench.dialed();
    bench.steps();
}

#[test]
fn connections_that_die_of_our_pings_three_times_are_asked_every_ten_seconds() {
    let mut bench = Bench::up();
    bench.link.set_hot(true, bench.now);
    for _ in 0..2 {
        dies_behind_a_hot_probe(&mut bench, millis(500));
    }
    dies_behind_a_hot_probe(&mut bench, secs(6));
    for _ in 0..3 {
        dies_behind_a_hot_probe(&mut bench, millis(500));
    }
    for _ in 0..2 {
        let seen = bench.pass(secs(60));
        let probes: Vec<_> = seen.iter().filter(|(_, s)| *s == LinkStep::Ping).collect();
        assert_eq!(probes[0].0, secs(10), "{seen:?}");
        let dead = seen.iter().find(|(_, s)| *s == LinkStep::HangUp).unwrap();
        assert_eq!(dead.0, secs(14));
        bench.dialed();
        bench.steps();
    }
}
