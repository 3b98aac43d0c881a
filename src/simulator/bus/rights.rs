//! Who may speak and listen where, by a template and the names in a pass.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Somebody who was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusRefusal {
    NotLetIn(String),
    Publish(String),
    Subscribe(String),
}

pub(super) struct ClientRights {
    pub(super) key: String,
    pub(super) made: i64,
    pub(super) until: i64,
    publish: Vec<String>,
    subscribe: Vec<String>,
    /// How many answers it may give to one question, and for how long.
    answers: Option<(usize, Duration)>,
    asked: HashMap<String, (usize, Instant)>,
    /// Whether it speaks to the server itself, in an account of its own.
    pub(super) system: bool,
}

impl ClientRights {
    /// Of whoever speaks to the server itself, and to nobody else.
    pub(super) fn of_system(key: &str, until: i64) -> Self {
        Self {
            key: key.to_owned(),
            made: i64::MAX,
            until,
            publish: vec!["$SYS.REQ.>".to_owned()],
            subscribe: vec!["_IN.sys.>".to_owned()],
            answers: None,
            asked: HashMap::new(),
            system: true,
        }
    }

    pub(super) fn of(
        key: &str,
        user: &Value,
        template: &Value,
        until: i64,
    ) -> Result<Self, String> {
        let list = |field: &str| {
            let all = template[field]["allow"].as_array();
            all.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|text| filled_in(text, user))
                .collect::<Result<Vec<_>, _>>()
        };
        let resp = &template["resp"];
        let answers = resp["max"].as_u64().zip(resp["ttl"].as_u64());
        Ok(Self {
            key: key.to_owned(),
            made: user["iat"].as_i64().unwrap_or_default(),
            until,
            publish: list("pub")?,
            subscribe: list("sub")?,
            answers: answers.map(|(max, ttl)| {
                let max = usize::try_from(max).unwrap_or(usize::MAX);
                (max, Duration::from_nanos(ttl))
            }),
            asked: HashMap::new(),
            system: false,
        })
    }

    pub(super) fn was_asked(&mut self, reply: Option<&str>) {
        if let (Some(reply), Some((max, within))) = (reply, self.answers) {
            let now = Instant::now();
            self.asked.retain(|_, (_, until)| *until > now);
            self.asked.insert(reply.to_owned(), (max, now + within));
        }
    }

    pub(super) fn may_publish(&mut self, subject: &str) -> bool {
        if is_wild(subject) {
            return false;
        }
        if self.publish.iter().any(|one| covers(one, subject)) {
            return true;
        }
        match self.asked.get_mut(subject) {
            Some((left, until)) if *left > 0 && *until > Instant::now() => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Every subject that `pattern` names must be one it may hear.
    pub(super) fn may_subscribe(&self, pattern: &str) -> bool {
        self.subscribe.iter().any(|one| covers(one, pattern))
    }
}

fn filled_in(template: &str, user: &Value) -> Result<String, String> {
    let name = user["name"].as_str().unwrap_or_default();
    let mut text = template.replace("{{name()}}", name);
    while let Some(at) = text.find("{{tag(") {
        let rest = &text[at + 6..];
        let (tag, _) = rest.split_once(")}}").ok_or("a template is wrong")?;
        let tags = user["nats"]["tags"].as_array();
        let start = format!("{tag}:");
        let value = tags
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find_map(|one| one.strip_prefix(&start))
            .ok_or("a tag is missing")?;
        let whole = format!("{{{{tag({tag})}}}}");
        text = text.replace(&whole, value);
    }
    Ok(text)
}

fn is_wild(subject: &str) -> bool {
    subject
        .split('.')
        .any(|part| matches!(part, "*" | ">" | ""))
}

/// Whether all that `inner` names, a subject or a pattern, is named by `outer`.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    let (mut outer, mut inner) = (outer.split('.'), inner.split('.'));
    loop {
        match (outer.next(), inner.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(part)) if part != ">" => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_name_what_nats_says_they_name() {
        for (outer, inner, expected) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.*", true),
            ("a.*", "a.>", false),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a.>", true),
            ("a.>", "a", false),
            ("a.b", "a.*", false),
            ("a.b", ">", false),
            (">", "a.b", true),
        ] {
            assert_eq!(covers(outer, inner), expected, "{outer} {inner}");
        }
    }
}
