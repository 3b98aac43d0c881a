use super::*;
use crate::daemon::bench::WEBHOOK;
use crate::daemon::cards::bench::{Bench, config, layout_refused, refusal, unanswered};
use crate::daemon::cards::courier::needs;
use crate::feishu::error::{ContentProblem, FeishuAnswer};
use crate::ids::CardKey;
use serde_json::{Value, json};

fn message() -> MessageId {
    MessageId::parse("om_7").unwrap()
}

/// A card whose header has a title and a state.
fn card(title: &str, text: &str) -> CardText {
    let text = json!({"tag": "plain_text", "content": text});
    let state = json!({"tag": "text_tag", "text": {"tag": "plain_text", "content": "Denied"}});
    let card = json!({
        "schema": "2.0",
        "config": {"summary": {"content": title}},
        "header": {
            "title": {"tag": "plain_text", "content": title},
            "text_tag_list": [state],
        },
        "body": {"elements": [{"tag": "form", "name": "f", "elements": [{"tag": "div", "text": text}]}]},
    });
    card.to_string().into()
}

/// Keeps this card as the edit of the message; its version.
async fn keep(bench: &Bench, card: &CardText) -> i64 {
    let (key, card) = (CardKey::Message(message()), Arc::clone(card));
    let kept = bench
        .cards
        .journal
        .store
        .run(move |db| db.put_edit(&key, &card, 1));
    kept.await.unwrap()
}

async fn edited(bench: &Bench, edit: PatchOf) -> Patched {
    let patch = Patch {
        message: message(),
        edit,
    };
    made(
        &bench.cards,
        bench.cards.courier.messages().unwrap(),
        &patch,
    )
    .await
}

#[tokio::test]
async fn what_feishu_took_is_known_to_be_takeable() {
    let bench = Bench::new().await;
    let card = card("rm", "rm -r canary");
    assert!(!bench.cards.proof.covers(&card));
    let patched = edited(&bench, PatchOf::Unkept(Arc::clone(&card))).await;
    assert_eq!(patched, Patched::Taken);
    assert_eq!(bench.edits_of(&message()), [card.to_string()]);
    assert!(bench.cards.proof.covers(&card));
}

#[tokio::test]
async fn a_card_that_only_the_disk_has_is_read_there_unless_a_newer_took_its_place() {
    let bench = Bench::new().await;
    let first = keep(&bench, &card("first", "x")).await;
    let patched = edited(&bench, PatchOf::Kept(first, None)).await;
    assert_eq!(patched, Patched::Taken);
    assert_eq!(bench.edits_of(&message()), [card("first", "x").to_string()]);
    keep(&bench, &card("second", "x")).await;
    let patched = edited(&bench, PatchOf::Kept(first, None)).await;
    assert_eq!(patched, Patched::Refused);
    assert_eq!(bench.edits_of(&message()).len(), 1);
}

#[tokio::test]
async fn a_layout_that_feishu_refuses_is_given_up_for_the_plainest_and_the_owner_hears_of_it() {
    let bench = Bench::new().await;
    bench.answers(layout_refused());
    let first = card("rm", "rm -r canary");
    let patched = edited(&bench, PatchOf::Soon(first)).await;
    assert_eq!(patched, Patched::Taken);
    let faces = bench.edits_of(&message());
    assert_eq!(faces.len(), 2);
    assert!(!faces[1].contains(r#""tag":"form""#), "{}", faces[1]);
    assert!(faces[1].contains("rm -r canary"), "{}", faces[1]);
    let told = bench.calls().remove(1).1;
    assert_eq!(told["msg_type"], "text");
    assert!(told["content"].as_str().unwrap().contains("230099"));
    assert_eq!(needs(&bench.cards)[0]["need"], "plain");
    // From now on all are plain at once.
    edited(&bench, PatchOf::Soon(card("ls", "ls"))).await;
    let faces = bench.edits_of(&message());
    assert_eq!(faces.len(), 3);
    assert!(!faces[2].contains(r#""tag":"form""#));
    // The plainest has none plainer.
    bench.answers(layout_refused());
    let refused = edited(&bench, PatchOf::Soon(faces[2].as_str().into())).await;
    assert_eq!(refused, Patched::Refused);
}

#[tokio::test]
async fn content_that_feishu_forbids_is_left_out_bit_by_bit() {
    let kept = card("kept title", "not kept");
    for times in 1..=3 {
        let bench = Bench::new().await;
        bench.stop_time();
        let version = keep(&bench, &kept).await;
        for _ in 0..times {
            bench.answers(refusal(230_022, "sensitive"));
        }
        let shown = card("shown title", "secret");
        let patched = edited(&bench, PatchOf::Kept(version, Some(shown)));
        let patched = bench.meanwhile(Duration::from_secs(3), patched).await;
        let faces = bench.edits_of(&message());
        assert_eq!(faces[1], *kept);
        if times == 1 {
            assert_eq!((patched, faces.len()), (Patched::Taken, 2));
            continue;
        }
        let barest: Value = serde_json::from_str(&faces[2]).unwrap();
        assert_eq!(barest["header"]["title"]["content"], "Denied");
        assert!(!faces[2].contains("kept title"), "{barest}");
        let all_was_tried = times == 3;
        assert_eq!(patched == Patched::Refused, all_was_tried);
        assert_eq!(faces.len(), 3);
    }
}

#[tokio::test]
async fn a_first_try_whose_content_is_forbidden_is_left_to_the_one_that_is_kept() {
    let bench = Bench::new().await;
    bench.answers(refusal(230_022, "sensitive"));
    let patched = edited(&bench, PatchOf::Soon(card("t", "secret"))).await;
    assert_eq!(patched, Patched::Refused);
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test]
async fn what_is_feishus_own_trouble_is_tried_once_more_after_a_moment() {
    let bench = Bench::new().await;
    bench.stop_time();
    let hiccup = || {
        refusal(
            230_099,
            "Failed to create card content, ext=Server Internal Error",
        )
    };
    bench.answers(hiccup());
    let card = card("t", "x");
    let mut patched = std::pin::pin!(edited(&bench, PatchOf::Soon(Arc::clone(&card))));
    assert!(futures::poll!(&mut patched).is_pending());
    let almost = HICCUP.checked_sub(Duration::from_millis(200)).unwrap();
    bench.pass(almost).await;
    assert!(futures::poll!(&mut patched).is_pending());
    assert_eq!(bench.edits_of(&message()).len(), 1);
    let patched = bench.meanwhile(HICCUP, patched).await;
    assert_eq!(patched, Patched::Taken);
    assert_eq!(
        bench.edits_of(&message()),
        [card.to_string(), card.to_string()]
    );
}

#[tokio::test]
async fn a_limit_and_a_lost_answer_pass_and_a_message_that_is_gone_does_not() {
    let bench = Bench::new().await;
    bench.stop_time();
    let patched = |edit| edited(&bench, edit);
    let edit = || PatchOf::Soon(card("t", "x"));
    for _ in 0..5 {
        bench.answers(refusal(230_020, "per-message limit"));
    }
    let told = bench
        .meanwhile(Duration::from_secs(10), patched(edit()))
        .await;
    let half = Duration::from_millis(500);
    assert_eq!(told, Patched::Passing(Some(half)));
    for _ in 0..5 {
        bench.fails(unanswered());
    }
    let told = bench
        .meanwhile(Duration::from_secs(10), patched(edit()))
        .await;
    assert_eq!(told, Patched::Passing(None));
    bench.answers(refusal(230_011, "recalled"));
    assert_eq!(patched(edit()).await, Patched::Refused);
    assert_eq!(bench.calls().len(), 11);
}

#[tokio::test]
async fn the_book_hears_what_became_of_an_edit() {
    let bench = Bench::new().await;
    bench.answers(refusal(230_011, "recalled"));
    let face = card("t", "x").into();
    super::super::queue_edit(&bench.cards, message(), face, Duration::ZERO).await;
    bench.until(|| bench.calls().len() == 1).await;
    bench.settled().await;
    assert_eq!(bench.kept().await, [], "struck off");
    let bot = Bench::with(config(&WEBHOOK)).await;
    let patch = Patch {
        message: message(),
        edit: PatchOf::Soon(card("t", "x")),
    };
    make(&bot.cards, patch).await;
    assert!(bot.cards.courier.messages().is_none());
}

#[test]
fn a_card_is_kept_true_for_as_long_as_feishu_may_let_nod_in_again() {
    let answer = || FeishuAnswer::new(1, "words", None);
    let (fix, why) = ("publish", "left");
    let problem = ContentProblem::Sensitive;
    for (error, passes) in [
        (ApiError::StaleToken(answer()), true),
        (ApiError::BadCredentials(answer()), true),
        (
            ApiError::Setup {
                answer: answer(),
                fix,
            },
            true,
        ),
        (
            ApiError::Retry {
                after: None,
                answer: answer(),
            },
            true,
        ),
        (unanswered(), true),
        (
            ApiError::Recipient {
                answer: answer(),
                why,
            },
            false,
        ),
        (
            ApiError::Content {
                answer: answer(),
                problem,
            },
            false,
        ),
        (ApiError::Gone(answer()), false),
        (ApiError::Quota(answer()), false),
        (ApiError::Rejected(answer()), false),
    ] {
        assert_eq!(may_pass(&error), passes, "{error}");
    }
}
