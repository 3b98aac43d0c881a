//! Outcomes to try things with.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Carried, Outcome};
use crate::approvals::Settled;
use crate::approvals::desk::Delivery;
use crate::approvals::request::{
    Caller, Digest, Ending, Facts, Operator, Origin, Reach, RealPath, Request,
};
use crate::ids::RequestId;
use crate::rules::Rule;

pub(crate) fn by() -> Operator {
    Operator::unnamed(Operator::CALLBACK)
}

pub(crate) fn allowed(reach: Reach) -> Ending {
    Ending::Allowed {
        by: by(),
        reach,
        cancelled: false,
    }
}

pub(crate) fn denied(interrupt: bool) -> Ending {
    Ending::Denied {
        by: by(),
        reason: None,
        interrupt,
    }
}

pub(crate) fn answered() -> Ending {
    Ending::Answered {
        by: by(),
        answers: vec!["yes".to_owned()],
    }
}

pub(crate) fn always(rule: Rule) -> Reach {
    Reach::Always {
        rules: vec![rule],
        undone: false,
    }
}

pub(crate) fn request(tool: &str, input: Value) -> Request {
    Facts {
        id: RequestId::parse("r1").unwrap(),
        tool: tool.to_owned(),
        digest: Digest::of(&input),
        input,
        real: RealPath::default(),
        asked_at: 0,
        deadline: 1_000,
        origin: Origin {
            machine: "desk".to_owned(),
            user: "me".to_owned(),
            project: PathBuf::from("/home/me/shop"),
            cwd: PathBuf::from("/home/me/shop"),
            branch: None,
            session: None,
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
    }
    .read()
}

/// What came of a choice about `request`.
pub(crate) fn carried(request: Request, ending: Ending, delivery: Delivery) -> Carried {
    Carried {
        settled: Settled {
            request: Arc::new(request),
            ending,
            at: 500,
        },
        delivery,
        unsaved: None,
        instead: None,
    }
}

pub(crate) fn decided(ending: Ending, delivery: Delivery) -> Outcome {
    let request = request("Bash", json!({"command": "npm test"}));
    Outcome::Decided(Box::new(carried(request, ending, delivery)))
}
