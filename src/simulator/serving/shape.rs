//! How an event becomes frames: headers, and the faults that cut it into
//! parts or bend its headers. Does no I/O.

use prost::bytes::Bytes;

use crate::feishu::frame::{DATA, Frame, Header};
use crate::simulator::control::faults::{Fault, Flaw, FragmentOrder, Fragments};
use crate::simulator::world::mint::Mint;

/// An unsplit data frame with every documented header.
pub(in crate::simulator) fn event(
    mint: &mut Mint,
    service: i32,
    seq_id: u64,
    message_id: &str,
    now: u64,
    payload: Bytes,
) -> Frame {
    let trace = mint.hex(32);
    Frame {
        seq_id,
        log_id: now.wrapping_mul(1000).wrapping_add(seq_id),
        service,
        method: DATA,
        headers: vec![
            Header::new("timestamp", now.to_string()),
            Header::new("type", "event"),
            Header::new("message_id", message_id),
            Header::new("sum", "1"),
            Header::new("seq", "0"),
            Header::new("trace_id", trace.as_str()),
            Header::new("instance_id", format!("inst-{}", &trace[..8])),
        ],
        payload: Some(payload),
        log_id_new: Some(format!("{now}{}", &trace[..12])),
        ..Frame::default()
    }
}

/// Applies one shaping fault; other faults leave the frames as they are.
pub(super) fn apply(fault: &Fault, frames: Vec<Frame>, mint: &mut Mint) -> Vec<Frame> {
    match fault {
        Fault::TypeHeader { value } => each(frames, |frame| set(frame, "type", value)),
        Fault::MissingHeaders { names } => each(frames, |frame| {
            frame.headers.retain(|h| !names.contains(&h.key));
        }),
        Fault::Fragments(fragments) => frames
            .into_iter()
            .flat_map(|frame| split(&frame, fragments, mint))
            .collect(),
        _ => frames,
    }
}

fn each(mut frames: Vec<Frame>, change: impl Fn(&mut Frame)) -> Vec<Frame> {
    frames.iter_mut().for_each(change);
    frames
}

fn set(frame: &mut Frame, key: &str, value: &str) {
    if let Some(header) = frame.headers.iter_mut().find(|h| h.key == key) {
        value.clone_into(&mut header.value);
    }
}

/// Cuts by bytes, so a character may fall into two parts.
fn split(frame: &Frame, fragments: &Fragments, mint: &mut Mint) -> Vec<Frame> {
    let payload = frame.payload.clone().unwrap_or_default();
    let count = fragments.count.clamp(1, 10_000);
    let size = payload.len().div_ceil(count).max(1);
    let mut parts: Vec<Bytes> = (0..count)
        .map(|n| payload.slice((n * size).min(payload.len())..((n + 1) * size).min(payload.len())))
        .collect();
    if fragments.flaw == Some(Flaw::EmptyPart) {
        parts.insert(parts.len() / 2, Bytes::new());
    }
    let sum = parts.len();
    let mut frames: Vec<Frame> = parts
        .into_iter()
        .enumerate()
        .map(|(seq, part)| {
            let mut frame = frame.clone();
            set(&mut frame, "sum", &sum.to_string());
            set(&mut frame, "seq", &seq.to_string());
            frame.payload = Some(part);
            frame
        })
        .collect();
    match fragments.order {
        FragmentOrder::InOrder => {}
        FragmentOrder::Reversed => frames.reverse(),
        FragmentOrder::Shuffled => mint.shuffle(&mut frames),
    }
    if let Some(flaw) = fragments.flaw {
        spoil(&mut frames, flaw, sum);
    }
    frames
}

fn spoil(frames: &mut Vec<Frame>, flaw: Flaw, sum: usize) {
    let first = frames[0].clone();
    match flaw {
        Flaw::EmptyPart => {}
        Flaw::Missing => {
            frames.pop();
        }
        Flaw::DuplicateBefore => frames.insert(1, first),
        Flaw::DuplicateAfter => frames.push(first),
        Flaw::HugeSum => frames
            .iter_mut()
            .for_each(|frame| set(frame, "sum", "1000000000")),
        Flaw::SeqBeyondSum => set(&mut frames[0], "seq", &sum.to_string()),
        Flaw::NotNumeric => {
            set(&mut frames[0], "sum", "many");
            set(&mut frames[0], "seq", "first");
        }
        Flaw::ChangingSum => {
            let last = frames.len() - 1;
            set(&mut frames[last.min(1)], "sum", &(sum + 1).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: usize, order: FragmentOrder, flaw: Option<Flaw>) -> Vec<Frame> {
        let mut mint = Mint::new(3);
        let payload = Bytes::from_static("{\"k\":\"中文中文\"}".as_bytes());
        let frame = event(&mut mint, 5, 9, "m1", 1_700_000_000_000, payload);
        let fault = Fault::Fragments(Fragments { count, order, flaw });
        apply(&fault, vec![frame], &mut mint)
    }

    fn header(frames: &[Frame], key: &str) -> Vec<String> {
        frames
            .iter()
            .map(|f| f.header(key).unwrap_or("-").to_owned())
            .collect()
    }

    fn join(mut frames: Vec<Frame>) -> Vec<u8> {
        frames.sort_by_key(|f| f.header("seq").unwrap().parse::<u32>().unwrap());
        frames
            .into_iter()
            .flat_map(|f| f.payload.unwrap())
            .collect()
    }

    #[test]
    fn every_order_holds_every_byte_once() {
        for order in [
            FragmentOrder::InOrder,
            FragmentOrder::Reversed,
            FragmentOrder::Shuffled,
        ] {
            let frames = parts(7, order, None);
            assert_eq!(frames.len(), 7);
            assert_eq!(header(&frames, "sum"), ["7"; 7]);
            assert_eq!(join(frames), "{\"k\":\"中文中文\"}".as_bytes());
        }
        assert_eq!(
            header(&parts(3, FragmentOrder::Reversed, None), "seq"),
            ["2", "1", "0"]
        );
    }

    #[test]
    fn each_flaw_is_the_one_it_is_named_after() {
        let three = |flaw| parts(3, FragmentOrder::InOrder, Some(flaw));
        assert_eq!(header(&three(Flaw::Missing), "seq"), ["0", "1"]);
        assert_eq!(
            header(&three(Flaw::DuplicateBefore), "seq"),
            ["0", "0", "1", "2"]
        );
        assert_eq!(
            header(&three(Flaw::DuplicateAfter), "seq"),
            ["0", "1", "2", "0"]
        );
        assert_eq!(header(&three(Flaw::HugeSum), "sum"), ["1000000000"; 3]);
        assert_eq!(header(&three(Flaw::SeqBeyondSum), "seq"), ["3", "1", "2"]);
        assert_eq!(header(&three(Flaw::NotNumeric), "sum"), ["many", "3", "3"]);
        assert_eq!(header(&three(Flaw::ChangingSum), "sum"), ["3", "4", "3"]);
        let empty = three(Flaw::EmptyPart);
        assert_eq!(header(&empty, "sum"), ["4"; 4]);
        assert!(empty.iter().any(|f| f.payload.as_ref().unwrap().is_empty()));
        assert_eq!(join(empty), "{\"k\":\"中文中文\"}".as_bytes());
    }

    #[test]
    fn headers_can_be_bent_or_left_out() {
        let mut mint = Mint::new(3);
        let frame = event(&mut mint, 5, 9, "m1", 1, Bytes::new());
        let keys: Vec<&str> = frame.headers.iter().map(|h| h.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "timestamp",
                "type",
                "message_id",
                "sum",
                "seq",
                "trace_id",
                "instance_id"
            ]
        );
        let card = Fault::TypeHeader {
            value: "card".to_owned(),
        };
        assert_eq!(
            header(&apply(&card, vec![frame.clone()], &mut mint), "type"),
            ["card"]
        );
        let missing = Fault::MissingHeaders {
            names: vec!["sum".to_owned(), "seq".to_owned()],
        };
        let bare = apply(&missing, vec![frame], &mut mint);
        assert_eq!(header(&bare, "sum"), ["-"]);
        assert_eq!(bare[0].headers.len(), 5);
    }
}
