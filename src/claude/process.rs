//! One Claude Code child: what it is started with, and the line that makes it
//! end its turn.

use super::exit::judged;
use super::launch::Launch;
use super::stream::event;
use crate::child::process::{self, ChildManner};
use crate::talk::{Event, Said, Say};

const STOP: &str = "nod-stop";

pub type Child = process::Child<Event>;

/// Starts a child. What goes wrong is its first and last event.
pub fn start(launch: Launch) -> Child {
    let interrupt = Say::Interrupt {
        request: STOP.to_owned(),
    };
    let manner = ChildManner {
        read: event,
        stop: Some((interrupt.to_line(), is_stopped)),
        ended: |ended| Event::Ended(judged(ended)),
    };
    let launch = process::Launch {
        arguments: launch.arguments(),
        program: launch.program,
        project: launch.project,
        environment: launch.environment,
        grace: launch.grace,
        guard: launch.guard,
    };
    process::start(launch, manner)
}

fn is_stopped(event: &Event) -> bool {
    matches!(event, Event::Said(Said::Reply(reply)) if reply.request == STOP)
}
