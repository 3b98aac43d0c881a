//! The steps that only a team has: what comes over which gateway, and a laptop
//! that was away.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::act::{Done, PlayedScene, title};
use super::{LIMIT, Tour};
use crate::cards::Action;
use crate::cli::demo::scenes::Actor;
use crate::simulator::{Press, Simulator};
use crate::text::Text;
use crate::wording::Toast;

/// How long a person waits before they tap once more, and for a card that is
/// said to follow.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const FOLLOWS_WITHIN: Duration = Duration::from_secs(3);

impl Tour<'_> {
    /// Waits until nod says it in a message that was not there before.
    pub(super) async fn says(&mut self, known: usize, text: &Text) -> Done {
        let text = text.get(self.stage.lang);
        let said = |simulator: &Simulator| {
            let messages = simulator.messages();
            let mut later = messages.iter().skip(known);
            later.find(|one| one.content.contains(text)).map(drop)
        };
        let said = self.stage.simulator.wait_for(LIMIT, said).await;
        said.ok_or_else(|| format!("nobody was told `{text}`"))
    }

    /// Taps until the laptop hears it: one that has just woken dials anew.
    pub(super) async fn tap_again(
        &mut self,
        act: &PlayedScene<'_>,
        person: Actor,
        action: Action,
        toast: &Toast,
    ) -> Done {
        let lang = self.stage.lang;
        let away = Toast::not_connected(self.stage.laptop().name);
        let card = &act.card;
        let before = title(&self.stage.simulator, card);
        let until = Instant::now() + LIMIT;
        loop {
            let press = Press::action(card, action.as_str()).by(person.id());
            let clicked = self.stage.simulator.click(press).await;
            let clicked = clicked.map_err(|why| why.to_string())?;
            self.tell();
            let seen = clicked.toast.map(|toast| toast.content);
            let saw = |toast: &Toast| seen.as_deref() == Some(toast.text.get(lang));
            if saw(toast) {
                return Ok(());
            }
            if !(saw(&away) || saw(&Toast::STILL_CHECKING)) || Instant::now() > until {
                let wanted = toast.text.get(lang);
                return Err(format!(
                    "the toast should have been `{wanted}` and was `{}`",
                    seen.unwrap_or_default()
                ));
            }
            // The tap may have arrived although nobody said so.
            let changed = |simulator: &Simulator| (title(simulator, card) != before).then_some(());
            let wait = if saw(&away) {
                AGAIN_AFTER
            } else {
                FOLLOWS_WITHIN
            };
            if self.stage.simulator.wait_for(wait, changed).await.is_some() {
                return Ok(());
            }
        }
    }

    pub(super) fn by_both_gateways(&self) -> Done {
        let history = self.stage.simulator.history(0);
        let pushed = history.iter().filter(|entry| entry.kind == "event_out");
        let by: BTreeSet<_> = pushed.filter_map(|entry| entry.connection).collect();
        if by.len() > 1 {
            Ok(())
        } else {
            Err("all came by one gateway".to_owned())
        }
    }
}
