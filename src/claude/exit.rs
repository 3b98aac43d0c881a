//! How a Claude Code child ended: some of its last words say more than its exit
//! code.

use crate::child::process::ChildEnd;
use crate::talk::Exit;

pub fn judged(ended: ChildEnd) -> Exit {
    match &ended {
        ChildEnd::Over { errors, .. } if errors.contains("No conversation found") => {
            Exit::UnknownSession
        }
        ChildEnd::Over { errors, .. } if errors.contains("is already in use") => Exit::InUse,
        _ => ended.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_of_its_conversation_counts_before_its_code() {
        for (code, errors, expected) in [
            (
                Some(1),
                "No conversation found with session ID: 00\n",
                Exit::UnknownSession,
            ),
            (
                Some(1),
                "Error: Session ID f9 is already in use.\n",
                Exit::InUse,
            ),
            (Some(0), "", Exit::Finished),
        ] {
            let errors = errors.to_owned();
            let ended = ChildEnd::Over {
                code,
                killed: false,
                errors,
            };
            assert_eq!(judged(ended), expected);
        }
    }
}
