//! The last step of an answer: handed to its hook, with a receipt that says
//! how far it came.

use tokio::sync::oneshot;

use crate::approvals::answer::Answer;

/// How far an answer is known to have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The hook said that it has the answer.
    Confirmed,
    /// The answer was written to a client that can't confirm.
    Written,
    /// A client that can confirm has not done so in time.
    Unconfirmed,
    /// The hook went away without it.
    Lost,
}

impl Delivery {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Written => "written",
            Self::Unconfirmed => "unconfirmed",
            Self::Lost => "lost",
        }
    }
}

/// An answer on its way; what becomes of it is reported once.
#[derive(Debug)]
pub struct Handover {
    /// On the heap: each waiting hook's channel has room for a handover.
    pub answer: Box<Answer>,
    pub(super) receipt: Option<oneshot::Sender<Delivery>>,
}

impl Handover {
    pub fn report(&mut self, delivery: Delivery) {
        if let Some(receipt) = self.receipt.take() {
            // Whoever asked may have stopped waiting; nothing hangs on it.
            let _ = receipt.send(delivery);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_a_word_for_every_delivery() {
        for (delivery, word) in [
            (Delivery::Confirmed, "confirmed"),
            (Delivery::Written, "written"),
            (Delivery::Unconfirmed, "unconfirmed"),
            (Delivery::Lost, "lost"),
        ] {
            assert_eq!(delivery.as_str(), word);
        }
    }
}
