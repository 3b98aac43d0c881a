//! What a session says in its chat, in order: its progress card, its notices,
//! its answer. A slow Feishu delays the words, never the session.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{Sessions, keep};
use crate::cards::markdown;
use crate::cards::progress::{self, Task, TaskEnd};
use crate::cards::quote::quote;
use crate::daemon::cards::courier::{self, Face};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{Content, SentMessage};
use crate::ids::MessageId;
use crate::sessions::progress::ProgressView;
use crate::sessions::state::Notice;
use crate::store::{About, KeptSession};
use crate::wording::need::Need;
use crate::wording::task as words;

/// Things to say that may wait; progress is left out before anything else.
const MAX_WAITING: usize = 256;
const TRIES: u32 = 6;
/// An answer waits for Feishu for about a day.
const ANSWER_TRIES: u32 = 2_880;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// The way to say something; the words end with the last of them.
#[derive(Clone)]
pub(super) struct Voice(mpsc::Sender<VoiceLine>);

enum VoiceLine {
    Progress(ProgressView),
    Ended(TaskEnd, Option<ProgressView>),
    Answer(String),
    Text(String),
}

impl Voice {
    /// `card` shows the task that is about to run, or ran last.
    pub(super) fn start(sessions: &Arc<Sessions>, number: i64, card: Option<MessageId>) -> Self {
        let (voice, said) = mpsc::channel(MAX_WAITING);
        let speaker = Speaker {
            sessions: Arc::clone(sessions),
            number,
            card,
            view: None,
        };
        sessions.tasks.spawn(speaker.run(said));
        Self(voice)
    }

    pub(super) fn progress(&self, view: ProgressView) {
        // The next one says more.
        let _ = self.0.try_send(VoiceLine::Progress(view));
    }

    pub(super) fn ended(&self, end: TaskEnd, view: Option<ProgressView>) {
        self.say(VoiceLine::Ended(end, view));
    }

    pub(super) fn answer(&self, text: String) {
        self.say(VoiceLine::Answer(text));
    }

    pub(super) fn text(&self, text: String) {
        self.say(VoiceLine::Text(text));
    }

    fn say(&self, said: VoiceLine) {
        if self.0.try_send(said).is_err() {
            warn!("a session's words were lost: too many wait");
        }
    }
}

/// Why words did not go out.
enum Unsaid {
    /// Feishu takes offence at what they are, not at when or where.
    Refused(ApiError),
    /// It takes nothing there, or none at all.
    Lost,
    /// The daemon ends.
    Stopped,
}

struct Speaker {
    sessions: Arc<Sessions>,
    number: i64,
    card: Option<MessageId>,
    view: Option<ProgressView>,
}

impl Speaker {
    async fn run(mut self, mut said: mpsc::Receiver<VoiceLine>) {
        while let Some(next) = said.recv().await {
            match next {
                // Whatever waits behind it is newer.
                VoiceLine::Progress(view) if self.card.is_some() && !said.is_empty() => {
                    self.view = Some(view);
                }
                VoiceLine::Progress(view) => self.show(view).await,
                VoiceLine::Ended(end, view) => self.end(end, view).await,
                VoiceLine::Answer(text) => self.answer(&text).await,
                VoiceLine::Text(text) => {
                    self.send(Content::Text(text)).await;
                }
            }
        }
    }

    fn kept(&self) -> Option<KeptSession> {
        Some(self.sessions.find(self.number)?.kept)
    }

    async fn show(&mut self, view: ProgressView) {
        let Some(kept) = self.kept() else { return };
        let card = running_card(&self.sessions, &kept, Some(&view));
        self.view = Some(view);
        if let Some(message) = self.card.clone() {
            let card = courier::laid_out(&self.sessions.cards, &card);
            if let Some(messages) = self.sessions.cards.courier.messages()
                && let Err(why) = messages.patch(&message, card.to_string().into()).await
            {
                debug!("progress was not shown: {why}");
            }
        } else {
            let sent = self.send_card(&card).await;
            self.adopt(sent.map(|sent| sent.message_id)).await;
        }
    }

    async fn end(&mut self, end: TaskEnd, view: Option<ProgressView>) {
        let view = view.or_else(|| self.view.take());
        self.view = None;
        let (Some(message), Some(kept)) = (self.card.take(), self.kept()) else {
            return;
        };
        let lang = self.sessions.lang();
        let card = with_task(&self.sessions, &kept, view.as_ref(), |task| {
            progress::ended(task, end, lang)
        });
        let face = Face::from(&card);
        if self.sessions.stop.is_cancelled() {
            // The daemon stops; what is only queued waits for the next one.
            if let Some(messages) = self.sessions.cards.courier.messages()
                && let Err(why) = messages.patch(&message, Arc::clone(&face.shown)).await
            {
                debug!("a task's ending is shown at the next start: {why}");
            }
        }
        courier::queue_edit(&self.sessions.cards, message, face, Duration::ZERO).await;
        self.adopt(None).await;
    }

    /// Remembers which card shows the task, also over a restart.
    async fn adopt(&mut self, card: Option<MessageId>) {
        self.card.clone_from(&card);
        let changed = self
            .sessions
            .change(self.number, |entry| entry.kept.card = card);
        if let Some(kept) = changed {
            keep(&self.sessions, kept).await;
        }
    }

    async fn answer(&mut self, text: &str) {
        let Some(kept) = self.kept() else { return };
        let lang = self.sessions.lang();
        let markdown::AnswerPieces { pieces, left_out } =
            markdown::answer(text, markdown::MarkdownLimits::default());
        let last = pieces.len().saturating_sub(1);
        for (n, piece) in pieces.iter().enumerate() {
            let left_out = if n == last { left_out } else { 0 };
            let card = with_task(&self.sessions, &kept, None, |task| {
                progress::answer(task, piece, left_out, lang)
            });
            self.answer_piece(card, piece).await;
        }
    }

    /// A piece whose card Feishu refuses is said as text: no answer is lost in
    /// silence.
    async fn answer_piece(&self, card: Value, piece: &str) {
        let mut said = self.try_send(Content::Card(card), ANSWER_TRIES).await;
        if let Err(Unsaid::Refused(_)) = said {
            let text = Content::Text(piece.to_owned());
            said = self.try_send(text, ANSWER_TRIES).await;
        }
        let told = match said {
            Ok(_) | Err(Unsaid::Stopped) => return,
            Err(Unsaid::Refused(_)) => words::ANSWER_REFUSED,
            Err(Unsaid::Lost) => words::answer_lost(self.number),
        };
        let told = told.get(self.sessions.lang()).to_owned();
        if self.send(Content::Text(told.clone())).await.is_none() {
            // Nothing can be said where the session is.
            let uuid = format!("s{}-lost-{}", self.number, self.sessions.now());
            courier::tell(&self.sessions.cards, Content::Text(told), &uuid).await;
        }
    }

    /// Into the session's thread, however long Feishu is busy, within reason.
    async fn send(&self, content: Content) -> Option<SentMessage> {
        self.try_send(content, TRIES).await.ok()
    }

    /// A card that Feishu refuses comes in the plainest layout.
    async fn send_card(&self, card: &Value) -> Option<SentMessage> {
        let sessions = &self.sessions;
        let laid_out = Content::Card(courier::laid_out(&sessions.cards, card));
        match self.try_send(laid_out, TRIES).await {
            Err(Unsaid::Refused(why)) if courier::is_layout(&why) => {
                let plain = Content::Card(courier::plain(&sessions.cards, card));
                let sent = self.send(plain).await?;
                courier::needed(&sessions.cards, Need::Plain, &why).await;
                Some(sent)
            }
            sent => sent.ok(),
        }
    }

    async fn try_send(&self, content: Content, tries: u32) -> Result<SentMessage, Unsaid> {
        let kept = self.kept().ok_or(Unsaid::Lost)?;
        let uuid = format!("s{}-{:016x}", self.number, rand::random::<u64>());
        let (chat, in_thread) = (Some(&kept.place.chat), kept.place.thread.is_some());
        let messages = self.sessions.cards.courier.messages().ok_or(Unsaid::Lost)?;
        for attempt in 0..tries {
            let sent = messages.reply(&kept.anchor, chat, &content, in_thread, &uuid);
            match sent.await {
                Ok(sent) => {
                    remember(&self.sessions, &kept, &sent.message_id).await;
                    return Ok(sent);
                }
                Err(why) if why.is_retryable() || courier::is_a_hiccup(&why) && attempt == 0 => {
                    let grown = RETRY_FIRST * 2_u32.saturating_pow(attempt);
                    let wait = why.retry_after().unwrap_or(grown).min(RETRY_MOST);
                    debug!("a session speaks later: {why}");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.sessions.stop.cancelled() => return Err(Unsaid::Stopped),
                    }
                }
                Err(why) => {
                    warn!("a session could not speak: {why}");
                    let refused = matches!(why, ApiError::Content { .. });
                    return Err(if refused {
                        Unsaid::Refused(why)
                    } else {
                        Unsaid::Lost
                    });
                }
            }
        }
        warn!("a session could not speak: Feishu stayed away");
        Err(Unsaid::Lost)
    }
}

/// A reply to what a session said is for that session.
pub(super) async fn remember(sessions: &Sessions, kept: &KeptSession, message: &MessageId) {
    let about = About {
        session: kept.saved.conversation.clone(),
        project: kept.project.clone(),
    };
    let (message, now) = (message.clone(), sessions.now());
    let store = &sessions.cards.journal.store;
    let noted = store.run(move |db| db.notice_sent(&message, &about, now));
    if let Err(why) = noted.await {
        debug!("whose a message is was not kept: {why}");
    }
}

pub(super) fn running_card(
    sessions: &Sessions,
    kept: &KeptSession,
    view: Option<&ProgressView>,
) -> Value {
    let stop = sessions.cards.buttons.stop(kept.number);
    with_task(sessions, kept, view, |task| {
        progress::running(task, &stop, sessions.lang())
    })
}

fn with_task(
    sessions: &Sessions,
    kept: &KeptSession,
    view: Option<&ProgressView>,
    show: impl FnOnce(&Task<'_>) -> Value,
) -> Value {
    show(&Task {
        number: kept.number,
        title: &kept.title,
        project: &kept.project,
        agent: kept.agent,
        machine: &sessions.cards.buttons.machine.name,
        conversation: &kept.saved.conversation,
        mode: kept.saved.mode.as_str(),
        unguarded: sessions.cards.config.sessions.bypass,
        view,
    })
}

/// A notice whose foreign words may stand in a chat.
pub(super) fn quoted(notice: &Notice) -> Notice {
    match notice {
        Notice::Crashed { words } => Notice::Crashed {
            words: words.as_deref().map(quote),
        },
        Notice::NotStarted { problem } => Notice::NotStarted {
            problem: quote(problem),
        },
        Notice::ApprovalTimedOut { tool } => Notice::ApprovalTimedOut { tool: quote(tool) },
        Notice::NotBrought { tool } => Notice::NotBrought {
            tool: tool.as_deref().map(quote),
        },
        Notice::BackgroundEnded { tasks } => Notice::BackgroundEnded {
            tasks: tasks.iter().map(|task| quote(task)).collect(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
