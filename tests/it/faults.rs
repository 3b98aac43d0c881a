//! The checker of the fault runs (`cargo bench --bench faults`) can fail: each
//! thing a broken nod would leave behind is noticed, and a clean history is not.

#[path = "../../benches/faults/checker.rs"]
mod checker;
#[path = "../../benches/faults/histories.rs"]
mod histories;
#[path = "../../benches/faults/sabotage.rs"]
mod sabotage;

use checker::{Fault, Invariant, check};
use histories::{Asked, Ending, Face, Held, Histories, Said, Seen, Tap};
use sabotage::Sabotage;

const OWNER: &str = "ou_owner";

/// Five hooks: an old client allowed for good by a tap, one left to the
/// terminal, one denied in writing, one allowed for its session, and one denied
/// although the terminal had allowed it.
fn clean() -> Histories {
    let asked = |number, request: &str, printed: &[Said]| Asked {
        number,
        request: Some(request.to_owned()),
        digest: "d1".to_owned(),
        printed: printed.to_vec(),
        old: true,
        took_ms: 20,
        cards: 1,
        card_shows_digest: true,
        ..Asked::default()
    };
    let ending = |request: &str, decision: &str, event: Option<&str>, rule: Option<&str>| Ending {
        request: request.to_owned(),
        decision: decision.to_owned(),
        operator: event.map(|_| OWNER.to_owned()),
        event: event.map(str::to_owned),
        digest: "d1".to_owned(),
        rule: rule.map(str::to_owned),
        corrected: false,
    };
    let tap = |request: &str, event: &str, action| Tap {
        request: request.to_owned(),
        event: event.to_owned(),
        action,
        by_owner: true,
        seen: Seen::Nothing,
        blurred: false,
        swallowed: false,
        took_back: false,
    };
    let face = |request: &str, title: &str| Face {
        request: request.to_owned(),
        title: title.to_owned(),
        can_be_tapped: false,
    };
    let most = Held {
        kib: 10,
        files: 10,
        disk_kib: 10,
    };
    Histories {
        owner: OWNER.to_owned(),
        patience_ms: 1_000,
        most,
        true_after_ms: 3_000,
        true_within_ms: 5_000,
        asked: vec![
            asked(1, "r1", &[Said::Allow]),
            asked(2, "r2", &[]),
            asked(3, "r3", &[Said::Deny { interrupt: false }]),
            Asked {
                old: false,
                handed: vec!["Bash(ls)".to_owned()],
                ..asked(4, "r4", &[Said::Allow])
            },
            Asked {
                ran: true,
                ..asked(5, "r5", &[Said::Deny { interrupt: false }])
            },
        ],
        taps: vec![
            Tap {
                seen: toast("success", "已始终允许，后续相同操作将自动批准"),
                ..tap("r1", "e1", "always")
            },
            Tap {
                seen: Seen::Words,
                ..tap("r3", "e3", "deny")
            },
            tap("r4", "e4", "session"),
            Tap {
                seen: Seen::Words,
                ..tap("r5", "e5", "deny")
            },
        ],
        endings: vec![
            ending("r1", "always", Some("e1"), Some("Bash(make)")),
            ending("r2", "timeout", None, None),
            ending("r3", "deny", Some("e3"), None),
            ending("r4", "session", Some("e4"), Some("Bash(ls)")),
            Ending {
                corrected: true,
                ..ending("r5", "deny", Some("e5"), None)
            },
        ],
        faces: vec![
            face("r1", "已始终允许"),
            face("r2", "已超时"),
            face("r3", "已拒绝"),
            face("r4", "本次会话已允许"),
            face("r5", "已在终端批准"),
        ],
        rules: vec!["Bash(make)".to_owned()],
        held: vec![most],
    }
}

fn toast(kind: &str, content: &str) -> Seen {
    Seen::Toast {
        kind: kind.to_owned(),
        content: content.to_owned(),
    }
}

#[test]
fn every_refusal_of_nods_is_read_as_what_it_means() {
    assert_eq!(checker::misread(), []);
}

#[test]
fn a_clean_history_has_no_findings_and_is_judged_by_every_invariant() {
    let verdict = check(&clean());
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
    assert_eq!((verdict.applied, verdict.unconfirmed), (1, 1));
    for (number, invariant) in Invariant::ALL.into_iter().enumerate() {
        let id = format!("I{} ", number + 1);
        assert!(invariant.name().starts_with(&id), "{}", invariant.name());
        assert!(verdict.times(invariant) > 0, "{}", invariant.name());
    }
}

#[test]
fn what_was_never_judged_does_not_pass() {
    let verdict = check(&Histories::default());
    for invariant in Invariant::ALL {
        let judged = invariant == Invariant::TrueCards;
        let broken = usize::from(!judged);
        assert_eq!(verdict.broken(invariant), broken, "{}", invariant.name());
    }
}

#[test]
fn every_sabotage_is_noticed_for_what_it_is() {
    let mut broken = Vec::new();
    for sabotage in Sabotage::ALL {
        let mut histories = clean();
        sabotage.commit(&mut histories).expect("something to alter");
        let verdict = check(&histories);
        broken.push(sabotage.breaks());
        assert!(verdict.broken(sabotage.breaks()) > 0, "{}", sabotage.name());
        assert_eq!(Sabotage::parse(sabotage.name()), Some(sabotage));
        assert!(Sabotage::names().contains(sabotage.name()));
    }
    assert_eq!(broken, Invariant::ALL, "one for each");
}

type Alter = fn(&mut Histories);

/// What a broken nod would leave, the invariant it breaks, and how it counts.
fn broken() -> [(&'static str, Invariant, Fault, Alter); 19] {
    use Fault::{Doubled, Invented, Lost, Other};
    [
        ("no record of it", Invariant::NoFalseSuccess, Lost, |h| {
            h.endings[0].event = None;
        }),
        ("printed twice", Invariant::OneOutcome, Doubled, |h| {
            h.asked[0].printed.push(Said::Allow);
        }),
        ("two cards", Invariant::OneOutcome, Doubled, |h| {
            h.asked[0].cards = 2;
        }),
        ("by a stranger", Invariant::NoInvention, Invented, |h| {
            h.taps[0].by_owner = false;
        }),
        ("another action", Invariant::NoInvention, Invented, |h| {
            h.taps[0].action = "deny";
        }),
        ("another input", Invariant::SameInput, Invented, |h| {
            "d2".clone_into(&mut h.asked[0].digest);
        }),
        (
            "a card of another input",
            Invariant::SameInput,
            Other,
            |h| {
                h.asked[1].card_shows_digest = false;
            },
        ),
        (
            "deny out of a time-out",
            Invariant::FailToTerminal,
            Invented,
            |h| {
                h.asked[1].printed.push(Said::Deny { interrupt: false });
            },
        ),
        (
            "an owner called a stranger",
            Invariant::TrueCards,
            Other,
            |h| {
                h.taps[0].seen = toast("error", "你不在审批人名单中，操作未生效");
            },
        ),
        ("a card that lies", Invariant::TrueCards, Other, |h| {
            "已批准".clone_into(&mut h.faces[1].title);
        }),
        ("a card still open", Invariant::TrueCards, Other, |h| {
            h.faces[0].can_be_tapped = true;
        }),
        (
            "put back by a tap nod could have known of",
            Invariant::TrueCards,
            Other,
            |h| {
                h.faces[0].can_be_tapped = true;
                h.taps[0].took_back = true;
                h.taps[0].seen = Seen::Nothing;
            },
        ),
        ("true too late", Invariant::TrueCards, Other, |h| {
            h.true_after_ms = 5_001;
        }),
        ("a hook that hangs", Invariant::NoHang, Other, |h| {
            h.asked[1].took_ms = 1_001;
        }),
        (
            "a rule nobody left",
            Invariant::RulesOfTheWinner,
            Invented,
            |h| {
                h.rules.push("Bash(rm)".to_owned());
            },
        ),
        (
            "a rule that was not saved",
            Invariant::RulesOfTheWinner,
            Lost,
            |h| {
                h.rules.clear();
            },
        ),
        (
            "a rule handed on unasked",
            Invariant::RulesOfTheWinner,
            Other,
            |h| {
                h.asked[3].handed = vec!["Bash(rm)".to_owned()];
            },
        ),
        ("too many files", Invariant::Bounded, Other, |h| {
            h.held[0].files = 11;
        }),
        ("never over", Invariant::OneOutcome, Other, |h| {
            h.endings.pop();
        }),
    ]
}

#[test]
fn what_must_never_be_is_noticed() {
    for (what, invariant, fault, alter) in broken() {
        let mut histories = clean();
        alter(&mut histories);
        let verdict = check(&histories);
        let findings = &verdict.findings;
        let mut noticed = findings.iter().filter(|it| it.invariant == invariant);
        let fits = noticed.any(|it| it.fault == fault && !it.what.is_empty());
        assert!(fits, "{what}: {findings:?}");
        assert!(verdict.count(fault) > 0, "{what}");
    }
}

#[test]
fn only_a_tap_that_left_no_trace_excuses_a_card_that_was_put_back() {
    type Alter = fn(&mut Tap);
    let cases: [(&str, Alter, bool); 3] = [
        ("Feishu never sent it", |tap| tap.swallowed = true, true),
        ("a byte of it was altered", |tap| tap.blurred = true, true),
        ("it was lost with its connection", |_| {}, false),
    ];
    for (what, alter, excused) in cases {
        let mut histories = clean();
        histories.faces[3].can_be_tapped = true;
        histories.taps[2].took_back = true;
        alter(&mut histories.taps[2]);
        let verdict = check(&histories);
        assert_eq!(verdict.findings.is_empty(), excused, "{what}");
        assert_eq!(verdict.taken_back, u64::from(excused), "{what}");
        // As it was before it was put right.
        let mut histories = clean();
        histories.faces[4].title = "已拒绝".to_owned();
        histories.taps[3].took_back = true;
        alter(&mut histories.taps[3]);
        let verdict = check(&histories);
        assert_eq!(verdict.broken(Invariant::TrueCards) == 0, excused, "{what}");
        assert_eq!(verdict.taken_back, u64::from(excused), "{what}");
    }
}
