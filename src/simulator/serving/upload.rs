//! Uploads: `POST /open-apis/im/v1/files`, a form of fields and one file, and
//! the messages that name what was uploaded by its key.

use std::collections::VecDeque;

use prost::bytes::Bytes;
use serde_json::{Value, json};

use crate::simulator::world::state::{Decline, World, decline};

/// What Feishu takes as one file, and what a form adds to it.
pub(super) const MAX_FILE: usize = 30 << 20;
pub(super) const MAX_FORM: usize = MAX_FILE + (64 << 10);
const MAX_KEPT: usize = 32;
const MAX_KEPT_BYTES: usize = 64 << 20;
const KINDS: [&str; 7] = ["opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"];
const MAX_PARTS: usize = 8;

#[derive(Debug)]
struct UploadedFile {
    app: usize,
    key: String,
    name: String,
    bytes: Bytes,
}

/// What apps uploaded lately.
#[derive(Debug, Default)]
pub(in crate::simulator) struct Uploads(VecDeque<UploadedFile>);

impl Uploads {
    fn keep(&mut self, file: UploadedFile) {
        self.0.push_back(file);
        let bytes =
            |files: &VecDeque<UploadedFile>| files.iter().map(|f| f.bytes.len()).sum::<usize>();
        while self.0.len() > MAX_KEPT || bytes(&self.0) > MAX_KEPT_BYTES {
            self.0.pop_front();
        }
    }

    /// The name and content of a file of this app's own.
    pub(in crate::simulator) fn get(&self, app: usize, key: &str) -> Option<(String, Bytes)> {
        let file = self.0.iter().find(|f| f.app == app && f.key == key)?;
        Some((file.name.clone(), file.bytes.clone()))
    }
}

fn bad(problem: &str) -> Decline {
    Decline::new(234_001, format!("Invalid request param. {problem}"))
}

/// Takes an upload and answers with its key.
pub(in crate::simulator) fn post(
    world: &mut World,
    app: usize,
    content_type: &str,
    body: &Bytes,
) -> Result<Value, Decline> {
    let parts = parts(content_type, body).ok_or_else(|| bad("the body is no form"))?;
    let text = |name: &str| {
        let part = parts.iter().find(|part| part.name == name)?;
        std::str::from_utf8(&part.bytes).ok().map(str::to_owned)
    };
    let kind = text("file_type").ok_or_else(|| bad("file_type is missing"))?;
    if !KINDS.contains(&kind.as_str()) {
        return Err(bad("file_type is invalid"));
    }
    let name = text("file_name").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| bad("file_name is missing"))?;
    let file = parts.iter().find(|part| part.name == "file");
    let file = file.ok_or_else(|| bad("file is missing"))?;
    if file.bytes.is_empty() {
        return decline(234_010, "File's size can't be 0.");
    }
    if file.bytes.len() > MAX_FILE {
        return decline(234_006, "The file size exceed the max value.");
    }
    let key = format!("file_v3_{}", world.mint.hex(32));
    world.uploads.keep(UploadedFile {
        app,
        key: key.clone(),
        name,
        bytes: file.bytes.clone(),
    });
    Ok(json!({"file_key": key}))
}

struct FormPart {
    name: String,
    bytes: Bytes,
}

/// The parts of a `multipart/form-data` body.
fn parts(content_type: &str, body: &Bytes) -> Option<Vec<FormPart>> {
    let boundary = content_type
        .strip_prefix("multipart/form-data")?
        .split(';')
        .find_map(|field| field.trim().strip_prefix("boundary="))?
        .trim_matches('"');
    let opening = format!("--{boundary}\r\n");
    let between = format!("\r\n--{boundary}");
    let mut at = opening.len();
    if !body.starts_with(opening.as_bytes()) {
        return None;
    }
    let mut parts = Vec::new();
    loop {
        let head_end = at + position(&body[at..], b"\r\n\r\n")?;
        let head = std::str::from_utf8(&body[at..head_end]).ok()?;
        let start = head_end + 4;
        let end = start + position(&body[start..], between.as_bytes())?;
        parts.push(FormPart {
            name: field_name(head)?,
            bytes: body.slice(start..end),
        });
        at = end + between.len();
        if body[at..].starts_with(b"--") {
            return Some(parts);
        }
        if !body[at..].starts_with(b"\r\n") || parts.len() == MAX_PARTS {
            return None;
        }
        at += 2;
    }
}

fn field_name(head: &str) -> Option<String> {
    let line = head.lines().find(|line| {
        let line = line.to_ascii_lowercase();
        line.starts_with("content-disposition: form-data")
    })?;
    let name = line
        .split(';')
        .find_map(|field| field.trim().strip_prefix("name="))?;
    Some(name.trim_matches('"').to_owned())
}

fn position(bytes: &[u8], of: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += bytes[from..].iter().position(|byte| *byte == of[0])?;
        if bytes[from..].starts_with(of) {
            return Some(from);
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::world::options::Options;

    const FORM: &str = "multipart/form-data; boundary=x";

    fn form(parts: &[(&str, &str)]) -> Bytes {
        let mut body = String::new();
        for (name, value) in parts {
            let head = format!("Content-Disposition: form-data; name=\"{name}\"");
            body.extend(["--x\r\n", &head, "\r\n\r\n", value, "\r\n"]);
        }
        Bytes::from(body + "--x--\r\n")
    }

    #[test]
    fn a_file_is_kept_under_a_key_of_its_app() {
        let mut world = World::new(&Options::default());
        let body = form(&[
            ("file_type", "stream"),
            ("file_name", "a.txt"),
            ("file", "one\r\ntwo"),
        ]);
        let answer = post(&mut world, 0, FORM, &body).unwrap();
        let key = answer["file_key"].as_str().unwrap();
        let kept = world.uploads.get(0, key).unwrap();
        assert_eq!(kept, ("a.txt".to_owned(), Bytes::from("one\r\ntwo")));
        assert_eq!(world.uploads.get(1, key), None);
    }

    #[test]
    fn what_is_no_upload_is_refused_with_feishus_codes() {
        let mut world = World::new(&Options::default());
        let named =
            |kind, name, file| form(&[("file_type", kind), ("file_name", name), ("file", file)]);
        let large = "x".repeat(MAX_FILE + 1);
        for (content_type, body, code) in [
            (FORM, named("stream", "a", ""), 234_010),
            (FORM, named("stream", "a", &large), 234_006),
            (FORM, named("zip", "a", "x"), 234_001),
            (FORM, named("stream", "", "x"), 234_001),
            (FORM, form(&[("file_type", "stream")]), 234_001),
            (FORM, Bytes::from("--x"), 234_001),
            ("application/json", named("stream", "a", "x"), 234_001),
        ] {
            let refusal = post(&mut world, 0, content_type, &body).unwrap_err();
            assert_eq!(refusal.code, code, "{}", refusal.msg);
        }
    }
}
