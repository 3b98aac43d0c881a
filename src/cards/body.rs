//! What is asked, as nodes of a card: each tool's own title and layout, and
//! every leaf of its input either shown or counted. What is long stands above
//! the buttons by its beginning and whole in the fold. Reports what it could
//! not show.

use serde_json::Value;
use std::fmt::Write as _;

use super::{EVERYTHING, coloured, cut, div, framed, note};
use crate::approvals::request::Request;
use crate::danger::{self, Danger, Hit, ScanKind};
use crate::text::escape::{self, Budget, Hidden, Shape, ShownText};
use crate::text::secrets;
use crate::text::{Lang, Text};
use crate::wording::card as words;

mod diff;
mod kinds;
mod leaves;

pub(super) use self::kinds::mcp_title;
pub(super) use self::leaves::weigh;

/// The nodes, and what the reader can't see of the input.
#[derive(Default)]
pub(super) struct CardBody {
    /// What it is about, in its own words, on one line.
    pub(super) title: String,
    pub(super) nodes: Vec<Value>,
    /// Whole what the nodes show in part, and what few need to decide.
    pub(super) more: Vec<Value>,
    /// Something is not on the card.
    pub(super) elided: bool,
    /// A credential is masked.
    pub(super) secret: bool,
    /// Dangers anywhere in the input, each once.
    pub(super) attention: Vec<Danger>,
    /// Dangers in what is not above the buttons, quoted.
    pub(super) hidden: Vec<(Danger, String)>,
    /// All of those, also the ones past quoting.
    pub(super) hidden_hits: usize,
    pub(super) bytes: usize,
    /// What it is about, short enough for a question before the tap.
    pub(super) subject: String,
}

/// As many quotes as fit beside the rest; the others are counted.
const MAX_QUOTES: usize = 6;
/// Shown on both sides of a hit, so that the quote can be understood.
const QUOTE_MARGIN: usize = 48;
/// What a title may take: no client cuts it.
const TITLE: Budget = Budget::new(72, 1);
/// What stands above the buttons, so that a thumb reaches them.
const GLANCE: Budget = Budget::new(420, 10);
/// A claim is one line, and one only.
const CLAIM: Budget = Budget::new(96, 1);

pub(super) fn body(request: &Request, budget: Budget, lang: Lang) -> CardBody {
    let mut sheet = Sheet {
        body: CardBody::default(),
        budget,
        lang,
        glance: false,
        judged: false,
    };
    kinds::lay_out(&mut sheet, request);
    sheet.body.bytes = weigh(&request.input);
    sheet.body
}

struct Sheet {
    body: CardBody,
    budget: Budget,
    lang: Lang,
    /// What is left out here stands in the fold.
    glance: bool,
    /// Dangers were looked for at the first glance.
    judged: bool,
}

impl Sheet {
    fn push(&mut self, node: Value) {
        self.body.nodes.push(node);
    }

    /// So many eighths of the whole budget.
    fn share(&self, eighths: usize) -> Budget {
        Budget::new(
            self.budget.bytes * eighths / 8,
            (self.budget.lines * eighths / 8).max(3),
        )
    }

    /// A name or a place on one line of the fold.
    fn line(&mut self, label: &Text, value: &str, scan: ScanKind) -> String {
        let budget = Budget::new(self.share(1).bytes.max(400), 1);
        let shown = self.show(value, Shape::Name, budget, scan);
        label.labels(shown, self.lang)
    }

    /// The title in the thing's own words, and whether they are all of them.
    fn title(&mut self, text: &str, shape: Shape, masks: &[secrets::FoundSecret]) -> bool {
        let shown = escape::fit(text, shape, masks, TITLE);
        let whole = shown.hidden.is_none() && !shown.head.contains('\n');
        self.body.title = match shown.hidden {
            None => shown.head.lines().next().unwrap_or_default().to_owned(),
            Some(_) => format!("{}…", shown.head.trim_end()),
        };
        whole
    }

    /// What is done with the thing that the title names.
    fn say_what(&mut self, done: fn(&str) -> Text) {
        let said = done(&self.body.title);
        said.get(self.lang).clone_into(&mut self.body.title);
    }

    fn block(&mut self, label: &Text, text: &str, shape: Shape, eighths: usize, scan: ScanKind) {
        self.told(label, eighths, GLANCE, plainly, |sheet, budget| {
            sheet.show(text, shape, budget, scan)
        });
    }

    /// One line that the agent says of itself.
    fn claim(&mut self, claim: &str) {
        let quoted = |sheet: &Self, text: &str| {
            let said = words::claim(text);
            note(said.get(sheet.lang))
        };
        self.told(&words::CLAIM, 1, CLAIM, quoted, |sheet, budget| {
            // It runs nothing, so that no secret in it must stay in sight.
            let secrets = secrets::every(claim);
            let shown = sheet.show_masked(claim, Shape::Line, budget, ScanKind::Content, &secrets);
            // Its end decides nothing, and stands in the fold.
            if sheet.glance && sheet.body.elided {
                let shown = escape::fit(claim, Shape::Line, &secrets, budget);
                return format!("{}…", shown.head.trim_end());
            }
            shown
        });
    }

    /// Everything in the input but the fields already shown.
    fn fields(&mut self, label: &Text, input: &Value, shown: &[&str], eighths: usize) {
        if leaves::are_none(input, shown) {
            return;
        }
        self.told(label, eighths, GLANCE, plainly, |sheet, budget| {
            leaves::list(sheet, input, shown, budget)
        });
    }

    /// Shows by its beginning what is long, and whole in the fold. What is in
    /// neither is elided.
    fn told(
        &mut self,
        label: &Text,
        eighths: usize,
        glance: Budget,
        frame: impl Fn(&Self, &str) -> Value,
        draw: impl Fn(&mut Self, Budget) -> String,
    ) {
        let whole = self.share(eighths);
        if self.budget == EVERYTHING {
            let text = draw(self, whole);
            self.push(note(label.get(self.lang)));
            let node = plainly(self, &text);
            return self.push(node);
        }
        let mut first = self.blank(true);
        let short = Budget::new(glance.bytes.min(whole.bytes), glance.lines.min(whole.lines));
        let text = draw(&mut first, short);
        let node = frame(self, &text);
        self.push(node);
        let cut_off = first.body.elided;
        self.merge(first.body);
        if cut_off {
            let mut second = self.blank(false);
            let text = draw(&mut second, whole);
            self.body.elided |= second.body.elided;
            let node = plainly(self, &text);
            let label = note(label.get(self.lang));
            self.body.more.extend([label, node]);
        }
    }

    fn blank(&self, glance: bool) -> Self {
        Self {
            body: CardBody::default(),
            budget: self.budget,
            lang: self.lang,
            glance,
            judged: !glance,
        }
    }

    /// Takes over what was noticed at a glance.
    fn merge(&mut self, glance: CardBody) {
        self.body.secret |= glance.secret;
        self.body.hidden_hits += glance.hidden_hits;
        for danger in glance.attention {
            self.beware(danger);
        }
        let room = MAX_QUOTES.saturating_sub(self.body.hidden.len());
        self.body
            .hidden
            .extend(glance.hidden.into_iter().take(room));
    }

    fn beware(&mut self, danger: Danger) {
        if !self.body.attention.contains(&danger) {
            self.body.attention.push(danger);
        }
    }

    /// The text as the card shows it, with everything else about it noted.
    fn show(&mut self, text: &str, shape: Shape, budget: Budget, scan: ScanKind) -> String {
        let secrets = secrets_in(text, scan);
        self.show_masked(text, shape, budget, scan, &secrets)
    }

    fn show_masked(
        &mut self,
        text: &str,
        shape: Shape,
        budget: Budget,
        scan: ScanKind,
        secrets: &[secrets::FoundSecret],
    ) -> String {
        self.body.secret |= !secrets.is_empty();
        let ShownText {
            mut head,
            tail,
            hidden,
        } = escape::fit(text, shape, secrets, budget);
        self.judge(text, scan, hidden.as_ref(), secrets);
        let Some(Hidden { range, lines }) = hidden else {
            return head;
        };
        self.body.elided = true;
        let marker = if self.glance {
            words::folded(range.len(), lines)
        } else {
            words::omitted(range.len(), lines)
        };
        let marker = marker.get(self.lang);
        let _ = match shape {
            shape if shape.is_line() => write!(head, " {marker} {tail}"),
            _ => {
                let end = if head.ends_with('\n') { "" } else { "\n" };
                write!(head, "{end}{marker}\n{tail}")
            }
        };
        head
    }

    /// A text that isn't shown at all.
    fn skip(&mut self, name: &str, text: &str, scan: ScanKind) {
        self.body.elided = true;
        if self.judged {
            return;
        }
        let secrets = secrets::under(name, text);
        self.body.secret |= !secrets.is_empty();
        let all = Hidden {
            range: 0..text.len(),
            lines: 0,
        };
        self.judge(text, scan, Some(&all), &secrets);
    }

    fn judge(
        &mut self,
        text: &str,
        scan: ScanKind,
        hidden: Option<&Hidden>,
        secrets: &[secrets::FoundSecret],
    ) {
        if !self.judged {
            self.note_hits(text, &danger::scan(text, scan), hidden, secrets);
        }
    }

    fn note_hits(
        &mut self,
        text: &str,
        hits: &[Hit],
        hidden: Option<&Hidden>,
        secrets: &[secrets::FoundSecret],
    ) {
        for Hit { danger, range } in hits {
            self.beware(*danger);
            let unseen = hidden.is_some_and(|hidden| {
                range.start < hidden.range.end && range.end > hidden.range.start
            });
            if !unseen {
                continue;
            }
            self.body.hidden_hits += 1;
            if self.body.hidden.len() < MAX_QUOTES {
                let before = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
                let after = text[range.end..]
                    .find('\n')
                    .map_or(text.len(), |at| range.end + at);
                let from = range.start.saturating_sub(QUOTE_MARGIN).max(before);
                let to = (range.end + QUOTE_MARGIN).min(after);
                let quoted = text.floor_char_boundary(from)..text.ceil_char_boundary(to);
                let quote = escape::excerpt(text, quoted, secrets);
                self.body.hidden.push((*danger, cut(quote, 240)));
            }
        }
    }
}

fn plainly(sheet: &Sheet, text: &str) -> Value {
    let text = if text.is_empty() {
        words::EMPTY.get(sheet.lang)
    } else {
        text
    };
    framed(vec![div(text)])
}

/// The credentials to mask in a text of this kind.
fn secrets_in(text: &str, scan: ScanKind) -> Vec<secrets::FoundSecret> {
    match scan {
        ScanKind::Command => secrets::masks(text),
        ScanKind::Content | ScanKind::Value | ScanKind::Name => secrets::find(text),
    }
}

/// Head and tail of a text, for a question that repeats it.
fn subject(text: &str, shape: Shape, scan: ScanKind) -> String {
    let budget = Budget::new(480, 8);
    let secrets = secrets_in(text, scan);
    let shown = escape::fit(text, shape, &secrets, budget);
    match shown.hidden {
        None => shown.head,
        Some(_) => format!("{} … {}", shown.head.trim_end(), shown.tail),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{read, request, waiting};
    use crate::approvals::request::RealPath;
    use serde_json::{Value, json};

    #[test]
    fn every_leaf_of_an_unknown_tool_is_shown() {
        let input = json!({
            "to": "bob@example.com", "n": 3, "on": true, "none": null, "empty": "", "list": [], "map": {},
            "body": "line one\nline two", "nested": {"deep": [{"x": "y"}]}, "cc: bob": "eve",
        });
        let seen = read(&waiting(&request("mcp__mail__send", input)));
        for leaf in [
            "to: bob@example.com",
            "n: 3",
            "on: true",
            "none: null",
            "empty: ",
            "list: []",
            "map: {}",
            "body: line one\n  │ line two",
            "nested.deep[0].x: y",
            "\"cc: bob\": eve",
        ] {
            assert!(seen.contains(leaf), "{leaf} in {seen}");
        }
    }

    #[test]
    fn small_fields_all_stand_above_the_buttons_and_long_ones_do_not() {
        let mut input = json!({"owner": "example", "repo": "shop", "title": "Rounded twice",
            "body": "Steps: open the basket, add two articles, look at the sum.",
            "labels": ["bug", "prices"], "assignee": "lin"});
        let above = |input: &Value| {
            let card = waiting(&request("mcp__github__create_issue", input.clone()));
            read(&card["body"]["elements"][0])
        };
        let seen = above(&input);
        for leaf in ["owner: example", "labels[1]: prices", "assignee: lin"] {
            assert!(seen.contains(leaf), "{leaf} in {seen}");
        }
        input["body"] = json!("a line\n".repeat(9));
        assert!(above(&input).contains("展开下方可见"), "{}", above(&input));
    }

    #[test]
    fn of_a_long_claim_the_beginning_is_one_line_and_the_rest_is_in_the_fold() {
        let claim = format!(
            "Install the tool {} and be done",
            "as its vendor says ".repeat(8)
        );
        let card = waiting(&request(
            "Bash",
            json!({"command": "npm ci", "description": claim}),
        ));
        let elements = card["body"]["elements"].as_array().unwrap();
        let line = read(&elements[0]);
        assert!(
            line.contains("Install the tool") && line.contains("…”"),
            "{line}"
        );
        assert!(line.len() < 128 && !line.contains("be done"), "{line}");
        assert!(read(&card).contains(&claim), "{card}");
    }

    #[test]
    fn input_that_is_not_the_tools_own_is_shown_as_it_came() {
        let seen = read(&waiting(&request(
            "Bash",
            json!({"cmd": "ls", "command": 3}),
        )));
        assert!(seen.contains("参数格式与该工具不符"), "{seen}");
        assert!(seen.contains("cmd: ls\ncommand: 3"), "{seen}");
    }

    #[test]
    fn a_long_leaf_does_not_push_the_short_ones_off() {
        let long = "x".repeat(40_000);
        let input = json!({"a": long, "to": "evil@example.com", "z": long});
        let seen = read(&waiting(&request("mcp__mail__send", input)));
        assert!(seen.contains("to: evil@example.com"), "{seen}");
    }

    #[test]
    fn a_link_in_the_repository_shows_where_it_leads() {
        let mut asked = request("Read", json!({"file_path": "/home/lin/shop/src/link/x"}));
        asked.real = RealPath::Known {
            path: "/home/lin/.ssh/x".into(),
            project: "/home/lin/shop".into(),
        };
        let seen = read(&waiting(&asked));
        assert!(seen.contains("文件：/home/lin/shop/src/link/x"), "{seen}");
        assert!(seen.contains("实际是：/home/lin/.ssh/x"), "{seen}");
        assert!(seen.contains("⚠ 在项目之外"), "{seen}");
        assert!(seen.contains("涉及密钥或凭据文件"), "{seen}");

        asked.real = RealPath::Unknown;
        assert!(read(&waiting(&asked)).contains("无法确认该文件的实际位置"));

        asked.real = RealPath::Known {
            path: "/data/shop/src/link/x".into(),
            project: "/data/shop".into(),
        };
        let seen = read(&waiting(&asked));
        assert!(
            !seen.contains("实际是") && !seen.contains("在项目之外"),
            "{seen}"
        );
    }

    #[test]
    fn files_show_where_they_really_are() {
        let edit = |path: &str| {
            request(
                "Edit",
                json!({"file_path": path, "old_string": "a\n", "new_string": "b\n"}),
            )
        };
        let seen = read(&waiting(&edit("/home/lin/shop/x/../y.rs")));
        assert!(
            seen.contains("文件：/home/lin/shop/y.rs") && seen.contains("-a\n+b"),
            "{seen}"
        );
        assert!(
            seen.contains("file_path: /home/lin/shop/x/../y.rs"),
            "{seen}"
        );
        assert!(!seen.contains("在项目之外"));
        let seen = read(&waiting(&edit("/home/lin/shop/../.bashrc")));
        assert!(
            seen.contains("文件：/home/lin/.bashrc") && seen.contains("⚠ 在项目之外"),
            "{seen}"
        );
        let seen = read(&waiting(&request(
            "WebFetch",
            json!({"url": "https://good.example@evil.example/"}),
        )));
        assert!(seen.contains("主机：evil.example"), "{seen}");
    }
}
