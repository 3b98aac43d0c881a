//! What `nod status` shows, as JSON. Of a waiting request only what its card's
//! title says: never the tool's input.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::approvals::request::Request;
use crate::cards::gist;
use crate::clock::{Millis, millis};
use crate::daemon::asking::codex::CodexLinks;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::figures::{Figures, Summary};
use crate::daemon::known::lock;
use crate::daemon::machines::team::Team;
use crate::daemon::process::instance;
use crate::daemon::talking::sessions::Sessions;
use crate::feishu::link::Phase;
use crate::sessions::state::SessionStatus;
use crate::store::Health;
use crate::text::Lang;

const MAX_LISTED: usize = 20;

/// How the daemon stands, for whoever asks.
pub(crate) struct Standing {
    pub(crate) cards: Arc<Cards>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) codex: Arc<CodexLinks>,
    pub(crate) team: Team,
    pub(crate) app_id: String,
    pub(crate) started: Millis,
}

pub(crate) fn report(standing: &Standing) -> Value {
    let (cards, now) = (&standing.cards, Instant::now());
    let view = cards.link.borrow().clone();
    let left = |until: &Instant| Some(millis(until.saturating_duration_since(now)));
    let (state, since, cause, retry) = match &view.phase {
        Phase::Up { since } => {
            let since = millis(now.saturating_duration_since(*since));
            ("connected", Some(since), None, None)
        }
        Phase::Dialing { why } => ("connecting", None, why.as_ref(), None),
        Phase::Waiting { until, why } => ("waiting", None, Some(why), left(until)),
        Phase::Degraded { until, why } => ("degraded", None, Some(why), left(until)),
    };
    let state = match cards.courier.webhook() {
        Some(_) => "webhook",
        None => state,
    };
    let last_event = view
        .counts
        .last_push
        .map(|at| millis(now.saturating_duration_since(at)));
    let store = match cards.journal.store.health() {
        Health::Good => json!({"ok": true}),
        Health::Failing(why) => json!({"ok": false, "cause": why.en, "cause_zh": why.zh}),
    };
    json!({
        "version": crate::version::BUILD,
        "pid": std::process::id(),
        "background": instance::is_in_background(&cards.config.state_dir),
        "up_ms": cards.now() - standing.started,
        "machine": {"id": cards.buttons.machine.id.as_str(), "name": cards.buttons.machine.name},
        "platform": cards.config.domain.name(),
        "app_id": standing.app_id,
        "connection": {
            "state": state,
            "up_ms": since,
            "cause": cause.map(|why| why.get(Lang::En)),
            "cause_zh": cause.map(|why| why.get(Lang::Zh)),
            "retry_in_ms": retry,
            "connects": view.counts.connects,
            "events": view.counts.pushes,
            "dropped": view.counts.dropped,
            "last_event_ms_ago": last_event,
        },
        "pending": cards.desk.pending(),
        "waiting": waiting(cards),
        "latency": {
            "tap_to_reply": latency(standing.figures.reply.summary()),
            "tap_to_hook": latency(standing.figures.hook.summary()),
        },
        "locked": cards.lock.is_closed(),
        "lock_unsure": cards.lock.is() == lock::Is::Unsure,
        "lock_kept": cards.lock.is_kept(),
        "sessions": sessions(&standing.sessions),
        "codex": standing.codex.report(),
        "owner_set": cards.courier.has_receiver(),
        "needs": courier::needs(cards),
        "callback": {
            "url": cards.config.callback.url.as_ref().map(ToString::to_string),
            "listening": cards.config.callback.listen.map(|at| at.to_string()),
        },
        "bus": standing.team.report(),
        "store": store,
    })
}

/// Those with the least time left, and no more than a person reads.
fn waiting(cards: &Cards) -> Vec<Value> {
    let now = cards.now();
    let first = cards.desk.soonest(MAX_LISTED);
    let listed = |request: &Arc<Request>| {
        let runs = cards.desk.running_since(&request.id);
        listed(request, runs, now)
    };
    first.iter().map(listed).collect()
}

fn listed(request: &Request, runs: Option<Millis>, now: Millis) -> Value {
    let project = request.origin.project.file_name().unwrap_or_default();
    json!({
        "tool": request.tool,
        "what": gist::listed_name(request),
        "state": if runs.is_some() { "runs" } else { "waits" },
        "runs_ms": runs.map(|since| now.saturating_sub(since).max(0)),
        "agent": request.origin.caller.agent.kind().word(),
        "project": project.to_string_lossy(),
        "age_ms": now.saturating_sub(request.asked_at).max(0),
        "left_ms": request.deadline.saturating_sub(now).max(0),
    })
}

fn latency(summary: Summary) -> Value {
    let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    json!({
        "count": summary.count,
        "sum_us": micros(summary.sum),
        "last_us": micros(summary.last),
        "p50_us": micros(summary.p50),
        "p99_us": micros(summary.p99),
    })
}

fn sessions(sessions: &Sessions) -> Vec<Value> {
    let now = sessions.cards.now();
    let all = sessions.list().into_iter();
    all.map(|one| {
        json!({
            "number": one.kept.number,
            "project": one.kept.project,
            "agent": one.kept.agent.word(),
            "state": match one.status {
                SessionStatus::Idle => "idle",
                SessionStatus::Executing => "executing",
                SessionStatus::WaitingForInput => "waiting_input",
                SessionStatus::WaitingForConfirmation => "waiting_confirm",
                SessionStatus::Stopping => "stopping",
            },
            "age_ms": now - one.kept.began_at,
            "unused_ms": now - one.kept.used_at,
            "conversation": one.kept.saved.conversation.as_str(),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::outcome::sample;
    use crate::daemon::bench::{DaemonBench, WEBHOOK};
    use crate::daemon::cards::locking;
    use crate::ids::RequestId;
    use crate::text::Text;

    #[tokio::test]
    async fn what_waits_is_named_by_its_command_with_secrets_masked() {
        let bench = DaemonBench::new().await;
        let mut all = Vec::new();
        for n in 0..MAX_LISTED + 2 {
            let mut asked = sample::request("Bash", json!({"command": "mysql -phunter2 shop"}));
            asked.id = RequestId::parse(&format!("r{n}")).unwrap();
            all.push(bench.bench.asks(asked));
        }
        let told = report(&bench.standing);
        assert_eq!(told["pending"], MAX_LISTED + 2);
        let waiting = told["waiting"].as_array().unwrap();
        assert_eq!(waiting.len(), MAX_LISTED);
        assert_eq!(waiting[0]["project"], "shop");
        assert!(waiting[0]["left_ms"].as_i64().unwrap() > 0);
        assert_eq!(waiting[0]["what"], "mysql -p⟦secret password 7B⟧ shop");
        assert_eq!(waiting[0]["state"], "waits");
        assert!(!told.to_string().contains("hunter2"));
        let id = RequestId::parse("r0").unwrap();
        assert!(bench.standing.cards.desk.runs(&id, 5).is_some());
        let told = report(&bench.standing);
        let all = told["waiting"].as_array().unwrap();
        let running = all.iter().find(|one| one["state"] == "runs").unwrap();
        assert!(running["runs_ms"].as_i64().is_some(), "{running}");
    }

    #[tokio::test]
    async fn every_state_of_the_connection_has_its_word_and_its_cause_in_both_languages() {
        let bench = DaemonBench::new().await;
        let why = || Text::new("线断了", "the line is cut");
        let until = Instant::now() + Duration::from_secs(60);
        for (phase, word, caused) in [
            (Phase::Dialing { why: None }, "connecting", false),
            (Phase::Dialing { why: Some(why()) }, "connecting", true),
            (Phase::Waiting { until, why: why() }, "waiting", true),
            (Phase::Degraded { until, why: why() }, "degraded", true),
        ] {
            bench.bench.view.send_modify(|view| view.phase = phase);
            let told = &report(&bench.standing)["connection"];
            assert_eq!(told["state"], word);
            assert_eq!(told["cause"] == "the line is cut", caused, "{word}");
            assert_eq!(told["cause_zh"] == "线断了", caused, "{word}");
            let retry = told["retry_in_ms"].as_u64();
            let waits = matches!(word, "waiting" | "degraded");
            assert_eq!(retry.is_some_and(|ms| ms <= 60_000), waits, "{word}");
        }
        bench.bench.connected();
        assert_eq!(report(&bench.standing)["connection"]["state"], "connected");
        let webhook = DaemonBench::with(&WEBHOOK).await;
        let told = report(&webhook.standing);
        assert_eq!(told["connection"]["state"], "webhook");
    }

    #[tokio::test]
    async fn a_lock_a_missing_owner_and_the_sessions_are_told() {
        let bench = DaemonBench::with(&[("FEISHU_OWNER_ID", "")]).await;
        let told = report(&bench.standing);
        assert_eq!(
            (&told["locked"], &told["owner_set"]),
            (&json!(false), &json!(false))
        );
        locking::set(&bench.cards, true, None).await;
        bench.rests("c1", None).await;
        let told = report(&bench.standing);
        assert_eq!(
            (&told["locked"], &told["lock_kept"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(told["sessions"][0]["state"], "idle");
        assert_eq!(told["sessions"][0]["conversation"], "c1");
        let bench = DaemonBench::new().await;
        assert_eq!(report(&bench.standing)["owner_set"], true);
    }
}
