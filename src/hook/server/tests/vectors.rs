//! The exchanges in `proto/hook-socket.md`, played line by line on a real
//! socket and compared byte for byte.

use super::*;
use crate::approvals::choice::Choice;
use crate::approvals::request::Operator;
use crate::ids::{RequestId, UserId};

const DOCUMENT: &str = include_str!("../../../../proto/hook-socket.md");

/// The lines of each exchange, with whether the client sends them.
fn exchanges() -> Vec<Vec<(bool, &'static str)>> {
    let blocks = DOCUMENT.split("```vector\n").skip(1);
    let lines = blocks.map(|block| block.split("```").next().unwrap().lines());
    lines
        .map(|lines| {
            let sides = [("→ ", true), ("← ", false)];
            let read = |line: &'static str| {
                let side = sides.iter().find_map(|(mark, sent)| {
                    let rest = line.strip_prefix(mark)?;
                    Some((*sent, rest))
                });
                side.unwrap_or_else(|| panic!("neither side says {line:?}"))
            };
            lines.map(read).collect()
        })
        .collect()
}

/// The bytes of a line: a length, if it has one, and the JSON.
fn bytes(line: &str) -> Vec<u8> {
    let framed = line.split_once(' ').filter(|(length, _)| length.len() == 8);
    match framed.and_then(|(length, json)| Some((u32::from_str_radix(length, 16).ok()?, json))) {
        Some((length, json)) => [&length.to_be_bytes()[..], json.as_bytes()].concat(),
        None => line.as_bytes().to_vec(),
    }
}

#[tokio::test]
async fn the_documented_exchanges_of_claude_notify_are_its_bytes() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    let exchanges = exchanges();
    assert_eq!(exchanges.len(), 2, "a ping and a question");
    for lines in exchanges {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        let mut registered = false;
        for (sent, line) in lines {
            match (sent, line) {
                (true, "end") => stream.shutdown().await.unwrap(),
                (true, _) => stream.write_all(line.as_bytes()).await.unwrap(),
                (false, "end") => {
                    let mut rest = Vec::new();
                    within(stream.read_to_end(&mut rest)).await.unwrap();
                    assert!(rest.is_empty(), "{rest:?}");
                }
                (false, _) => {
                    if registered {
                        answer_second_option(&office);
                    }
                    let mut got = vec![0; bytes(line).len()];
                    within(stream.read_exact(&mut got)).await.unwrap();
                    assert_eq!(
                        String::from_utf8_lossy(&got),
                        String::from_utf8_lossy(&bytes(line))
                    );
                    registered = line.contains("Request registered");
                }
            }
        }
    }
    office.close().await;
}

/// As a person would by a tap, with what the daemon makes of the answer.
fn answer_second_option(office: &Office) {
    let id = RequestId::parse("a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6").unwrap();
    let request = office.desk.find(&id).expect("it waits");
    let posed = request.question().expect("a question");
    let answers = vec!["SQLite".to_owned()];
    let (input, _) = posed.asker.answered(&answers);
    let by = Operator {
        id: UserId::parse("ou_ann").unwrap(),
    };
    let claim = office.desk.claim(&id, Choice::Answer(answers), by);
    drop(claim.expect("the request is open").deliver(Extras {
        updated_input: Some(input),
        updated_permissions: None,
    }));
}

#[tokio::test]
async fn a_ping_counts_only_when_it_is_nothing_else() {
    let dir = private_dir();
    let office = Office::open(dir.path(), ServerLimits::default());
    for (said, answered) in [
        (r#"{"type":"ping"}"#, r#"{"type":"pong"}"#),
        (r#" {"type":"ping","extra":1}"#, r#"{"type":"pong"}"#),
        (r#"{"type":"pong"}"#, "invalid_request"),
        (r#"{"type":["ping"]}"#, "invalid_request"),
        (r#"{"type":"ping","request_id":"r1"}"#, "invalid_request"),
    ] {
        let mut stream = UnixStream::connect(&office.path).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let reply = one_read(&mut stream).await;
        assert!(reply.contains(answered), "{said}: {reply}");
    }
    assert_eq!(office.desk.pending(), 0);
    office.close().await;
}
