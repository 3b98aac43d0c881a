//! One Claude Code child: what it is started with, and the line that makes it
//! end its turn.

use super::exit::judged;
use super::stream::event;
use crate::child::process::{self, ChildManner, Launch};
use crate::talk::{AgentEvent, AgentSaid, Say};

const STOP: &str = "nod-stop";

pub type ClaudeChild = process::Child<AgentEvent>;

/// Starts a child. What goes wrong is its first and last event.
pub fn start(launch: Launch) -> ClaudeChild {
    let interrupt = Say::Interrupt {
        request: STOP.to_owned(),
    };
    let manner = ChildManner {
        read: event,
        stop: Some((interrupt.to_line(), is_stopped)),
        ended: |ended| AgentEvent::Ended(judged(ended)),
    };
    process::start(launch, manner)
}

fn is_stopped(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Said(AgentSaid::Reply(reply)) if reply.request == STOP)
}
