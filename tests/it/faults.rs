//! The checker of the fault runs (`cargo bench --bench faults`) can fail: each
//! thing a broken nod would leave behind is noticed, and a clean history is not.

#[path = "../../benches/faults/checker.rs"]
mod checker;

use checker::{Asked, Ending, Face, Fault, Histories, Sabotage, Said, Seen, Tap, check};

const OWNER: &str = "ou_owner";

/// Two hooks: one allowed by a tap, one left to the terminal.
fn clean() -> Histories {
    let asked = |number, request: &str, printed: &[Said]| Asked {
        number,
        request: Some(request.to_owned()),
        digest: "d1".to_owned(),
        printed: printed.to_vec(),
        killed: false,
        old: true,
        took_ms: 20,
        cards: 1,
    };
    let ending = |request: &str, decision: &str| Ending {
        request: request.to_owned(),
        decision: decision.to_owned(),
        operator: None,
        event: None,
        digest: "d1".to_owned(),
        rule: None,
    };
    let face = |request: &str, title: &str| Face {
        request: request.to_owned(),
        title: title.to_owned(),
        can_be_tapped: false,
    };
    Histories {
        owner: OWNER.to_owned(),
        patience_ms: 1_000,
        asked: vec![asked(1, "r1", &[Said::Allow]), asked(2, "r2", &[])],
        taps: vec![Tap {
            request: "r1".to_owned(),
            event: "e1".to_owned(),
            action: "always",
            by_owner: true,
            seen: toast("success", "已始终允许，后续相同操作将自动批准"),
            blurred: false,
        }],
        endings: vec![
            Ending {
                operator: Some(OWNER.to_owned()),
                event: Some("e1".to_owned()),
                rule: Some("Bash(make)".to_owned()),
                ..ending("r1", "always")
            },
            ending("r2", "timeout"),
        ],
        faces: vec![face("r1", "已始终允许"), face("r2", "已超时")],
        rules: vec!["Bash(make)".to_owned()],
    }
}

fn toast(kind: &str, content: &str) -> Seen {
    Seen::Toast {
        kind: kind.to_owned(),
        content: content.to_owned(),
    }
}

#[test]
fn a_clean_history_has_no_findings() {
    let verdict = check(&clean());
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
    assert_eq!(verdict.applied, 1);
}

#[test]
fn every_sabotage_is_noticed_for_what_it_is() {
    for sabotage in Sabotage::ALL {
        let mut histories = clean();
        sabotage.commit(&mut histories).expect("something to alter");
        let verdict = check(&histories);
        assert!(verdict.count(sabotage.fault()) > 0, "{}", sabotage.name());
        assert_eq!(Sabotage::parse(sabotage.name()), Some(sabotage));
    }
}

#[test]
fn what_must_never_be_is_noticed() {
    type Alter = fn(&mut Histories);
    let cases: [(&str, Fault, Alter); 13] = [
        ("no record of it", Fault::Lost, |h| {
            h.endings[0].event = None;
        }),
        ("printed twice", Fault::Doubled, |h| {
            h.asked[0].printed.push(Said::Allow);
        }),
        ("two cards", Fault::Doubled, |h| h.asked[0].cards = 2),
        ("by a stranger", Fault::Invented, |h| {
            h.taps[0].by_owner = false;
        }),
        ("another action", Fault::Invented, |h| {
            h.taps[0].action = "deny";
        }),
        ("another input", Fault::Invented, |h| {
            h.asked[0].digest = "d2".to_owned();
        }),
        ("deny out of a time-out", Fault::Invented, |h| {
            h.asked[1].printed.push(Said::Deny { interrupt: false });
        }),
        ("an owner called a stranger", Fault::Untrue, |h| {
            h.taps[0].seen = toast("error", "你不在审批人名单中，操作未生效");
        }),
        ("a card that lies", Fault::Untrue, |h| {
            h.faces[1].title = "已批准".to_owned();
        }),
        ("a card still open", Fault::Untrue, |h| {
            h.faces[0].can_be_tapped = true;
        }),
        ("a hook that hangs", Fault::Hung, |h| {
            h.asked[1].took_ms = 1_001;
        }),
        ("a rule nobody left", Fault::Rule, |h| {
            h.rules.push("Bash(rm)".to_owned());
        }),
        ("never over", Fault::Unfinished, |h| {
            h.endings.pop();
        }),
    ];
    for (what, fault, alter) in cases {
        let mut histories = clean();
        alter(&mut histories);
        let verdict = check(&histories);
        assert!(verdict.count(fault) > 0, "{what}: {:?}", verdict.findings);
        let named = verdict
            .findings
            .iter()
            .all(|found| found.what.contains('r'));
        assert!(named, "each names its request: {:?}", verdict.findings);
    }
}
