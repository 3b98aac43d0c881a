//! What the daemon writes down about requests: pending ones whole, so that a
//! restart can go on with them; ended ones without their input, for good.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{AskingAgent, Digest, Ending, Ran, Reach, Request, UntrueEnding};
use crate::approvals::token::TokenHash;
use crate::approvals::{Correction, Settled, record};
use crate::cards::gist;
use crate::clock::{Clock, Millis};
use crate::daemon::known::refused::Strangers;
use crate::ids::{CardKey, EventId, RequestId, UserId};
use crate::rules::Rule;
use crate::sessions::questions::script;
use crate::store::{About, AuditEntry, Db, Pending, Settlement, Store, StoreError, Subject};
use crate::talk::DecidedBy;
use crate::text::escape::{self, Budget, Shape};
use crate::text::secrets;

/// The store and the time it writes by.
#[derive(Clone)]
pub(crate) struct Journal {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) refused: Arc<Strangers>,
}

impl Journal {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            clock,
            refused: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }
}

/// Has the store do what nobody stops for; where it can't, `otherwise` is said.
pub(crate) async fn run<T: Send + 'static>(
    journal: &Journal,
    otherwise: &str,
    work: impl FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
) -> Option<T> {
    let done = journal.store.run(work).await;
    done.inspect_err(|why| warn!("{otherwise}: {why}")).ok()
}

/// Keeps a new request. A store that cannot write does not stop a decision;
/// only a restart would lose the request.
pub(crate) async fn keep(journal: &Journal, request: &Request, token: TokenHash) {
    let pending = Pending {
        id: request.id.clone(),
        token_hash: Some(token.to_bytes()),
        subject: subject(request),
        card: None,
        asked_at: request.asked_at,
        deadline: request.deadline,
        request: record::request_text(request),
    };
    let otherwise = "a request was not kept, a restart would lose it";
    run(journal, otherwise, move |db| db.save_pending(&pending)).await;
}

/// Writes an ending down, and the edit of its card with it, in one go. Returns
/// the edit's version; `Err` when the store knows that the request had ended.
pub(crate) async fn settle(
    journal: &Journal,
    settled: &Settled,
    event: Option<EventId>,
    edit: Option<(CardKey, Arc<str>)>,
) -> Result<Option<i64>, StoreError> {
    let settlement = settlement(settled, event);
    let at = settled.at;
    let written = journal.store.run(move |db| {
        db.atomically(|db| {
            db.settle(&settlement)?;
            edit.map(|(key, card)| db.put_edit(&key, &card, at))
                .transpose()
        })
    });
    match written.await {
        Err(StoreError::AlreadySettled) => Err(StoreError::AlreadySettled),
        Err(why) => {
            warn!("an ending was not written down: {why}");
            Ok(None)
        }
        Ok(version) => Ok(version),
    }
}

fn settlement(settled: &Settled, event: Option<EventId>) -> Settlement {
    let request = &settled.request;
    let (operator, rule, source) = match &settled.ending {
        Ending::Allowed { by, reach, .. } => (Some(by), rules_text(reach), by.source()),
        Ending::Denied { by, .. } | Ending::Answered { by, .. } | Ending::Stopped { by, .. } => {
            (Some(by), None, by.source())
        }
        Ending::DeniedElsewhere
        | Ending::Ran(Ran {
            by: Some(DecidedBy::Other),
            ..
        }) => (None, None, "elsewhere"),
        Ending::Terminal { .. } | Ending::Ran(_) => (None, None, "terminal"),
        Ending::TimedOut => (None, None, "clock"),
        Ending::HookGone | Ending::Orphaned => (None, None, "hook"),
        Ending::Undeliverable { .. } | Ending::Dropped { .. } => (None, None, "nod"),
    };
    Settlement {
        id: request.id.clone(),
        subject: subject(request),
        card: None,
        asked_at: request.asked_at,
        at: settled.at,
        kind: record::kind(&settled.ending).to_owned(),
        ending: record::ending_json(&settled.ending).to_string(),
        operator: operator.map(|by| by.id.clone()),
        event,
        rule,
        source: source.to_owned(),
        detail: Some(detail(settled)),
    }
}

/// What the record tells a person besides: of the input one masked line.
fn detail(settled: &Settled) -> Value {
    let request = &settled.request;
    let (waited, ran) = settled.ending.waited_and_ran(request.asked_at, settled.at);
    let mut detail = json!({
        "project": request.origin.project,
        "waited_ms": waited,
    });
    if let Some(ran) = ran {
        detail["ran_ms"] = json!(ran);
    }
    match &settled.ending {
        Ending::Ran(_) => detail["allowed"] = json!(true),
        Ending::Terminal {
            allowed: Some(allowed),
        } => detail["allowed"] = json!(allowed),
        _ => {}
    }
    if let Some(pid) = request.origin.pid {
        detail["pid"] = json!(pid);
    }
    if request.origin.caller.agent != AskingAgent::ClaudeCode {
        detail["agent"] = json!(request.origin.caller.agent.kind().word());
    }
    if let Some(what) = gist::gist(request) {
        detail["what"] = json!(what);
    }
    let is_confirm = request.tool == script::TOOL && request.input["kind"] == "confirm";
    if let Ending::Answered { answers, .. } = &settled.ending
        && is_confirm
    {
        detail["answer"] = json!(answers.first());
    }
    detail
}

fn subject(request: &Request) -> Subject {
    Subject {
        tool: request.tool.clone(),
        project: request.origin.project.to_string_lossy().into_owned(),
        machine: request.origin.machine.clone(),
        session: request.origin.session.clone(),
        digest: request.digest.hex(),
    }
}

fn rules_text(reach: &Reach) -> Option<String> {
    let rules = match reach {
        Reach::Once | Reach::Unwritten => return None,
        Reach::Turn(rules) | Reach::Session(rules) | Reach::Always { rules, .. } => rules,
    };
    let texts: Vec<_> = rules.iter().map(Rule::render).collect();
    Some(texts.join(", "))
}

/// An ending the store remembers and the desk no longer does.
pub(crate) struct RememberedEnding {
    pub(crate) ending: Ending,
    pub(crate) at: Millis,
    pub(crate) asked_at: Millis,
    pub(crate) digest: Digest,
    pub(crate) token: Option<TokenHash>,
}

pub(crate) async fn remembered(journal: &Journal, id: &RequestId) -> Option<RememberedEnding> {
    let id = id.clone();
    let row = journal.store.run(move |db| db.settled(&id)).await.ok()??;
    let value: Value = serde_json::from_str(&row.ending).ok()?;
    Some(RememberedEnding {
        ending: record::read_ending(&value)?,
        at: row.at,
        asked_at: row.asked_at,
        digest: Digest::parse_hex(&row.subject.digest)?,
        token: row.token_hash.map(TokenHash::from_bytes),
    })
}

/// What was pending when the last daemon stopped.
pub(crate) async fn pending(journal: &Journal) -> Vec<(Pending, Request)> {
    let otherwise = "what was pending before cannot be read";
    let rows = run(journal, otherwise, Db::pending_all).await;
    let (mut pending, mut moved) = (Vec::new(), Vec::new());
    for row in rows.unwrap_or_default() {
        let value: Option<Value> = serde_json::from_str(&row.request).ok();
        let Some(mut request) = value.as_ref().and_then(record::read_request) else {
            continue;
        };
        if request.pull_back_to(journal.now()) {
            moved.push(request.clone());
        }
        pending.push((row, request));
    }
    if !moved.is_empty() {
        keep_new_times(journal, moved).await;
    }
    pending
}

/// Without this, each start would wait for them again.
async fn keep_new_times(journal: &Journal, moved: Vec<Request>) {
    let kept = journal.store.run(move |db| {
        moved.iter().try_for_each(|request| {
            let text = record::request_text(request);
            db.move_pending(&request.id, request.asked_at, request.deadline, &text)
        })
    });
    if let Err(why) = kept.await {
        debug!("the new deadlines of requests were not kept: {why}");
    }
}

/// Keeps what was answered to a tap that had an effect, without the input of
/// the tool. The effect itself was written down before, so the person need not
/// wait for this.
pub(crate) fn answered(journal: &Journal, event: Option<&EventId>, answer: Vec<u8>) {
    let Some(event) = event.cloned() else { return };
    let now = journal.now();
    journal.store.later("an answer", move |db| {
        db.remember_answer(&event, &answer, now)
    });
}

/// What was answered to this event before, also before a restart.
pub(crate) async fn answer(journal: &Journal, event: Option<&EventId>) -> Option<Vec<u8>> {
    let event = event?.clone();
    let kept = journal.store.run(move |db| db.answer(&event)).await;
    kept.ok().flatten()
}

/// The pauses between looks for an ending on disk: a busy disk is given two
/// seconds.
const WRITTEN_PAUSES: [u64; 10] = [1, 2, 4, 10, 20, 50, 100, 300, 500, 1_000];

/// Waits until the ending of a request that has ended is on disk; the courier
/// knows it by then.
pub(crate) async fn written(journal: &Journal, id: &RequestId) {
    for pause in WRITTEN_PAUSES {
        let id = id.clone();
        match journal.store.run(move |db| db.is_settled(&id)).await {
            Ok(false) => tokio::time::sleep(Duration::from_millis(pause)).await,
            Ok(true) | Err(_) => return,
        }
    }
}

/// Puts an ending right that was written down before, and the edit of its card
/// with it, in one go. Returns the edit's version. An ending that was not
/// untrue, only unfinished, is completed.
pub(crate) async fn correct(
    journal: &Journal,
    correction: &Correction,
    edit: Option<(CardKey, Arc<str>)>,
) -> Option<i64> {
    let (id, ending) = (correction.id.clone(), &correction.ending);
    let word = if is_untrue(ending) {
        "corrected"
    } else {
        "completed"
    };
    let (kind, ending) = (record::kind(ending), record::ending_json(ending));
    let at = journal.now();
    let entry = AuditEntry {
        request: Some(id.to_string()),
        detail: Some(match &ending["ran"] {
            Value::Null => ending.clone(),
            ran => ran.clone(),
        }),
        ..bare(at, word, "terminal")
    };
    let text = ending.to_string();
    let correct = move |db: &Db| {
        db.atomically(|db| {
            db.correct(&id, (kind, &text), &entry)?;
            edit.map(|(key, card)| db.put_edit(&key, &card, at))
                .transpose()
        })
    };
    run(journal, "a correction was not written down", correct).await?
}

/// Whether an ending says what did not happen, and not only less than all.
fn is_untrue(ending: &Ending) -> bool {
    let ran = match ending {
        Ending::Ran(ran) => ran,
        Ending::Allowed { cancelled, .. } => return *cancelled,
        _ => return matches!(ending, Ending::DeniedElsewhere),
    };
    let told_before = ran.since.is_some() && ran.took.is_some();
    let denied = |said: &UntrueEnding| matches!(said.kind.as_str(), "deny" | "interrupt");
    ran.corrects.as_ref().is_some_and(denied) && !told_before
}

/// Something of Feishu's worth the audit that ended no request.
pub(crate) async fn happened(journal: &Journal, outcome: &Outcome, request: &RequestId, by: &str) {
    let Some(kind) = outcome.word() else { return };
    let entry = AuditEntry {
        operator: Some(by.to_owned()),
        request: Some(request.to_string()),
        ..bare(journal.now(), kind, "feishu")
    };
    append(journal, entry).await;
}

/// Something that was told and did not come about.
pub(crate) async fn missed(journal: &Journal, kind: &str, request: &RequestId) {
    let entry = AuditEntry {
        request: Some(request.to_string()),
        ..bare(journal.now(), kind, "terminal")
    };
    append(journal, entry).await;
}

/// A tap or a message of somebody who may not: the first has a line of its own,
/// the rest are summed up, or whoever is refused could fill the audit.
pub(crate) async fn turned_away(
    journal: &Journal,
    why: &Refusal,
    request: Option<&RequestId>,
    by: Option<&UserId>,
    event: Option<&EventId>,
) {
    let Some(kind) = why.word() else { return };
    let by = by.map(UserId::as_str);
    for line in lines(&journal.refused, kind, request, by, event, journal.now()) {
        append(journal, line).await;
    }
}

fn lines(
    strangers: &Strangers,
    kind: &'static str,
    request: Option<&RequestId>,
    by: Option<&str>,
    event: Option<&EventId>,
    now: Millis,
) -> Vec<AuditEntry> {
    let mut lines = sums(strangers, now, false);
    lines.extend(strangers.counted(kind, by, now).map(|whom| AuditEntry {
        operator: whom.person,
        event: event.map(ToString::to_string),
        request: request.map(ToString::to_string),
        ..bare(now, kind, "feishu")
    }));
    lines
}

/// Writes down what was only counted; all of it before a stop.
pub(crate) async fn sum_up(journal: &Journal, stopping: bool) {
    for line in sums(&journal.refused, journal.now(), stopping) {
        append(journal, line).await;
    }
}

fn sums(strangers: &Strangers, now: Millis, stopping: bool) -> Vec<AuditEntry> {
    let sums = strangers.sums(now, stopping).into_iter();
    sums.map(|sum| AuditEntry {
        operator: sum.whom.person,
        detail: Some(json!({"times": sum.count, "since": sum.since})),
        ..bare(now, sum.whom.kind, "feishu")
    })
    .collect()
}

/// Words that a person put into a session in a terminal, and what became of
/// them. Credentials in them are masked as on a card.
pub(crate) async fn spoken(
    journal: &Journal,
    by: Option<&UserId>,
    about: &About,
    words: &str,
    became: &str,
) {
    let shown = escape::excerpt(words, 0..words.len(), &secrets::find(words));
    let entry = AuditEntry {
        operator: by.map(ToString::to_string),
        session: Some(about.session.to_string()),
        decision: Some(became.to_owned()),
        detail: Some(json!({"words": shown, "project": about.project})),
        ..bare(journal.now(), "spoken", "feishu")
    };
    append(journal, entry).await;
}

/// Something a person did to nod itself: an id of Feishu's, or `None` for a
/// command on this machine.
pub(crate) async fn noted(journal: &Journal, kind: &str, by: Option<&str>) {
    let source = by.map_or("terminal", |_| "feishu");
    let entry = AuditEntry {
        operator: by.map(str::to_owned),
        ..bare(journal.now(), kind, source)
    };
    append(journal, entry).await;
}

/// A session that a person began: where, and with which words.
pub(crate) async fn began(journal: &Journal, by: Option<&UserId>, project: &Path, words: &str) {
    let source = by.map_or("terminal", |_| "feishu");
    let entry = AuditEntry {
        operator: by.map(ToString::to_string),
        detail: Some(json!({"project": project, "what": one_line(words)})),
        ..bare(journal.now(), "session_started", source)
    };
    append(journal, entry).await;
}

/// Enough to know the words again.
const GIST: Budget = Budget::new(96, 1);

fn one_line(words: &str) -> String {
    let words = words.trim();
    escape::fit(words, Shape::Line, &secrets::find(words), GIST).beginning()
}

fn bare(at: Millis, kind: &str, source: &str) -> AuditEntry {
    AuditEntry {
        at,
        kind: kind.to_owned(),
        source: Some(source.to_owned()),
        ..AuditEntry::default()
    }
}

async fn append(journal: &Journal, entry: AuditEntry) {
    if let Err(why) = journal.store.run(move |db| db.append_audit(&entry)).await {
        debug!("an audit line was not written: {why}");
    }
}

/// How often this very call was denied before.
pub(crate) async fn denied_before(journal: &Journal, request: &Request) -> u32 {
    let digest = request.digest.hex();
    let denied = journal.store.run(move |db| db.times_ended(&digest, "deny"));
    u32::try_from(denied.await.unwrap_or(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_refused_messages_leave_every_decision_in_the_audit() {
        let (db, strangers) = (Db::in_memory().unwrap(), Strangers::default());
        let day = 24 * 3_600_000;
        let mut decisions = 0;
        for n in 0..10_000 {
            let now = n * day / 10_000;
            for line in lines(&strangers, "not_the_owner", None, Some("ou_x"), None, now) {
                db.append_audit(&line).unwrap();
            }
            if n % 1_000 == 0 {
                db.append_audit(&bare(now, "settled", "feishu")).unwrap();
                decisions += 1;
            }
        }
        for line in sums(&strangers, day, true) {
            db.append_audit(&line).unwrap();
        }
        let rows = db.audit(None, 10_000).unwrap();
        let (kept, refused): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row.entry.kind == "settled");
        assert_eq!(kept.len(), decisions);
        assert!(refused.len() <= 26, "{}", refused.len());
        let times = |row: &&crate::store::Recorded| {
            let detail = row.entry.detail.as_ref();
            detail.map_or(1, |detail| detail["times"].as_u64().unwrap())
        };
        assert_eq!(refused.iter().map(times).sum::<u64>(), 10_000);
    }
}
