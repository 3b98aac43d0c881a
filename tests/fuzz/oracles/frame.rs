//! Any bytes as a frame: read as the .proto says or refused, and what was read
//! is written back the same.

use nod::for_tests::feishu::frame::Frame;
use prost::bytes::Bytes;

pub(crate) fn check(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    assert_eq!(Frame::parse(frame.to_bytes()).as_ref(), Ok(&frame));

    let fields = top_level(bytes).expect("what was decoded can be walked");
    let numbers = |tag| fields.iter().filter(move |field| field.tag == tag);
    let last = |tag| numbers(tag).next_back().map(|field| field.value);
    assert_eq!(last(1 << 3), Some(frame.seq_id), "a frame without SeqID");
    assert_eq!(last(2 << 3), Some(frame.log_id), "a frame without LogID");
    let low = |tag| last(tag).and_then(|value| u32::try_from(value & 0xffff_ffff).ok());
    assert_eq!(low(3 << 3), Some(frame.service.cast_unsigned()));
    assert_eq!(low(4 << 3), Some(frame.method.cast_unsigned()));
    assert_eq!(numbers(5 << 3 | 2).count(), frame.headers.len());
    let payload = frame.payload.as_ref().map(|payload| payload.len() as u64);
    assert_eq!(last(8 << 3 | 2), payload);
    if let Some(first) = frame.headers.first() {
        assert_eq!(frame.header(&first.key), Some(first.value.as_str()));
    }
}

/// A field outside any group: its number or, if it has one, its length.
struct Field {
    tag: u64,
    value: u64,
}

fn top_level(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut depth = 0_usize;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let mut value = 0;
        match tag & 7 {
            0 => value = varint(&mut rest)?,
            1 => rest = rest.get(8..)?,
            2 => {
                value = varint(&mut rest)?;
                rest = rest.get(usize::try_from(value).ok()?..)?;
            }
            3 => depth += 1,
            4 => depth = depth.checked_sub(1)?,
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
        if depth == 0 {
            fields.push(Field { tag, value });
        }
    }
    Some(fields)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u128;
    for (i, &byte) in rest.iter().enumerate().take(10) {
        value |= u128::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *rest = &rest[i + 1..];
            return u64::try_from(value).ok();
        }
    }
    None
}
