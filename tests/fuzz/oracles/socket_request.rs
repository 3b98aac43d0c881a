//! Any bytes on the hook socket, cut anywhere: the same objects are found, caps
//! hold, what is read is written back the same, and no reply is an allow unless
//! it says so for this very input.

use nod::for_tests::approvals::request::Digest;
use nod::for_tests::approvals::token::Token;
use nod::for_tests::hook::wire::answer::{self, Decision};
use nod::for_tests::hook::wire::scan::Scanner;
use nod::for_tests::hook::wire::{self, Ack, HookMessage, MAX_REPLY, WireError};
use serde_json::{Value, json};

const CAP: usize = 600;

pub(crate) fn check(bytes: &[u8]) {
    let whole = objects(bytes, bytes.len().max(1));
    assert_eq!(whole, objects(bytes, 1), "cut into single bytes");
    assert_eq!(whole, objects(bytes, 7), "cut into sevens");
    for object in whole.0 {
        assert!(object.len() <= CAP);
        if let Ok(message) = HookMessage::decode(&object) {
            is_its_own(&message, &object);
        }
        if let Ok(ack) = Ack::decode(&object) {
            assert_eq!(Ack::decode(&ack.encode()).as_ref(), Ok(&ack));
        }
        if let Ok(value) = serde_json::from_slice(&object) {
            is_a_decision_only_if_it_says_so(&value);
        }
    }
    if let Ok(Some((value, length))) = wire::unframe(bytes) {
        assert!(length <= bytes.len() && length <= 4 + MAX_REPLY);
        is_a_decision_only_if_it_says_so(&value);
        if let Ok(framed) = wire::frame(&value) {
            assert!(framed.len() <= 4 + MAX_REPLY);
            let (read, length) = wire::unframe(&framed).expect("ours").expect("whole");
            assert_eq!(length, framed.len());
            assert_eq!(Digest::of(&read), Digest::of(&value));
            let part = wire::unframe(&framed[..framed.len() - 1]);
            assert_eq!(part, Ok(None), "a part taken for a whole");
        }
    }
    if let Ok(text) = str::from_utf8(bytes) {
        is_hex(text);
    }
}

/// What a reader that keeps to [`Scanner::room`] finds, and why it stopped.
fn objects(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<WireError>) {
    let mut scanner = Scanner::new(CAP);
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(step.min(scanner.room()).min(rest.len()));
        rest = after;
        scanner.buffer().extend_from_slice(piece);
        assert!(scanner.buffer().len() <= CAP + 1);
        loop {
            match scanner.next_object() {
                Ok(Some(object)) => found.push(object),
                Ok(None) => break,
                Err(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}

fn is_its_own(message: &HookMessage, object: &[u8]) {
    assert_eq!(HookMessage::decode(&message.encode()).as_ref(), Ok(message));
    let Ok(value) = serde_json::from_slice::<Value>(object) else {
        return;
    };
    if let HookMessage::Register(registration) = message
        && value["nod"].is_object()
    {
        let nod = registration.nod.as_ref().expect("additions");
        assert_eq!(registration.id.as_str(), value["request_id"]);
        // To lose the token would turn a resume into a second question.
        assert_eq!(nod.resume.is_some(), value["nod"]["resume"].is_string());
        assert_eq!(nod.digest.is_some(), value["nod"]["digest"].is_string());
    }
}

fn is_a_decision_only_if_it_says_so(value: &Value) {
    let own = Digest::of(&json!({"command": "make"}));
    let says = |behavior: &str| {
        value["success"] == true
            && value["nod"]["digest"] == own.hex()
            && value["decision"]["behavior"] == behavior
    };
    match answer::decode(value, &own) {
        Decision::Allow(_) => assert!(says("allow"), "an allow out of nothing"),
        Decision::Deny { .. } => assert!(says("deny"), "a denial out of nothing"),
        Decision::Terminal { .. } => assert!(!says("allow") && !says("deny")),
    }
    let mut meant = value.clone();
    if meant["nod"].is_object() {
        meant["nod"]["digest"] = own.hex().into();
        let allowed = matches!(answer::decode(&meant, &own), Decision::Allow(_));
        assert_eq!(
            allowed,
            meant["success"] == true && meant["decision"]["behavior"] == "allow"
        );
    }
}

fn is_hex(text: &str) {
    let read = [
        Digest::parse_hex(text).map(|digest| digest.hex()),
        Token::parse_hex(text).map(|token| token.hex()),
    ];
    for read in read.into_iter().flatten() {
        assert_eq!(read, text.to_ascii_lowercase());
    }
}
