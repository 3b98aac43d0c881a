//! What a line hears in turn with others: whoever takes no turn leaves it to
//! them, and still hears what was under way to it.

use async_nats::{Client, Message, Subscriber};
use futures::StreamExt as _;
use futures::stream::SelectAll;
use tokio::sync::watch;
use tracing::info;

/// What is heard by one of a group, and whether this line is one of them now.
pub struct LineTurns {
    pub group: &'static str,
    pub subjects: Vec<String>,
    pub takes: watch::Receiver<bool>,
}

impl LineTurns {
    pub fn none() -> Self {
        Self {
            group: "",
            subjects: Vec::new(),
            takes: watch::channel(false).1,
        }
    }
}

/// The turns of one connection.
pub(super) struct TakenTurns {
    client: Client,
    heard: SelectAll<Subscriber>,
    takes: watch::Receiver<bool>,
}

impl TakenTurns {
    /// `None` where the connection is lost already.
    pub(super) async fn begin(client: &Client, turns: &LineTurns) -> Option<Self> {
        let mut taken = Self {
            client: client.clone(),
            heard: SelectAll::new(),
            takes: turns.takes.clone(),
        };
        taken.follow(turns).await?;
        Some(taken)
    }

    /// What is heard next; `None` when the line is to take its turn from now
    /// on, or no longer.
    pub(super) async fn next(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            Ok(()) = self.takes.changed() => None,
            Some(message) = self.heard.next() => Some(message),
            else => std::future::pending().await,
        }
    }

    /// Does as it is to do now; `None` where the connection is lost.
    pub(super) async fn follow(&mut self, turns: &LineTurns) -> Option<()> {
        for subscriber in &mut self.heard {
            subscriber.drain().await.ok()?;
        }
        let takes = *self.takes.borrow_and_update();
        if takes {
            for subject in &turns.subjects {
                let (subject, group) = (subject.clone(), turns.group.to_owned());
                let subscriber = self.client.queue_subscribe(subject, group).await;
                self.heard.push(subscriber.ok()?);
            }
        }
        if takes {
            info!("takes its turn among `{}`", turns.group);
        } else if !self.heard.is_empty() {
            info!("takes no turn among `{}`", turns.group);
        }
        Some(())
    }
}
