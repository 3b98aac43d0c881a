//! A permission request around an input, as if a person in a project asked it.

use nod::for_tests::approvals::request::{Caller, Digest, Facts, Origin, Request};
use nod::for_tests::ids::RequestId;
use serde_json::Value;

pub(crate) const PROJECT: &str = "/home/lin/shop";

pub(crate) fn request(tool: &str, input: Value) -> Request {
    Facts {
        id: RequestId::parse("r-1").expect("an id"),
        tool: tool.to_owned(),
        digest: Digest::of(&input),
        input,
        real: nod::for_tests::approvals::request::RealPath::Unasked,
        origin: Origin {
            machine: "mbp".to_owned(),
            user: "lin".to_owned(),
            project: PROJECT.into(),
            cwd: format!("{PROJECT}/src").into(),
            branch: None,
            session: None,
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        asked_at: 1_000,
        deadline: 61_000,
    }
    .read()
}
