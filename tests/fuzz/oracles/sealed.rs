//! Any JSON as a sealed value or call: only what one of ours sealed opens, and
//! no change of it does, not one byte.

use nod::for_tests::approvals::outcome::{Outcome, Upshot};
use nod::for_tests::feishu::event::{Click, Person};
use nod::for_tests::feishu::secret::Secret;
use nod::for_tests::gateway::call::{CallAnswer, PeerCall, Proof, Stamp};
use nod::for_tests::gateway::seal::{SealPurpose, Sealer};
use nod::for_tests::ids::{MachineId, RequestId};
use nod::for_tests::text::{Text, Tone};
use serde_json::Value;

/// The first three bytes say where and how the sealed text is changed.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&[high, low, other], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let change = (usize::from(high) << 8 | usize::from(low), other);
    let secret = Secret::new("a secret nobody guesses");
    let buttons = Sealer::new(&secret, SealPurpose::Button);
    let calls = Sealer::new(&secret, SealPurpose::Call);
    match PeerCall::read(rest, Some(&calls)) {
        Ok((call, proof)) => {
            assert_eq!(proof, Proof::None, "a forged call");
            assert_eq!(call.click, None, "a click nobody vouches for");
        }
        Err(_) => assert!(CallAnswer::read_sealed(rest, &calls, &stamp("another-nonce")).is_none()),
    }
    let Ok(value) = serde_json::from_slice::<Value>(rest) else {
        return;
    };
    assert!(!buttons.holds(&value), "a forged seal");
    if value.is_object() {
        let sealed = buttons.seal(value.clone());
        assert!(buttons.holds(&sealed));
        assert!(!calls.holds(&sealed), "a seal for another purpose");
        if let Some(changed) = changed(&sealed, change) {
            assert!(!buttons.holds(&changed), "it held after a change");
        }
    }
    carried(value, &calls, change);
}

fn stamp(nonce: &str) -> Stamp {
    Stamp {
        sent_at: 1_793_922_640_000,
        nonce: nonce.to_owned(),
    }
}

/// The sealed text with one byte changed, if that means anything else.
fn changed(sealed: &Value, (at, other): (usize, u8)) -> Option<Value> {
    let mut text = sealed.to_string().into_bytes();
    let at = at % text.len();
    text[at] = other;
    let changed: Value = serde_json::from_slice(&text).ok()?;
    (&changed != sealed).then_some(changed)
}

/// A call with this value from machine to machine, and its answer.
fn carried(value: Value, calls: &Sealer, change: (usize, u8)) {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let push = text("push");
    let call = PeerCall {
        to: MachineId::parse("m").ok(),
        action: text("action").unwrap_or_else(|| "allow".to_owned()),
        request: RequestId::parse("r-1").expect("an id"),
        project_dir: text("project_dir").unwrap_or_default(),
        click: Some(Click {
            by: Person {
                open: text("open_id"),
                ..Person::default()
            },
            name: text("name"),
            form: value.as_object().cloned().unwrap_or_default(),
            value,
            ..Click::default()
        }),
        push,
    };
    let stamp = stamp("a-nonce-of-ours");
    let sent = call.to_json(Some((calls, &stamp)));
    let read = PeerCall::read(sent.to_string().as_bytes(), Some(calls));
    assert_eq!(read, Ok((call, Proof::Sealed(stamp.clone()))));
    if let Some(changed) = changed(&sent, change) {
        let read = PeerCall::read(changed.to_string().as_bytes(), Some(calls));
        if let Ok((_, proof)) = read {
            assert_eq!(proof, Proof::None, "it opened after a change");
        }
    }
    let outcome = Outcome::Relayed {
        upshot: Upshot::Denied,
        tone: Tone::Success,
        said: Text::new("已拒绝运行", "Denied"),
    };
    let answer = CallAnswer::of(&outcome, Some(sent));
    let sent = answer.to_json(Some((calls, &stamp)));
    let read = |answer: &Value, stamp: &Stamp| {
        CallAnswer::read_sealed(answer.to_string().as_bytes(), calls, stamp)
    };
    let got = read(&sent, &stamp).expect("an answer to this call");
    assert_eq!(got.upshot, Upshot::Denied);
    assert_eq!(
        read(&sent, &self::stamp("another-nonce")),
        None,
        "an answer to another call"
    );
    if let Some(changed) = changed(&sent, change) {
        assert_eq!(read(&changed, &stamp), None, "an answer that was changed");
    }
}
