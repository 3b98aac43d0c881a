use super::*;
use crate::bus::nkey::{self, KeyPair};
use crate::bus::subjects::Owner;

fn place(owner: &str, n: u8) -> MachinePlace {
    let key = KeyPair::of(nkey::KeyKind::User, [n; 32]).public();
    MachinePlace::of(Owner::parse(owner).unwrap(), &key)
}

fn asked(method: &str, path: &str) -> ErrandCall {
    ErrandCall {
        method: method.to_owned(),
        path: path.split('/').map(str::to_owned).collect(),
        query: Vec::new(),
        body: None,
        upload: None,
        within: 1_000,
        most: 1_000,
        ticket: None,
    }
}

fn sending(to: &str, kind: &str) -> ErrandCall {
    ErrandCall {
        query: vec![("receive_id_type".to_owned(), kind.to_owned())],
        body: Some(json!({
            "receive_id": to, "msg_type": "text", "content": "{}", "uuid": "u", "extra": "x",
        })),
        ..asked("POST", "open-apis/im/v1/messages")
    }
}

/// Judged for the machine of `ou_a`, which holds the ticket `good` for `om_1`.
fn judged(asked: &ErrandCall) -> Result<Errand, ErrandRefused> {
    let place = place("ou_a", 1);
    judge(
        asked,
        &ErrandTerms {
            place: &place,
            chats: &["oc_team".to_owned()],
            holds: &|id, ticket| id.as_str() == "om_1" && ticket == "good",
        },
    )
}

#[test]
fn a_message_goes_to_the_owner_or_a_listed_chat_and_to_nobody_else() {
    for (to, kind) in [("ou_a", "open_id"), ("oc_team", "chat_id")] {
        let errand = judged(&sending(to, kind)).unwrap();
        assert_eq!(errand.kind, ErrandKind::Send);
        let body = errand.call.body.unwrap();
        assert_eq!(body["receive_id"], to);
        assert_eq!(body.get("extra"), None, "only what is understood goes out");
        assert_eq!(errand.call.query, [("receive_id_type", kind.to_owned())]);
    }
    for (to, kind) in [
        ("ou_b", "open_id"),
        ("ou_a", "union_id"),
        ("ou_a", "user_id"),
        ("ou_a", "chat_id"),
        ("oc_other", "chat_id"),
        ("oc_team", "open_id"),
        ("ou_a,ou_b", "open_id"),
    ] {
        let refused = judged(&sending(to, kind)).unwrap_err();
        assert_eq!(refused, ErrandRefused::NotTheOwner, "{to} {kind}");
    }
    for kind in ["email", ""] {
        assert_eq!(
            judged(&sending("ou_a", kind)).unwrap_err(),
            ErrandRefused::Unknown
        );
    }
    let mut twice = sending("ou_a", "open_id");
    twice.query.push(("receive_id_type".into(), "email".into()));
    assert_eq!(judged(&twice).unwrap_err(), ErrandRefused::Unknown);
}

#[test]
fn a_message_is_touched_with_its_own_ticket_alone() {
    let body = json!({"msg_type": "text", "content": "{}", "uuid": "u"});
    let calls = [
        (
            "POST",
            "open-apis/im/v1/messages/ID/reply",
            ErrandKind::Reply,
        ),
        ("PATCH", "open-apis/im/v1/messages/ID", ErrandKind::Edit),
        (
            "GET",
            "open-apis/im/v1/messages/ID/resources/k",
            ErrandKind::Download,
        ),
    ];
    for (method, path, kind) in calls {
        let with = |id: &str, ticket: Option<&str>| {
            judged(&ErrandCall {
                body: Some(body.clone()),
                query: vec![("type".to_owned(), "file".to_owned())],
                ticket: ticket.map(str::to_owned),
                ..asked(method, &path.replace("ID", id))
            })
        };
        assert_eq!(with("om_1", Some("good")).unwrap().kind, kind);
        for (id, ticket) in [
            ("om_1", None),
            ("om_1", Some("forged")),
            ("om_2", Some("good")),
        ] {
            assert_eq!(
                with(id, ticket).unwrap_err(),
                ErrandRefused::NoTicket,
                "{path}"
            );
        }
        for id in ["om_1%2F..", "..", "", "om_1?x=1", "om_1#"] {
            let refused = with(id, Some("good")).unwrap_err();
            assert_ne!(refused, ErrandRefused::NotTheOwner, "{method} {id}");
        }
    }
}

#[test]
fn no_other_call_is_made() {
    for (method, path) in [
        ("GET", "open-apis/im/v1/messages"),
        ("GET", "open-apis/im/v1/messages/om_1"),
        ("PUT", "open-apis/im/v1/messages/om_1"),
        ("POST", "open-apis/im/v1/messages/om_1/forward"),
        ("GET", "open-apis/im/v1/chats"),
        ("GET", "open-apis/contact/v3/users"),
        ("GET", "open-apis/application/v6/applications/me"),
        ("POST", "open-apis/auth/v3/tenant_access_token/internal"),
        ("GET", "open-apis/event/v1/connection"),
        ("post", "open-apis/im/v1/files"),
        ("POST", "open-apis/im/v1/images"),
        ("GET", ""),
    ] {
        let refused = judged(&asked(method, path)).unwrap_err();
        assert_eq!(refused, ErrandRefused::Unknown, "{method} {path}");
    }
    let other = judged(&asked("GET", "open-apis/contact/v3/users/ou_b"));
    assert_eq!(other.unwrap_err(), ErrandRefused::NotTheOwner);
    let own = judged(&asked("GET", "open-apis/contact/v3/users/ou_a")).unwrap();
    assert_eq!(own.kind, ErrandKind::Name);
    let bot = judged(&asked("GET", "open-apis/bot/v3/info")).unwrap();
    assert_eq!(bot.kind, ErrandKind::Bot);
}

#[test]
fn what_is_too_large_or_of_a_foreign_kind_is_refused() {
    let with = |field: &str, value: Value| {
        let mut asked = sending("ou_a", "open_id");
        asked.body.as_mut().unwrap()[field] = value;
        judged(&asked).map(drop)
    };
    let card = |size| json!("x".repeat(size));
    assert_eq!(with("content", card(MAX_CONTENT)), Ok(()));
    let large = with("content", card(MAX_CONTENT + 1));
    assert_eq!(large, Err(ErrandRefused::TooLarge));
    for (field, value) in [
        ("msg_type", json!("share_chat")),
        ("msg_type", json!("image")),
        ("content", json!({})),
        ("uuid", Value::Null),
        ("receive_id", json!(["ou_a"])),
    ] {
        assert_eq!(with(field, value), Err(ErrandRefused::Unknown), "{field}");
    }
}

#[test]
fn a_send_of_one_machine_is_never_taken_for_anothers() {
    let (a, b) = (place("ou_a", 1), place("ou_a", 2));
    let uuid = |place: &MachinePlace| own_uuid(&sending("ou_a", "open_id"), place).unwrap();
    assert_eq!(uuid(&a), uuid(&a), "a second try is the same send");
    assert_ne!(uuid(&a), uuid(&b));
    assert!(uuid(&a).len() <= 50);
}

#[test]
fn a_file_is_carried_up_to_its_limit() {
    let of = |size: usize| {
        judged(&ErrandCall {
            upload: Some(SentFile {
                name: "n".to_owned(),
                bytes: STANDARD.encode(vec![7; size]),
            }),
            ..asked("POST", "open-apis/im/v1/files")
        })
    };
    let errand = of(MAX_UPLOAD).unwrap();
    assert_eq!(errand.call.upload.unwrap().bytes.len(), MAX_UPLOAD);
    assert_eq!(of(MAX_UPLOAD + 3).unwrap_err(), ErrandRefused::TooLarge);
}

#[test]
fn the_largest_file_fits_the_letters_that_are_heard() {
    let pieces = MAX_FILE.div_ceil(PIECE as u64);
    assert_eq!(pieces + 1, MAX_LETTERS as u64);
}
