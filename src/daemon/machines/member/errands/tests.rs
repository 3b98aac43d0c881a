use serde_json::json;
use std::sync::Arc;

use super::*;
use crate::bus::nkey::KeyKind;
use crate::bus::subjects::ToMachine;
use crate::daemon::machines::bench::{BusBench, HeardCall, MemberBench, answer_head, keys, pair};
use crate::feishu::api::exchange::Upload;

const LIMIT: Duration = Duration::from_secs(9);
const NOT_LONG: Duration = Duration::from_millis(60);
const MOST: u64 = 1 << 20;

fn message(id: &str) -> MessageId {
    MessageId::parse(id).unwrap()
}

fn send() -> ApiCall {
    let path = ["open-apis", "im", "v1", "messages"];
    ApiCall::post(&path, json!({"receive_id": "ou_owner"})).query("receive_id_type", "open_id")
}

fn edit(id: &str) -> ApiCall {
    let path = ["open-apis", "im", "v1", "messages", id];
    ApiCall::patch(&path, json!({"content": "{}"}))
}

/// What Feishu answers to a send, and the gateway's ticket for it.
fn sent(id: &str, ticket: &str) -> ErrandResult {
    ErrandResult::Answer {
        status: 200,
        after: None,
        log_id: Some("log".to_owned()),
        file: false,
        body: json!({"code": 0, "data": {"message_id": id}}).to_string(),
        ticket: Some(ticket.to_owned()),
    }
}

/// A connected machine whose gateway gives a file in these letters.
async fn fetched(
    hub: &BusBench,
    member: &Member,
    length: usize,
    pieces: impl Fn(&HeardCall<'_>) -> Vec<Vec<u8>> + Send + 'static,
    limit: Duration,
) -> Result<Vec<u8>, ApiError> {
    hub.says(move |call| {
        let told = ErrandResult::Pieces {
            length: length as u64,
            log_id: None,
        };
        let mut all = vec![call.answer(&told)];
        all.extend(pieces(call));
        all
    });
    let path = [
        "open-apis",
        "im",
        "v1",
        "messages",
        "om_1",
        "resources",
        "k",
    ];
    let reply = carry(member, ApiCall::get(&path), limit, MOST).await?;
    assert!(reply.file);
    Ok(reply.body)
}

fn piece(call: &HeardCall<'_>, n: usize, bytes: &[u8]) -> Vec<u8> {
    call.letter(&piece_of(&call.head.once, n), bytes)
}

#[tokio::test]
async fn a_call_goes_out_signed_and_its_ticket_is_kept_for_the_next() {
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let member = &machine.member;
    let (seen, mut calls) = tokio::sync::mpsc::unbounded_channel();
    hub.says(move |call| {
        let asked: ErrandCall = serde_json::from_slice(call.body).unwrap();
        seen.send((call.subject.to_owned(), call.head.clone(), asked))
            .unwrap();
        vec![call.answer(&sent("om_1", "a ticket"))]
    });
    let reply = carry(member, send(), LIMIT, MOST).await.unwrap();
    assert_eq!((reply.status, reply.log_id.as_deref()), (200, Some("log")));
    assert_eq!(
        reply.envelope().unwrap()["data"]["message_id"],
        "om_1",
        "as Feishu gave it"
    );
    let (subject, head, asked) = calls.recv().await.unwrap();
    assert_eq!(subject, member.place.says(FromMachine::Call));
    assert_eq!(head.pass, member.pass());
    assert!((member.their_clock.now() - head.at).abs() < 9_000);
    assert_eq!(asked, ErrandCall::of(&send(), 9_000, MOST, None));
    let kept = machine.store.run(|db| db.ticket(&message("om_1"))).await;
    assert_eq!(kept.unwrap().as_deref(), Some("a ticket"));
    carry(member, edit("om_1"), LIMIT, MOST).await.unwrap();
    let (_, next, asked) = calls.recv().await.unwrap();
    assert_eq!(asked.ticket.as_deref(), Some("a ticket"));
    assert_ne!(next.once, head.once, "no call is another's");
    carry(member, edit("om_2"), LIMIT, MOST).await.unwrap();
    let (_, _, asked) = calls.recv().await.unwrap();
    assert_eq!(asked.ticket, None, "a foreign message has none of ours");
}

type Forger = Box<dyn Fn(&HeardCall<'_>) -> Vec<u8> + Send>;

#[tokio::test]
async fn an_answer_that_no_gateway_gave_to_this_very_call_is_believed_by_nobody() {
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let body = || serde_json::to_vec(&sent("om_1", "a forged ticket")).unwrap();
    let by = move |key: fn() -> crate::bus::nkey::KeyPair| -> Forger {
        Box::new(move |call| {
            let head = answer_head(&call.head.once);
            letter::sign(&key(), call.subject, &head, &body())
        })
    };
    let tries: Vec<(&str, Forger)> = vec![
        ("unsigned", Box::new(move |_| body())),
        ("nothing", Box::new(|_| Vec::new())),
        ("another team's", by(|| pair(KeyKind::Push, 9))),
        ("its own key", by(|| pair(KeyKind::User, 1))),
        ("the key for passes", by(|| keys().machines)),
        (
            "the answer to another call",
            Box::new(move |call| call.letter("another", &body())),
        ),
        (
            "about another subject",
            Box::new(move |call| {
                let elsewhere = call.subject.replace(".call", ".hello");
                let head = answer_head(&call.head.once);
                letter::sign(&call.keys.push, &elsewhere, &head, &body())
            }),
        ),
        (
            "altered",
            Box::new(move |call| {
                let letter = call.answer(&ErrandResult::TooLarge);
                let text = String::from_utf8(letter).unwrap();
                text.replace("TooLarge", "TooSmall").into_bytes()
            }),
        ),
        (
            "no result",
            Box::new(|call| call.answer(&json!({"Unheard": 1}))),
        ),
    ];
    for (what, forge) in tries {
        hub.says(move |call| vec![forge(call)]);
        let told = carry(&machine.member, send(), LIMIT, MOST).await;
        assert_eq!(told.unwrap_err(), unsigned(), "{what}");
        let ticket = machine.member.tickets.of(&message("om_1")).await;
        assert_eq!(ticket, None, "{what}");
    }
}

#[tokio::test]
async fn without_the_time_a_bus_or_a_gateway_nothing_is_promised() {
    let alone = MemberBench::new();
    let told = carry(&alone.member, send(), LIMIT, MOST).await;
    assert_eq!(told.unwrap_err(), no_bus());
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let member = &machine.member;
    let told = carry(member, send(), NOT_LONG, MOST).await;
    assert_eq!(told.unwrap_err(), too_slow(), "the gateway says nothing");
    let before = hub.bus.passed().len();
    member.knows_time.store(false, Ordering::Relaxed);
    let told = carry(member, send(), LIMIT, MOST).await;
    assert_eq!(told.unwrap_err(), no_gateway());
    assert_eq!(hub.bus.passed().len(), before, "nothing went out");
}

#[tokio::test]
async fn a_bus_where_no_gateway_listens_says_so_at_once() {
    let mut hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    hub.leaves().await;
    let told = carry(&machine.member, send(), LIMIT, MOST).await;
    assert_eq!(told.unwrap_err(), no_gateway());
}

#[tokio::test]
async fn what_no_bus_carries_is_not_sent() {
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let before = hub.bus.passed().len();
    let bytes = vec![0; MAX_LETTER].into();
    let upload = Upload {
        fields: Vec::new(),
        name: "a.bin".to_owned(),
        bytes,
    };
    let call = ApiCall::upload(&["open-apis", "im", "v1", "files"], upload);
    let told = carry(&machine.member, call, LIMIT, MOST).await;
    let limit = MAX_LETTER as u64;
    assert_eq!(told.unwrap_err(), ApiError::TooLarge { limit });
    assert_eq!(hub.bus.passed().len(), before);
}

#[tokio::test]
async fn a_file_comes_whole_or_not_at_all() {
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let member = &machine.member;
    let file: Arc<[u8]> = (0..=255).cycle().take(PIECE + 10).collect();
    let length = file.len();
    let halves = |file: &Arc<[u8]>| {
        let file = Arc::clone(file);
        move |n: usize| {
            let mut halves = file.chunks(PIECE).map(<[u8]>::to_vec);
            halves.nth(n).unwrap()
        }
    };
    let half = halves(&file);
    let whole = fetched(
        &hub,
        member,
        length,
        move |call| (0..2).map(|n| piece(call, n, &half(n))).collect(),
        LIMIT,
    );
    assert_eq!(whole.await.unwrap(), file.to_vec());
    let half = halves(&file);
    let swapped = fetched(
        &hub,
        member,
        length,
        move |call| vec![piece(call, 1, &half(1)), piece(call, 0, &half(0))],
        LIMIT,
    );
    assert_eq!(swapped.await.unwrap_err(), unsigned());
    let half = halves(&file);
    let twice = fetched(
        &hub,
        member,
        length,
        move |call| vec![piece(call, 0, &half(0)), piece(call, 0, &half(0))],
        LIMIT,
    );
    assert_eq!(twice.await.unwrap_err(), unsigned());
    let half = halves(&file);
    let forged = fetched(
        &hub,
        member,
        length,
        move |call| {
            let head = answer_head(&piece_of(&call.head.once, 1));
            let key = pair(KeyKind::Push, 9);
            let second = letter::sign(&key, call.subject, &head, &half(1));
            vec![piece(call, 0, &half(0)), second]
        },
        LIMIT,
    );
    assert_eq!(forged.await.unwrap_err(), unsigned());
    let half = halves(&file);
    let withheld = fetched(
        &hub,
        member,
        length,
        move |call| vec![piece(call, 0, &half(0))],
        NOT_LONG,
    );
    assert_eq!(withheld.await.unwrap_err(), too_slow());
}

#[tokio::test]
async fn a_file_of_another_length_than_was_told_is_no_file() {
    let hub = BusBench::start().await;
    let (machine, _running) = hub.member().await;
    let member = &machine.member;
    let unfit = lost("a file came in pieces that do not fit");
    for (what, length, first) in [
        ("longer than told", 3, 4),
        ("empty", 3, 0),
        ("a piece too large", PIECE + 1, PIECE + 1),
    ] {
        let got = fetched(
            &hub,
            member,
            length,
            move |call| vec![piece(call, 0, &vec![7; first])],
            LIMIT,
        );
        assert_eq!(got.await.unwrap_err(), unfit, "{what}");
    }
    let most = usize::try_from(MOST).unwrap();
    let got = fetched(&hub, member, most + 1, |_| Vec::new(), LIMIT);
    let too_large = ApiError::TooLarge { limit: MOST };
    assert_eq!(got.await.unwrap_err(), too_large, "no piece is waited for");
    let got = fetched(&hub, member, 0, |_| Vec::new(), LIMIT);
    assert_eq!(got.await.unwrap(), b"", "an empty file has no piece");
}

#[tokio::test]
async fn each_word_of_a_gateway_means_one_thing_to_the_caller() {
    let machine = MemberBench::new();
    let member = &machine.member;
    let answer = |file, body: &str| ErrandResult::Answer {
        status: 429,
        after: Some(3),
        log_id: None,
        file,
        body: body.to_owned(),
        ticket: Some("a ticket".to_owned()),
    };
    let told = replied(member, answer(true, "aGk="), 5).await.unwrap();
    assert_eq!((told.file, told.body.as_slice()), (true, &b"hi"[..]));
    assert_eq!(told.after, Some(Duration::from_secs(3)));
    let told = replied(member, answer(false, "aGk="), 5).await.unwrap();
    assert_eq!((told.status, told.body.as_slice()), (429, &b"aGk="[..]));
    let unread = replied(member, answer(true, "!"), 5).await;
    assert_eq!(unread.unwrap_err(), lost("a file came that can't be read"));
    let lost_on_the_way = |in_doubt| ErrandResult::Lost {
        in_doubt,
        why: "no route".to_owned(),
    };
    for (result, error) in [
        (
            lost_on_the_way(true),
            lost("its call to Feishu was cut short"),
        ),
        (
            lost_on_the_way(false),
            ApiError::Network(OutboundError::Unreachable {
                peer: "Feishu by way of the gateway (no route)".to_owned(),
            }),
        ),
        (
            ErrandResult::Crowded { after: 250 },
            ApiError::Crowded {
                after: Duration::from_millis(250),
            },
        ),
        (
            ErrandResult::Refused {
                why: "no ticket".to_owned(),
            },
            ApiError::Rejected(FeishuAnswer::new(
                -1,
                "the gateway makes no such call: no ticket",
                None,
            )),
        ),
        (
            ErrandResult::Pieces {
                length: 5,
                log_id: None,
            },
            unsigned(),
        ),
        (ErrandResult::TooLarge, ApiError::TooLarge { limit: 5 }),
    ] {
        assert_eq!(replied(member, result, 5).await.unwrap_err(), error);
    }
}

#[tokio::test]
async fn a_ticket_is_kept_for_the_message_that_feishu_named_and_for_nothing_else() {
    let machine = MemberBench::new();
    let member = &machine.member;
    for body in [
        "",
        "[]",
        r#"{"message_id": "om_1"}"#,
        r#"{"data": {"message_id": 1}}"#,
        r#"{"data": {"message_id": ""}}"#,
    ] {
        keep(member, body, "t").await;
    }
    assert_eq!(member.tickets.of(&message("om_1")).await, None);
    keep(member, r#"{"data": {"message_id": "om_1"}}"#, "t").await;
    let kept = member.tickets.of(&message("om_1")).await;
    assert_eq!(kept.as_deref(), Some("t"));
}

#[test]
fn a_call_touches_the_message_that_its_path_names() {
    let of = |path: &[&str]| touched(&ApiCall::get(path));
    let below = ["open-apis", "im", "v1", "messages", "om_1", "reply"];
    assert_eq!(of(&below), Some(message("om_1")));
    assert_eq!(of(&below[..5]), Some(message("om_1")));
    assert_eq!(of(&below[..4]), None);
    for path in [
        ["open-apis", "im", "v2", "messages", "om_1"],
        ["open-apis", "im", "v1", "files", "om_1"],
        ["open-apis", "im", "v1", "messages", ""],
    ] {
        assert_eq!(of(&path), None, "{path:?}");
    }
}

#[test]
fn a_push_to_this_machine_answers_no_call_of_its_own() {
    let machine = MemberBench::new();
    let member = &machine.member;
    let subject = member.place.hears(ToMachine::Tap);
    let head = answer_head("once");
    let letter = letter::sign(&machine.keys.push, &subject, &head, b"x");
    let call = member.place.says(FromMachine::Call);
    assert_eq!(opened(member, &call, "once", &letter), None);
    let letter = letter::sign(&machine.keys.push, &call, &head, b"x");
    assert_eq!(opened(member, &call, "twice", &letter), None);
    assert_eq!(opened(member, &call, "once", &letter), Some(&b"x"[..]));
}
