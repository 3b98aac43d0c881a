//! The webhook mode's pages as HTML: a request in the order of its card with
//! one button and in full below it, or what became of it. No script, nothing from elsewhere, nothing an agent
//! wrote taken for markup. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::approvals::desk::Delivery;
use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::Request;
use crate::cards::linked::{self, Paragraph};
use crate::cards::{Action, REASON_FIELD, permission};
use crate::rules::Offer;
use crate::text::{Lang, Text, Tone};
use crate::wording::Toast;
use crate::wording::card as words;
use crate::wording::page as said;
use crate::wording::rule::Until;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0 auto;max-width:42rem;padding:1rem;font:16px/1.5 system-ui,sans-serif}\
h1{font-size:1.25rem;margin:.5rem 0;overflow-wrap:anywhere}\
h1.what{font:600 1.1rem/1.4 ui-monospace,monospace;white-space:pre-wrap}\
p{margin:.5rem 0;white-space:pre-wrap;overflow-wrap:anywhere}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0;padding:.6rem;\
border:1px solid #8884;border-radius:.5rem;font:14px/1.45 ui-monospace,monospace}\
.alarm{color:#c22;font-weight:600}\
.other{color:#777;font-size:.9rem}\
.note{color:#777;font-size:.9rem}\
.less{color:#c22}.more{color:#183}\
summary{margin:1rem 0;padding:.5rem 0;cursor:pointer}\
label{display:block;margin-top:1rem}\
textarea{width:100%;box-sizing:border-box;min-height:4rem;font:inherit}\
button{width:100%;margin:1rem 0;padding:.9rem;font:600 1.1rem system-ui,sans-serif;\
border:0;border-radius:.6rem;color:#fff;background:#36c}\
button.danger{background:#c22}\
button.wary{padding:calc(.9rem - 2px);border:2px solid #c22;color:#c22;background:none}\
button .other{color:inherit;font-weight:400}\
.success{color:#183}.error{color:#c22}.warning{color:#a60}";

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
});

/// The content policy every page is served under.
pub fn policy() -> &'static str {
    &POLICY
}

/// What a page's form carries back.
pub struct Slip<'a> {
    pub action: Action,
    pub token: &'a str,
    pub ticket: &'a str,
}

/// The request as its card shows it, the one button the link was for, and
/// folded below it everything from end to end.
pub fn ask(request: &Request, offer: &Offer, slip: &Slip<'_>, lang: Lang) -> String {
    let card = linked::waiting(request, offer, 0, &|_| String::new(), lang);
    let mut body = format!(
        "<p class=\"note\">{}</p>",
        escaped(text(&card["header"]["subtitle"]))
    );
    let elements = card["body"]["elements"].as_array();
    let above = elements.into_iter().flatten();
    for element in above.take_while(|element| !has_button(element)) {
        block(element, &mut body);
    }
    let rules = match slip.action {
        Action::Always => offer.always.as_ref().ok(),
        Action::Wider => offer.wider.as_ref(),
        _ => None,
    };
    if let Some(rules) = rules {
        let said = permission::said(rules, &request.origin, Until::Undone, lang);
        let _ = write!(body, "<p class=\"alarm\">{}</p>", escaped(&said));
    }
    let is_dangerous = card["header"]["template"] == "red";
    let allow = words::allow_label(!offer.turn.is_empty());
    form(request, slip, allow, is_dangerous, lang, &mut body);
    let _ = write!(body, "<p class=\"note\">{}</p>", both(&said::CONFIRM, lang));
    let _ = write!(
        body,
        "<details><summary>{}</summary>",
        both(&said::DETAILS, lang)
    );
    for Paragraph { text, alarming } in linked::whole(request, offer, lang) {
        let class = if alarming { " class=\"alarm\"" } else { "" };
        let _ = write!(body, "<pre{class}>{}</pre>", escaped(&text));
    }
    body.push_str("</details>");
    let title = escaped(text(&card["header"]["title"]));
    let class = if is_dangerous { "what alarm" } else { "what" };
    document(&title, class, &body, lang)
}

fn form(
    request: &Request,
    slip: &Slip<'_>,
    allow: &Text,
    is_dangerous: bool,
    lang: Lang,
    body: &mut String,
) {
    let (label, class) = match slip.action {
        // Nothing invites a thumb to allow what is dangerous.
        Action::Allow if is_dangerous => (allow, " class=\"wary\""),
        Action::Allow => (allow, ""),
        Action::Always => (&words::ALWAYS, ""),
        Action::Session => (&words::SESSION, ""),
        Action::Wider => (&words::WIDER, ""),
        Action::Deny | Action::DenyWith => (&words::DENY, " class=\"danger\""),
        Action::Interrupt => (&words::INTERRUPT, " class=\"danger\""),
        Action::Undo => (&words::UNDO, ""),
    };
    let _ = write!(
        body,
        "<form method=\"post\" action=\"/{}\" autocomplete=\"off\">",
        slip.action.as_str()
    );
    for (name, value) in [
        ("id", request.id.as_str()),
        ("t", slip.token),
        ("ticket", slip.ticket),
    ] {
        let _ = write!(
            body,
            "<input type=\"hidden\" name=\"{name}\" value=\"{}\">",
            escaped(value)
        );
    }
    // An interrupted agent reads no reason.
    if slip.action == Action::Deny {
        let _ = write!(
            body,
            "<label>{}<textarea name=\"{REASON_FIELD}\" maxlength=\"1000\" placeholder=\"{}\"></textarea></label>",
            said::REASON.get(lang),
            words::REASON_HINT.get(lang),
        );
    }
    let _ = write!(
        body,
        "<button id=\"decide\"{class}>{}</button></form>",
        both(label, lang)
    );
}

/// One element of a card: a frame keeps its text together, line by line.
fn block(element: &Value, out: &mut String) {
    let mut lines = Vec::new();
    texts(element, &mut lines);
    if lines.is_empty() {
        return;
    }
    let is_framed = element["tag"] == "column_set";
    out.push_str(if is_framed { "<pre>" } else { "" });
    for (at, (text, colour)) in lines.iter().enumerate() {
        let class = match (is_framed, *colour) {
            (true, "red") => "less",
            (true, "green") => "more",
            (false, "red") => "alarm",
            (false, "grey") => "note",
            _ => "plain",
        };
        let (tag, gap) = match (is_framed, at) {
            (true, 0) => ("span", ""),
            (true, _) => ("span", "\n"),
            (false, _) => ("p", ""),
        };
        let text = escaped(text);
        let _ = write!(out, "{gap}<{tag} class=\"{class}\">{text}</{tag}>");
    }
    out.push_str(if is_framed { "</pre>" } else { "" });
}

/// The plain texts of an element with their colours, in reading order.
fn texts<'a>(node: &'a Value, out: &mut Vec<(&'a str, &'a str)>) {
    match node {
        Value::Array(list) => list.iter().for_each(|item| texts(item, out)),
        Value::Object(map) if node["tag"] == "plain_text" => {
            let colour = map.get("text_color").and_then(Value::as_str);
            out.push((text(node), colour.unwrap_or_default()));
        }
        Value::Object(map) => map.values().for_each(|value| texts(value, out)),
        _ => {}
    }
}

fn text(plain: &Value) -> &str {
    plain["content"].as_str().unwrap_or_default()
}

fn has_button(node: &Value) -> bool {
    match node {
        Value::Array(list) => list.iter().any(has_button),
        Value::Object(map) => node["tag"] == "button" || map.values().any(has_button),
        _ => false,
    }
}

/// What became of a request, or of a link.
pub fn outcome(outcome: &Outcome, lang: Lang) -> String {
    let toast = Toast::of(outcome);
    let class = match toast.tone {
        Tone::Success => "success",
        Tone::Error => "error",
        Tone::Warning | Tone::Info => "warning",
    };
    let next = match outcome {
        Outcome::Refused(Refusal::Stale) => &said::OPEN_CARD,
        Outcome::Refused(Refusal::Reconnecting) | Outcome::Unclear | Outcome::ServiceUnclear(_) => {
            &said::RETRY
        }
        Outcome::Decided(it) if it.delivery == Delivery::Unconfirmed => &said::RETRY,
        Outcome::Decided(_)
        | Outcome::Undone
        | Outcome::Done(_)
        | Outcome::Refused(_)
        | Outcome::Elsewhere { .. }
        | Outcome::Relayed { .. }
        | Outcome::Waiting => &said::LEAVE,
    };
    let body = format!("<p id=\"outcome\">{}</p>", both(next, lang));
    document(&both(&toast.text, lang), class, &body, lang)
}

/// `title` is markup already.
fn document(title: &str, class: &str, body: &str, lang: Lang) -> String {
    let code = match lang {
        Lang::Zh => "zh-CN",
        Lang::En => "en",
    };
    format!(
        "<!doctype html><html lang=\"{code}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>nod</title><style>{STYLE}</style></head>\
         <body><h1 class=\"{class}\">{title}</h1>{body}</body></html>\n"
    )
}

/// A sentence in the page's language and, smaller, in the other.
fn both(text: &Text, lang: Lang) -> String {
    let other = match lang {
        Lang::Zh => Lang::En,
        Lang::En => Lang::Zh,
    };
    format!(
        "{} <span class=\"other\">{}</span>",
        escaped(text.get(lang)),
        escaped(text.get(other))
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::outcome::sample::{allowed, decided, denied};
    use crate::approvals::request::{Caller, Digest, Facts, Origin};
    use crate::approvals::request::{Ending, Reach};
    use crate::ids::RequestId;
    use serde_json::json;

    fn page(command: &str, action: Action) -> String {
        let input = json!({"command": command});
        let request = Facts {
            id: RequestId::parse("r\"><1").unwrap(),
            tool: "Bash".to_owned(),
            digest: Digest::of(&input),
            input,
            origin: Origin {
                machine: "<b>desk</b>".to_owned(),
                user: "dev".to_owned(),
                project: "/p".into(),
                cwd: "/p".into(),
                branch: None,
                session: None,
                agent: None,
                pid: None,
                hosted: false,
                caller: Caller::default(),
            },
            real: crate::approvals::request::RealPath::Unasked,
            asked_at: 0,
            deadline: 1,
        }
        .read();
        let slip = Slip {
            action,
            token: "tok",
            ticket: "tick",
        };
        ask(&request, &crate::rules::offer(&request), &slip, Lang::Zh)
    }

    #[test]
    fn nothing_an_agent_wrote_is_markup_and_nothing_is_hidden() {
        let html = page(
            "echo '</pre><script>alert(1)</script>' \u{202e}evil\u{200b}",
            Action::Allow,
        );
        assert!(!html.contains("<script"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)"), "{html}");
        assert!(!html.contains('\u{202e}') && !html.contains('\u{200b}'));
        assert!(!html.contains("<b>desk"));
        assert!(html.contains("value=\"r&quot;&gt;&lt;1\""));
    }

    #[test]
    fn a_long_command_is_there_from_end_to_end() {
        let command = (0..20_000).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "echo line-{n}");
            text
        });
        let html = page(&command, Action::Deny);
        for n in [0, 9_999, 19_999] {
            assert!(html.contains(&format!("echo line-{n}\n")), "{n}");
        }
    }

    #[test]
    fn each_page_has_its_own_button_and_both_languages() {
        for (action, zh, en, reason) in [
            (Action::Allow, "批准运行", "Allow once", false),
            (Action::Always, "始终允许", "Always allow", false),
            (Action::Deny, "拒绝运行", "Deny", true),
            (Action::Interrupt, "拒绝并中断", "Deny and interrupt", false),
        ] {
            let html = page("ls", action);
            let form = html.split("<form").nth(1).unwrap();
            assert_eq!(html.matches("<button").count(), 1);
            assert!(form.contains(zh) && form.contains(en), "{form}");
            assert!(form.contains(&format!("action=\"/{}\"", action.as_str())));
            assert_eq!(form.contains("<textarea"), reason);
        }
    }

    #[test]
    fn a_page_has_the_order_of_its_card_and_folds_the_rest_below_the_button() {
        let html = page("npm test", Action::Allow);
        assert!(html.contains("<h1 class=\"what\">npm test</h1>"), "{html}");
        let (above, below) = html.split_once("<form").unwrap();
        let place = above.split("</h1>").nth(1).unwrap();
        assert!(
            place.starts_with("<p class=\"note\">p · &lt;b&gt;desk"),
            "{place}"
        );
        assert_eq!(above.matches("npm test").count(), 1, "{above}");
        let (button, folded) = below.split_once("<details>").unwrap();
        assert!(button.contains("<button") && !button.contains("<pre"));
        assert!(folded.contains("npm test") && folded.ends_with("</details></body></html>\n"));
        // What is long and what is dangerous stand above it too.
        let html = page("rm -rf build\nnpm run build", Action::Allow);
        let (above, _) = html.split_once("<form").unwrap();
        let content = above.find("npm run build</span></pre>").unwrap();
        assert!(above[content..].contains("class=\"alarm\""), "{above}");
    }

    #[test]
    fn danger_changes_the_whole_page_and_fills_no_button_that_allows() {
        let seen = |command, action| {
            let html = page(command, action);
            let red = html.contains("<h1 class=\"what alarm\">");
            (red, html.contains("<button id=\"decide\" class=\"wary\">"))
        };
        assert_eq!(seen("rm -rf build", Action::Allow), (true, true));
        assert_eq!(seen("rm -rf build", Action::Deny), (true, false));
        assert_eq!(seen("npm test", Action::Allow), (false, false));
    }

    #[test]
    fn every_ending_has_its_page() {
        let timed_out = Refusal::Over {
            ending: Ending::TimedOut,
            ago: 5_000,
        };
        let lost = decided(denied(false), Delivery::Lost);
        let unconfirmed = decided(denied(false), Delivery::Unconfirmed);
        for (led_to, toast, next) in [
            (
                decided(allowed(Reach::Once), Delivery::Written),
                Toast::ALLOWED,
                &said::LEAVE,
            ),
            (
                decided(denied(false), Delivery::Confirmed),
                Toast::DENIED,
                &said::LEAVE,
            ),
            (
                Refusal::Handled.into(),
                Toast::ALREADY_HANDLED,
                &said::LEAVE,
            ),
            (Refusal::Unknown.into(), Toast::UNKNOWN, &said::LEAVE),
            (lost, Toast::HOOK_GONE, &said::LEAVE),
            (timed_out.into(), Toast::timed_out(5_000), &said::LEAVE),
            (Refusal::Stale.into(), Toast::STALE, &said::OPEN_CARD),
            (
                Refusal::Reconnecting.into(),
                Toast::RECONNECTING,
                &said::RETRY,
            ),
            (unconfirmed, Toast::STILL_CHECKING, &said::RETRY),
        ] {
            let html = outcome(&led_to, Lang::En);
            for text in [&toast.text, next] {
                assert!(html.contains(text.zh.as_ref()) && html.contains(&escaped(&text.en)));
            }
            assert!(!html.contains("<form"));
        }
    }

    #[test]
    fn the_policy_lets_in_our_style_and_nothing_else() {
        assert!(policy().starts_with("default-src 'none'; style-src 'sha256-"));
        assert!(!policy().contains("unsafe") && !policy().contains("script-src"));
    }
}
