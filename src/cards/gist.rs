//! One short line that tells what a request was about once it has ended, for
//! the record: what runs or where, every secret masked. Pure.

use serde_json::Value;
use std::borrow::Cow;

use super::prose;
use crate::approvals::request::Request;
use crate::rules::codex::WantedGrant;
use crate::text::escape::{Budget, Shape, fit};
use crate::text::secrets;

/// Enough to know it again, too little to hold a file.
const BUDGET: Budget = Budget::new(96, 1);

/// The field that says what a call does, the likeliest first. None of them is
/// a file's content.
const TELLING: [&str; 9] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "url",
    "query",
    "pattern",
    "question",
    "description",
];

/// Nothing for a call that has no such field.
pub fn gist(request: &Request) -> Option<String> {
    let (name, text) = telling(&request.input)?;
    let text = shortened(name, text.trim(), request);
    Some(fit(&text, Shape::Name, &secrets::every(&text), BUDGET).beginning())
}

/// What a request is called in a list: what it runs or where, else its tool.
pub fn listed_name(request: &Request) -> String {
    gist(request).unwrap_or_else(|| {
        fit(
            &request.tool,
            Shape::Name,
            &secrets::every(&request.tool),
            BUDGET,
        )
        .beginning()
    })
}

/// Whether a line of the card may be kept as it is.
pub(super) fn is_harmless(line: &str) -> bool {
    line.len() <= BUDGET.bytes + "…".len() && secrets::every(line).is_empty()
}

/// Whether the telling field holds no secret that a cut line could show in part.
pub(super) fn tells_no_secret(request: &Request) -> bool {
    telling(&request.input).is_none_or(|(_, text)| secrets::every(&text).is_empty())
}

fn telling(input: &Value) -> Option<(&'static str, Cow<'_, str>)> {
    let first = &input["questions"][0];
    let question = first["question"].as_str();
    let questions = question.map(|text| ("question", Cow::Borrowed(text)));
    let heading = || prose::first_heading(input["plan"].as_str()?);
    let plan = || Some(("plan", Cow::Owned(heading()?)));
    let named = |name: &'static str| Some((name, Cow::Borrowed(input[name].as_str()?)));
    let told = TELLING.into_iter().find_map(named).or(questions);
    told.or_else(plan)
        .or_else(|| Some(("path", changed(input)?)))
        .or_else(|| Some(("permissions", wanted(input)?)))
        .filter(|(_, text)| !text.trim().is_empty())
}

/// The files of a patch: the first, and how many more.
fn changed(input: &Value) -> Option<Cow<'_, str>> {
    let changes = input["changes"].as_array()?;
    let first = changes.first()?["path"].as_str()?;
    Some(match changes.len() {
        1 => Cow::Borrowed(first),
        all => Cow::Owned(format!("{first} +{}", all - 1)),
    })
}

/// The permissions that are asked for.
fn wanted(input: &Value) -> Option<Cow<'_, str>> {
    let rules = WantedGrant::of(input)?.rules();
    let contents: Vec<_> = rules.into_iter().filter_map(|rule| rule.content).collect();
    Some(Cow::Owned(contents.join(", ")))
}

/// A file inside the project by its way from there.
fn shortened(name: &str, text: &str, request: &Request) -> String {
    let project = request.origin.project.to_str().filter(|it| !it.is_empty());
    let inside = project.and_then(|project| text.strip_prefix(project)?.strip_prefix('/'));
    match inside {
        Some(inside) if name.ends_with("path") => inside.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::request;
    use super::*;

    fn of(tool: &str, input: Value) -> Option<String> {
        gist(&request(tool, input))
    }

    #[test]
    fn what_ran_or_where_is_told_in_one_short_line() {
        let project = request("Read", json!({})).origin.project;
        let inside = project.join("src/main.rs");
        for (input, told) in [
            (json!({"command": " npm test "}), Some("npm test")),
            (
                json!({"file_path": inside, "content": "canary"}),
                Some("src/main.rs"),
            ),
            (json!({"file_path": "/etc/hosts"}), Some("/etc/hosts")),
            (
                json!({"questions": [{"question": "Which?"}]}),
                Some("Which?"),
            ),
            (
                json!({"plan": "# Measure first\n\ncanary"}),
                Some("Measure first"),
            ),
            (json!({"content": "canary"}), None),
            (
                json!({"changes": [{"path": project.join("a"), "diff": "canary"}, {"path": "/b"}]}),
                Some("a +1"),
            ),
            (
                json!({"permissions": {"until": "turn", "write": [{"path": "/"}], "network": true}}),
                Some("write /, network"),
            ),
            (json!({"command": "  "}), None),
        ] {
            assert_eq!(of("T", input).as_deref(), told);
        }
        let long = of(
            "Bash",
            json!({"command": format!("echo {}", "x".repeat(4_000))}),
        )
        .unwrap();
        assert!(long.len() <= 100 && long.ends_with('…'), "{long}");
        assert!(
            !of("Bash", json!({"command": "a\nb\u{1b}[2K"}))
                .unwrap()
                .contains(['\n', '\u{1b}'])
        );
    }

    #[test]
    fn a_secret_is_masked_before_the_line_is_cut() {
        let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let padding = "y".repeat(60);
        for command in [
            format!("curl -H 'Authorization: Bearer {token}' x"),
            format!("echo {padding} {token}"),
            format!("export TOKEN={token}"),
            format!("make TOKEN={token} {} end", "all ".repeat(40)),
        ] {
            let told = of("Bash", json!({"command": command})).unwrap();
            assert!(!told.contains(&token[..12]), "{told}");
        }
    }
}
