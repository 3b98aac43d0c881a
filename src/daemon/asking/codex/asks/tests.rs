use super::*;
use crate::approvals::answer::Extras;
use crate::approvals::choice::Choice;
use crate::approvals::outcome::sample;
use crate::approvals::request::AskingAgent;
use crate::daemon::asking::codex::bench::{asked, command, sent};
use crate::daemon::bench::DaemonBench;
use crate::daemon::known::journal;
use crate::rules::Rule;
use serde_json::json;

struct Beside {
    bench: DaemonBench,
    asks: CodexAsks,
    follower: Follower,
    ask: CodexAsk,
    inbox: mpsc::Receiver<CodexOrder>,
}

impl Beside {
    /// Codex asks, and its request waits at the desk.
    async fn new() -> Self {
        let bench = DaemonBench::new().await;
        let (orders, inbox) = mpsc::channel(8);
        let mut asks = CodexAsks::new(Arc::clone(&bench.codex), orders);
        let (mut follower, ask) = asked(&command("I", &bench.shop()));
        let acts = asks.asked(&mut follower, ask.clone()).await;
        assert_eq!(acts, []);
        bench.until(|bench| bench.cards.desk.pending() == 1).await;
        Self {
            bench,
            asks,
            follower,
            ask,
            inbox,
        }
    }

    fn id(&self) -> RequestId {
        RequestId::parse(&self.ask.name).unwrap()
    }

    /// Somebody decides; what the desk then hands over, and its receipt.
    async fn decided(
        &mut self,
        choice: Choice,
    ) -> (CodexAnswered, tokio::task::JoinHandle<Delivery>) {
        let desk = &self.bench.cards.desk;
        let claim = desk.claim(&self.id(), choice, sample::by()).unwrap();
        let settled = claim.settled().clone();
        let kept = journal::settle(&self.bench.cards.journal, &settled, None, None).await;
        assert!(kept.is_ok());
        let receipt = tokio::spawn(claim.deliver(Extras::default()));
        match self.inbox.recv().await.unwrap() {
            CodexOrder::Answered(answered) => (answered, receipt),
            other => panic!("{other:?}"),
        }
    }

    async fn answered(&mut self, answered: CodexAnswered) -> Vec<serde_json::Value> {
        sent(&self.asks.answer(&mut self.follower, answered).await)
    }
}

fn allow() -> Choice {
    Choice::Allow(Reach::Once)
}

#[test]
fn only_what_a_person_decided_means_anything_to_codex() {
    let rule = || Rule::new("Bash", "ls");
    for (ending, means) in [
        (sample::allowed(Reach::Once), Some(CodexDecision::Once)),
        (
            sample::allowed(Reach::Session(vec![rule()])),
            Some(CodexDecision::Session),
        ),
        (
            sample::allowed(sample::always(rule())),
            Some(CodexDecision::Prefix),
        ),
        (sample::denied(false), Some(CodexDecision::Deny)),
        (sample::denied(true), Some(CodexDecision::Interrupt)),
        (
            sample::answered(),
            Some(CodexDecision::Answers(vec!["yes".to_owned()])),
        ),
        (Ending::TimedOut, None),
        (Ending::HookGone, None),
        (Ending::Orphaned, None),
        (
            Ending::Terminal {
                allowed: Some(true),
            },
            None,
        ),
        (Ending::Undeliverable { why: None }, None),
        (Ending::Dropped { why: Dropped::Over }, None),
    ] {
        assert_eq!(
            decision(&ending).map(|(means, _)| means),
            means,
            "{ending:?}"
        );
    }
}

#[tokio::test]
async fn a_tap_answers_codex_and_is_sure_once_no_word_of_the_terminal_followed() {
    let mut it = Beside::new().await;
    let request = it.bench.cards.desk.find(&it.id()).unwrap();
    let by = &request.origin.caller.agent;
    assert!(matches!(by, AskingAgent::Codex(_)));
    let (answered, receipt) = it.decided(allow()).await;
    let sent = it.answered(answered).await;
    assert_eq!(sent, [json!({"id": 0, "result": {"decision": "accept"}})]);
    let name = it.ask.name.clone();
    it.asks.taken(&name);
    let due = it.asks.next_due().unwrap();
    it.asks.settle_due();
    assert!(it.asks.next_due().is_some(), "not before its time");
    tokio::time::sleep_until(due).await;
    it.asks.settle_due();
    assert_eq!(receipt.await.unwrap(), Delivery::Confirmed);
}

#[tokio::test]
async fn an_allow_of_something_else_than_was_shown_is_never_sent() {
    let mut it = Beside::new().await;
    let name = || it.ask.name.clone();
    let before = |ending| CodexAnswered {
        name: name(),
        what: AnswerKind::Before {
            ending,
            digest: Digest::of(&json!({"command": "rm -rf /"})),
        },
    };
    let (allowed, denied) = (
        before(sample::allowed(Reach::Once)),
        before(sample::denied(false)),
    );
    assert!(it.answered(allowed).await.is_empty());
    let sent = it.answered(denied).await;
    assert_eq!(sent[0]["result"]["decision"], "decline", "a no always may");
}

#[tokio::test]
async fn whoever_taps_after_the_terminal_answered_learns_that_it_was_first() {
    let mut it = Beside::new().await;
    let name = it.ask.name.clone();
    it.asks.resolved(&name);
    assert_eq!(it.bench.cards.desk.pending(), 0);
    let past = it.bench.cards.desk.past(&it.id()).unwrap();
    assert!(matches!(past.ending, Ending::Terminal { .. }));

    let mut it = Beside::new().await;
    let (answered, receipt) = it.decided(allow()).await;
    it.follower
        .heard(r#"{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":0}}"#);
    assert!(it.answered(answered).await.is_empty());
    assert_eq!(receipt.await.unwrap(), Delivery::Lost);
}

#[tokio::test]
async fn an_answer_given_while_codex_is_away_waits_for_the_same_request() {
    let mut it = Beside::new().await;
    it.asks.lost();
    let (answered, receipt) = it.decided(allow()).await;
    it.asks.hold(answered);
    let (mut follower, ask) = asked(&command("I", &it.bench.shop()));
    let acts = it.asks.asked(&mut follower, ask).await;
    assert_eq!(sent(&acts)[0]["result"]["decision"], "accept");
    it.asks.lost();
    drop(it);
    assert_ne!(
        receipt.await.unwrap(),
        Delivery::Confirmed,
        "nobody said so"
    );
}

#[tokio::test]
async fn what_does_not_come_back_with_codex_is_over() {
    let mut it = Beside::new().await;
    it.asks.give_up(Duration::ZERO).await;
    assert_eq!(it.bench.cards.desk.pending(), 1, "it is there");
    it.asks.lost();
    it.asks.give_up(Duration::from_secs(60)).await;
    assert_eq!(it.bench.cards.desk.pending(), 1, "it may come again");
    it.asks.give_up(Duration::ZERO).await;
    assert_eq!(it.bench.cards.desk.pending(), 0);
    let past = it.bench.cards.desk.past(&it.id()).unwrap();
    assert_eq!(past.ending, Ending::HookGone, "nobody answered there");
}

#[tokio::test]
async fn a_tap_that_codex_never_heard_is_not_called_sent() {
    let mut it = Beside::new().await;
    it.asks.lost();
    let (answered, receipt) = it.decided(allow()).await;
    // Codex is back, with another thread.
    assert!(it.answered(answered).await.is_empty());
    it.asks.give_up(Duration::ZERO).await;
    assert_eq!(receipt.await.unwrap(), Delivery::Lost);
    let kept = journal::remembered(&it.bench.cards.journal, &it.id()).await;
    assert_eq!(kept.unwrap().ending, Ending::HookGone);
}

#[tokio::test]
async fn an_answer_that_a_broken_connection_lost_is_sent_again() {
    let mut it = Beside::new().await;
    let (answered, _receipt) = it.decided(allow()).await;
    assert_eq!(it.answered(answered).await.len(), 1);
    it.asks.lost();
    let (mut follower, ask) = asked(&command("I", &it.bench.shop()));
    let acts = it.asks.asked(&mut follower, ask).await;
    assert_eq!(sent(&acts)[0]["result"]["decision"], "accept");
}

#[tokio::test]
async fn a_card_that_said_allowed_is_put_right_when_the_turn_was_interrupted() {
    let mut it = Beside::new().await;
    let (answered, receipt) = it.decided(allow()).await;
    it.answered(answered).await;
    let name = it.ask.name.clone();
    it.asks.taken(&name);
    it.asks.cut_off(&name).await;
    assert_eq!(receipt.await.unwrap(), Delivery::Confirmed);
    let kept = journal::remembered(&it.bench.cards.journal, &it.id()).await;
    let why = Dropped::CutOff;
    assert_eq!(kept.unwrap().ending, Ending::Dropped { why });

    let mut it = Beside::new().await;
    let deny = Choice::Deny {
        reason: None,
        interrupt: true,
    };
    let (answered, _receipt) = it.decided(deny).await;
    it.answered(answered).await;
    let name = it.ask.name.clone();
    it.asks.taken(&name);
    it.asks.cut_off(&name).await;
    let kept = journal::remembered(&it.bench.cards.journal, &it.id()).await;
    assert_eq!(kept.unwrap().ending, sample::denied(true), "it did not run");
}

#[tokio::test]
async fn what_changed_while_it_was_asked_can_not_be_allowed() {
    let mut it = Beside::new().await;
    let name = it.ask.name.clone();
    it.asks.changed(&name);
    let past = it.bench.cards.desk.past(&it.id()).unwrap();
    let why = Dropped::Changed;
    assert_eq!(past.ending, Ending::Dropped { why });
}

#[tokio::test]
async fn a_card_that_said_allowed_is_put_right_when_the_terminal_had_declined() {
    let mut it = Beside::new().await;
    let (answered, receipt) = it.decided(allow()).await;
    it.answered(answered).await;
    let name = it.ask.name.clone();
    it.asks.became(&name, true, None).await;
    assert_eq!(receipt.await.unwrap(), Delivery::Lost);
    let kept = journal::remembered(&it.bench.cards.journal, &it.id()).await;
    let no = Ending::Terminal {
        allowed: Some(false),
    };
    assert_eq!(kept.unwrap().ending, no);
}

#[tokio::test]
async fn a_thread_that_a_chat_drives_is_left_to_it() {
    let mut it = Beside::new().await;
    it.asks.leave("another");
    assert_eq!(it.bench.cards.desk.pending(), 1);
    it.asks.leave("T");
    assert_eq!(it.bench.cards.desk.pending(), 0);
    let past = it.bench.cards.desk.past(&it.id()).unwrap();
    assert_eq!(past.ending, Ending::Dropped { why: Dropped::Over });
}

#[tokio::test]
async fn there_is_an_end_to_what_is_known() {
    let mut it = Beside::new().await;
    let mut ask = it.ask.clone();
    ask.cwd = None;
    for n in 0..MAX_KNOWN + 10 {
        ask.name = format!("codex-n{n}");
        it.asks.asked(&mut it.follower, ask.clone()).await;
    }
    assert_eq!(it.asks.known.len(), MAX_KNOWN);
    for known in it.asks.known.values_mut() {
        known.stage = AskStage::Over {
            allowed_here: false,
        };
    }
    it.asks.asked(&mut it.follower, ask).await;
    assert_eq!(it.asks.known.len(), 1, "what is over makes room");
}
