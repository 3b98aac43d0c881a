//! How many instructions a tap costs between the socket's bytes, counted by
//! callgrind: the same on a busy machine, so a regression shows in one run.

use std::process::Command;
use std::time::Instant;

use nod::for_tests::feishu::event;
use nod::for_tests::feishu::frame::{DATA, Frame, Header};
use nod::for_tests::feishu::link::{Incoming, Link, LinkStep, Now, PushAnswer, ServerSettings};
use nod::for_tests::text::Lang;
use nod::for_tests::wording::{Toast, reply_json};

use crate::protocol::tap;
use crate::table::Figure;

/// What the path cost when it was last looked at, on x86-64. Whoever changes
/// it on purpose writes the new count here and says why.
const KNOWN: f64 = 36_200.0;

pub(crate) fn figures() -> Vec<Figure> {
    let (Some(few), Some(many)) = (count("200"), count("1200")) else {
        println!("SKIPPED: NO INSTRUCTIONS COUNTED: valgrind is not installed or does not run");
        return Vec::new();
    };
    let each = (many - few) / 1_000.0;
    let what = "instructions of a tap, link and toast";
    let mut figures = vec![Figure::new("instructions", what, "", each)];
    if cfg!(target_arch = "x86_64") {
        let what = "the same / what is known";
        figures.push(Figure::new("instructions.over", what, "×", each / KNOWN).at_most(1.1, 1.0));
    }
    figures
}

fn count(taps: &str) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["--click-path", taps])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, rest) = text.split_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The click path without sockets: frame, link, event, toast, reply.
pub(crate) fn click_path(count: u64) {
    let now = Now {
        mono: Instant::now(),
        wall: std::time::SystemTime::now(),
    };
    let mut link = Link::new(now, 1, Vec::new());
    link.dialed(7, ServerSettings::default(), now);
    let body = prost::bytes::Bytes::from(tap("path", 1_793_922_640_000_000).to_string());
    for n in 0..count {
        let headers = [
            ("type", "event"),
            ("message_id", "m"),
            ("sum", "1"),
            ("seq", "0"),
        ];
        let frame = Frame {
            seq_id: n,
            service: 7,
            method: DATA,
            headers: headers.map(|(key, value)| Header::new(key, value)).to_vec(),
            payload: Some(body.clone()),
            ..Frame::default()
        };
        link.received(Incoming::Binary(frame.to_bytes()), now);
        while let Some(step) = link.step() {
            if let LinkStep::Deliver(push) = step {
                std::hint::black_box(event::parse(&push.payload));
                let answer = PushAnswer::Show(reply_json(&Toast::UNKNOWN, None, Lang::Zh));
                link.answer(push.ticket, &answer, now);
            } else {
                std::hint::black_box(step);
            }
        }
    }
}
