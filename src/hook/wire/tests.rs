//! The reference protocol's bytes, nod's additions, and everything that is neither.

use super::*;
use crate::claude::mailbox::Mailbox;
use proptest::prelude::*;

const DOCUMENTED: &str = r#"{
  "request_id": "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
  "project_dir": "/home/user/myproject",
  "raw_input_encoded": "eyJzZXNzaW9uX2lkIjoic2Vzc18xMjMiLCJ0b29sX25hbWUiOiJCYXNoIiwidG9vbF9pbnB1dCI6eyJjb21tYW5kIjoiZWNobyBoZWxsbyJ9fQ=="
}"#;

fn registration() -> Registration {
    Registration {
        id: RequestId::parse("a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6").unwrap(),
        project: "/home/user/myproject".into(),
        raw_input:
            br#"{"session_id":"sess_123","tool_name":"Bash","tool_input":{"command":"echo hello"}}"#
                .to_vec(),
        nod: None,
    }
}

#[test]
fn the_documented_request_is_read() {
    assert_eq!(
        HookMessage::decode(DOCUMENTED.as_bytes()),
        Ok(HookMessage::Register(registration()))
    );
    assert_eq!(registration().session().unwrap().as_str(), "sess_123");
}

#[test]
fn the_ack_is_the_documented_bytes() {
    let ack = Ack::Registered {
        session: "sess_123".into(),
        nod: None,
    };
    assert_eq!(
        String::from_utf8(ack.encode()).unwrap(),
        r#"{"success":true,"message":"Request registered","session_id":"sess_123"}"#
    );
}

#[test]
fn every_message_and_ack_reads_back() {
    let additions = Additions {
        process: None,
        resume: Some(Token::from_bytes([3; 32])),
        digest: Some(Digest::of(&json!({"a": 1}))),
        branch: Some("main".into()),
        cwd: Some("/p/q".into()),
        agent: Some("explorer".into()),
        pid: Some(7),
        mailbox: Mailbox::new("/tmp/m.sock", "token"),
    };
    let messages = [
        HookMessage::Register(registration()),
        HookMessage::Register(Registration {
            nod: Some(additions),
            ..registration()
        }),
        HookMessage::Register(Registration {
            nod: Some(Additions::default()),
            ..registration()
        }),
        HookMessage::Notify(HookNotice {
            process: None,
            project: "/p".into(),
            raw_input: vec![0, 255, 3],
            mailbox: Mailbox::new("/tmp/m.sock", "token"),
        }),
        HookMessage::Order(DaemonOrder::Status),
        HookMessage::Order(DaemonOrder::Lock),
        HookMessage::Order(DaemonOrder::Unlock),
        HookMessage::Ping,
        HookMessage::Received,
        HookMessage::Cancel,
    ];
    for message in messages {
        assert_eq!(HookMessage::decode(&message.encode()), Ok(message));
    }
    let nod = AckAdditions {
        resume_token: Some(Token::from_bytes([9; 32])),
        deadline: 1_700_000_000_000,
        server_version: "0.1.0".into(),
    };
    let acks = [
        Ack::Registered {
            session: String::new(),
            nod: Some(nod),
        },
        Ack::Refused {
            session: "s".into(),
            error: ErrorWord::Full,
            message: "too many requests are waiting".into(),
        },
    ];
    for ack in acks {
        assert_eq!(Ack::decode(&ack.encode()), Ok(ack));
    }
}

#[test]
fn every_spelling_of_base64_means_the_same_bytes() {
    let bytes = [0xfb, 0xff, 0xfe, 0x01];
    for text in [
        "+//+AQ==",
        "+//+AQ",
        "-__-AQ==",
        "-__-AQ",
        "+//+\nAQ==\n",
        " -__-\r\n\tAQ ",
    ] {
        assert_eq!(
            decode_base64(text.to_owned()),
            Some(bytes.to_vec()),
            "{text:?}"
        );
    }
    for text in ["+//+A", "-_/+", "é", "AQ=A", "\0"] {
        assert_eq!(decode_base64(text.to_owned()), None, "{text:?}");
    }
}

#[test]
fn what_can_not_be_understood_is_refused_by_name() {
    let table = [
        (
            r#"{"project_dir":"/p","raw_input_encoded":""}"#,
            WireError::Missing("request_id"),
        ),
        (
            r#"{"request_id":"a","raw_input_encoded":""}"#,
            WireError::Missing("project_dir"),
        ),
        (
            r#"{"request_id":"a","project_dir":"/p"}"#,
            WireError::Missing("raw_input_encoded"),
        ),
        (
            r#"{"request_id":"a","project_dir":"/p","raw_input_encoded":"%"}"#,
            WireError::BadField("raw_input_encoded"),
        ),
        (
            r#"{"request_id":"a","project_dir":"/p","raw_input_encoded":"","nod":{"resume":"12"}}"#,
            WireError::BadField("nod.resume"),
        ),
        (
            r#"{"request_id":"a","project_dir":"/p","raw_input_encoded":"","nod":{"digest":"zz"}}"#,
            WireError::BadField("nod.digest"),
        ),
    ];
    for (text, error) in table {
        assert_eq!(HookMessage::decode(text.as_bytes()), Err(error), "{text}");
    }
    assert!(matches!(
        HookMessage::decode(br#"{"request_id":"a b","project_dir":"/p","raw_input_encoded":""}"#),
        Err(WireError::BadId(_))
    ));
    let lone_surrogate = br#"{"request_id":"\ud800"}"#;
    for bytes in [
        &b"{\"request_id\":\"\xff\"}"[..],
        lone_surrogate,
        b"{]}",
        b"",
    ] {
        assert!(matches!(
            HookMessage::decode(bytes),
            Err(WireError::BadJson(_))
        ));
    }
}

#[test]
fn no_verb_decides() {
    for verb in [
        "decide",
        "allow",
        "deny",
        "approve",
        "always",
        "interrupt",
        "answer",
        "",
    ] {
        let text = json!({
            "request_id": "a", "project_dir": "/p", "raw_input_encoded": "",
            "nod": {"version": 2, "verb": verb}
        });
        assert_eq!(
            HookMessage::decode(text.to_string().as_bytes()),
            Err(WireError::UnknownVerb(verb.to_owned()))
        );
    }
}

#[test]
fn unknown_fields_and_deep_ignored_values_are_tolerated() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(
        r#"{{"request_id":"a","project_dir":"/p","raw_input_encoded":"","more":{deep},"nod":{{"version":9,"news":true}}}}"#
    );
    assert!(matches!(
        HookMessage::decode(text.as_bytes()),
        Ok(HookMessage::Register(_))
    ));
}

#[test]
fn a_length_beyond_the_cap_is_refused_before_its_bytes_arrive() {
    assert_eq!(
        unframe(&[0xff, 0xff, 0xff, 0xff]),
        Err(WireError::TooLarge(MAX_REPLY))
    );
}

#[test]
fn an_error_never_quotes_the_message() {
    let error = HookMessage::decode(br#"{"request_id": hunter2}"#).unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = HookMessage::decode(&bytes);
        let _ = Ack::decode(&bytes);
        let _ = unframe(&bytes);
        let _ = decode_base64(String::from_utf8_lossy(&bytes).into_owned());
    }

    #[test]
    fn any_input_survives_the_wire(raw_input in proptest::collection::vec(any::<u8>(), 0..200), project in "/\\PC{0,30}") {
        let message = HookMessage::Register(Registration {
            id: RequestId::parse("r").unwrap(), project: project.into(), raw_input, nod: Some(Additions::default()),
        });
        prop_assert_eq!(HookMessage::decode(&message.encode()), Ok(message));
    }
}
