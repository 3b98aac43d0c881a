//! The card of a settled request: what became of it, by whom, when, after how
//! long, on one line; what was asked stays in its fold. Has no button but the
//! undo of an "always".

use serde_json::{Value, json};

use super::body::{body, mcp_title, weigh};
use super::permission::{origin, said as rules_said};
use super::{
    BUDGETS, CardHead, MAX_TITLE, ONE_LINE, button, card, coloured, cut, div, fitting, fold,
    local_time, markdown, note, place, settled, short,
};
use super::{gist, question};
use crate::approvals::request::{
    AskingAgent, Dropped, Ending, Operator, Posed, Ran, Reach, Request,
};
use crate::clock::Millis;
use crate::ids::UserId;
use crate::talk::DecidedBy;
use crate::text::escape::{self, Budget, Shape};
use crate::text::{Lang, Text};
use crate::wording::card::{self as words};
use crate::wording::rule::Until;
use crate::wording::{ending as said, question as asking};

/// Whether the waiting process confirmed that it took the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    Confirmed,
    Unconfirmed,
}

/// Settled requests are read at a glance: a share of what a waiting one gets.
const BODY_SHARE: usize = 3;
const MAX_REASON: usize = 3 * 1024;
const MAX_TOOL: usize = 200;
const MAX_LAID_OUT: usize = 64 << 10;
/// An answer that fits on the line of the fold.
const MAX_SHOWN: usize = 36;

/// The card in its final state. `undo` is the value of the undo button, which
/// only an "always" that still holds can have.
pub fn ended(
    request: &Request,
    ending: &Ending,
    at: Millis,
    delivery: Confirmation,
    undo: Option<&Value>,
    lang: Lang,
) -> Value {
    fitting(|budget| {
        let budget = share(budget);
        let asked = asked(request, budget, lang);
        build(request, ending, at, delivery, undo, asked, lang)
    })
}

fn share(budget: Budget) -> Budget {
    Budget::new(budget.bytes / BODY_SHARE, budget.lines / BODY_SHARE)
}

/// The same with no more of the tool's input than the title that [`kept_title`]
/// made, for where that must not stay after the end.
pub fn without_input(
    request: &Request,
    title: &str,
    ending: &Ending,
    at: Millis,
    delivery: Confirmation,
    undo: Option<&Value>,
    lang: Lang,
) -> Value {
    let tool = escape::visible(&cut(request.tool.clone(), MAX_TOOL), Shape::Lines);
    let said = vec![div(&tool), note(said::INPUT_NOT_KEPT.get(lang))];
    let asked = (title.to_owned(), said);
    build(request, ending, at, delivery, undo, asked, lang)
}

/// The words of the title that may stay after the end: those of the card, or,
/// where one of them is a secret that a card must show, those of the record.
pub fn kept_title(request: &Request, lang: Lang) -> String {
    let tool = mcp_title(&request.tool).map(|title| short(&title, MAX_TOOL));
    let told = || tool.or_else(|| gist::gist(request));
    let told = || told().unwrap_or_else(|| kind(request, lang));
    // What is large is not laid out once more for one line of it.
    if weigh(&request.input) > MAX_LAID_OUT {
        return told();
    }
    let [.., least] = BUDGETS;
    let (title, _) = asked(request, least, lang);
    if gist::is_harmless(&title) && gist::tells_no_secret(request) {
        return title;
    }
    told()
}

/// The kept card for a Feishu that forbids even the words of its title; `None`
/// for one that has no other.
pub fn untitled(kept: &Value) -> Option<Value> {
    let state = kept.pointer("/header/text_tag_list/0/text/content")?;
    let mut card = kept.clone();
    card["header"]["title"]["content"] = state.clone();
    card["config"]["summary"]["content"] = state.clone();
    Some(card)
}

fn build(
    request: &Request,
    ending: &Ending,
    at: Millis,
    delivery: Confirmation,
    undo: Option<&Value>,
    (title, mut asked): (String, Vec<Value>),
    lang: Lang,
) -> Value {
    let unconfirmed = delivery == Confirmation::Unconfirmed
        && matches!(
            ending,
            Ending::Allowed { .. } | Ending::Denied { .. } | Ending::Answered { .. }
        );
    let (state, colour) = outcome(ending, request);
    let Detail {
        mut shown,
        mut folded,
        lead,
        heading: opens,
    } = detail(ending, request, undo, lang);
    if unconfirmed {
        folded.splice(0..0, shown.drain(..));
        shown.push(coloured(said::UNCONFIRMED_TEXT.get(lang), "orange"));
    }
    // A warning takes the room of the title's second line.
    let most = if shown.is_empty() {
        MAX_TITLE
    } else {
        ONE_LINE
    };
    let heading = cut(title.clone(), most);
    if heading != title {
        asked.insert(0, div(&title));
    }
    let mut elements = result(ending, request, at, lang);
    elements.extend(shown);
    folded.append(&mut asked);
    folded.push(note(&origin(request, lang)));
    let opens = lead.into_iter().chain([opens.get(lang).to_owned()]);
    let opens: Vec<String> = opens.collect();
    elements.push(fold(&opens.join(" · "), folded));
    let head = CardHead {
        colour,
        title: &format!("{} {heading}", mark(ending)),
        tag: state.get(lang),
        tag_colour: match (unconfirmed, colour) {
            (true, _) => "orange",
            (false, "green") => "green",
            (false, "red") => "red",
            (false, _) => "neutral",
        },
        place: &place(request, lang),
    };
    settled(card(&head, elements, lang))
}

/// Title and body of what was asked.
fn asked(request: &Request, budget: Budget, lang: Lang) -> (String, Vec<Value>) {
    if let Some(Posed { ask, .. }) = request.question() {
        let nodes = question::asked(ask, budget, lang).nodes();
        return (question::title(ask, lang), nodes);
    }
    let body = body(request, budget, lang);
    let nodes = body.nodes.into_iter().chain(body.more);
    (body.title, nodes.collect())
}

/// A title without anything of the input.
fn kind(request: &Request, lang: Lang) -> String {
    let asked = request.question().and_then(|it| it.ask.questions.first());
    let title = asked.map(|first| asking::title(&first.kind));
    let title = title.unwrap_or_else(|| words::Work::of(&request.tool).name());
    title.get(lang).to_owned()
}

fn mark(ending: &Ending) -> &'static str {
    match ending {
        Ending::Allowed {
            cancelled: true, ..
        }
        | Ending::Stopped { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => "–",
        Ending::Allowed { .. } | Ending::Answered { .. } | Ending::Ran(_) => "✓",
        Ending::Denied { .. } | Ending::DeniedElsewhere => "✗",
        Ending::Terminal { allowed } => match allowed {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "–",
        },
    }
}

fn outcome(ending: &Ending, request: &Request) -> (&'static Text, &'static str) {
    match ending {
        Ending::Allowed {
            cancelled: true, ..
        } => (&said::CANCELLED, "grey"),
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once => (&said::ALLOWED, "green"),
            Reach::Unwritten => (&said::ALLOWED_UNWRITTEN, "green"),
            Reach::Turn(_) => (&said::ALLOWED_TURN, "green"),
            Reach::Session(_) => (&said::ALLOWED_SESSION, "green"),
            Reach::Always { undone: true, .. } => (&said::UNDONE, "green"),
            always if always.is_exact() => (&said::ALLOWED_ALWAYS, "green"),
            Reach::Always { .. } => (&said::ALLOWED_WIDER, "green"),
        },
        Ending::Denied { interrupt, .. } => match refused_answer(request) {
            _ if *interrupt => (&said::INTERRUPTED, "red"),
            Some(own) => (own, "grey"),
            None => (&said::DENIED, "red"),
        },
        Ending::Answered { .. } => (&said::ANSWERED, "green"),
        Ending::Terminal { allowed } => match allowed {
            Some(true) => (&said::TERMINAL_YES, "grey"),
            Some(false) => (&said::TERMINAL_NO, "grey"),
            None => (&said::TERMINAL, "grey"),
        },
        Ending::Ran(ran) if was_elsewhere(ran) => (&said::ELSEWHERE, "grey"),
        Ending::Ran(_) => (&said::TERMINAL_YES, "grey"),
        Ending::DeniedElsewhere => (&said::DENIED_ELSEWHERE, "grey"),
        Ending::Stopped { .. } => (&said::STOPPED, "grey"),
        Ending::TimedOut => (&said::TIMED_OUT, "grey"),
        Ending::HookGone => (&said::HOOK_GONE, "grey"),
        Ending::Orphaned => (&said::ORPHANED, "grey"),
        Ending::Undeliverable { .. } => (&said::UNDELIVERABLE, "grey"),
        Ending::Dropped {
            why: Dropped::CutOff,
        } => (&said::CUT_OFF, "grey"),
        Ending::Dropped { .. } => (&said::DROPPED, "grey"),
    }
}

/// What it is called to refuse a question's answer: nobody asked for leave.
fn refused_answer(request: &Request) -> Option<&'static Text> {
    Some(if request.question()?.ask.is_plan() {
        &said::KEEPS_PLANNING
    } else {
        &said::DECLINED
    })
}

/// A yes in the terminal leaves the hook waiting: one that was gone before the
/// call ran was let go by somebody else's.
fn was_elsewhere(ran: &Ran) -> bool {
    let said = ran.corrects.as_ref();
    match ran.by {
        Some(by) => by == DecidedBy::Other,
        None => said.is_some_and(|said| said.kind == "hook_gone"),
    }
}

/// When, after how long and by whom, on one line of our own markdown.
fn result(ending: &Ending, request: &Request, at: Millis, lang: Lang) -> Vec<Value> {
    let (waited, ran) = ending.waited_and_ran(request.asked_at, at);
    let when = said::when(&local_time(at), waited, ran);
    let mut line = when.get(lang).to_owned();
    let by = match ending {
        Ending::Allowed { by, .. }
        | Ending::Denied { by, .. }
        | Ending::Stopped { by, .. }
        | Ending::Answered { by, .. } => by,
        Ending::Terminal { .. }
        | Ending::Ran(_)
        | Ending::DeniedElsewhere
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => return vec![markdown(&line)],
    };
    match person(by) {
        Some(person) => {
            line = format!("{line} · {} {person}", said::BY.get(lang));
            vec![markdown(&line)]
        }
        None => vec![markdown(&line), note(&said::BY.labels(&by.id, lang))],
    }
}

/// Feishu shows an open id as the person's name.
fn person(by: &Operator) -> Option<String> {
    let UserId::Open(id) = &by.id else {
        return None;
    };
    let harmless = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    harmless.then(|| {
        format!("<person id='{id}' show_name=true show_avatar=true style='normal'></person>")
    })
}

/// What else there is to say: at once, and in the fold below its heading.
struct Detail {
    shown: Vec<Value>,
    folded: Vec<Value>,
    /// What the heading begins with.
    lead: Option<String>,
    heading: &'static Text,
}

impl Detail {
    fn folded(folded: Vec<Value>) -> Self {
        Self {
            shown: Vec::new(),
            folded,
            lead: None,
            heading: &words::FOLD_DETAILS,
        }
    }
}

fn detail(ending: &Ending, request: &Request, undo: Option<&Value>, lang: Lang) -> Detail {
    let say = |text: &Text| Detail::folded(vec![note(text.get(lang))]);
    let rules = |rules, until| note(&rules_said(rules, &request.origin, until, lang));
    match ending {
        Ending::Allowed {
            by,
            reach,
            cancelled: true,
        } => {
            let before = Ending::Allowed {
                by: by.clone(),
                reach: reach.clone(),
                cancelled: false,
            };
            let mut detail = detail(&before, request, undo, lang);
            let words = said::CANCELLED_TEXT.get(lang);
            detail.shown.insert(0, coloured(words, "orange"));
            detail
        }
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once => Detail::folded(Vec::new()),
            Reach::Unwritten => Detail {
                shown: vec![note(said::UNWRITTEN_TEXT.get(lang))],
                ..Detail::folded(Vec::new())
            },
            Reach::Turn(granted) => Detail {
                heading: &said::FOLD_RULE,
                ..Detail::folded(vec![rules(granted, Until::TurnEnd)])
            },
            Reach::Session(granted) => Detail {
                heading: &said::FOLD_RULE,
                ..Detail::folded(vec![rules(granted, Until::SessionEnd)])
            },
            Reach::Always {
                rules: granted,
                undone,
            } => {
                let mut folded = vec![rules(granted, Until::Undone)];
                let heading = match undo {
                    _ if *undone => {
                        folded.push(note(said::UNDONE_TEXT.get(lang)));
                        &said::FOLD_RULE
                    }
                    _ if request.origin.caller.agent != AskingAgent::ClaudeCode => {
                        folded.push(note(said::CODEX_KEEPS_IT.get(lang)));
                        &said::FOLD_RULE
                    }
                    Some(value) => {
                        let label = words::UNDO.get(lang);
                        folded.push(narrow(button("b_undo", "default", label, value)));
                        &said::FOLD_UNDO
                    }
                    None => &said::FOLD_RULE,
                };
                Detail {
                    heading,
                    ..Detail::folded(folded)
                }
            }
        },
        Ending::Denied {
            reason, interrupt, ..
        } => {
            let reason = reason.as_deref().filter(|reason| !reason.is_empty());
            let heading = match reason {
                Some(_) => &said::FOLD_REASON,
                None => &words::FOLD_DETAILS,
            };
            let mut folded = reason.map_or_else(Vec::new, |reason| {
                let text = cut(
                    escape::visible(&cut(reason.to_owned(), MAX_REASON), Shape::Lines),
                    MAX_REASON,
                );
                vec![note(said::REASON.get(lang)), div(&text)]
            });
            let caller = &request.origin.caller;
            if *interrupt && caller.status_dir.is_some() && caller.agent_id.is_none() {
                folded.push(note(said::MAY_HAVE_RUN.get(lang)));
            }
            Detail {
                heading,
                ..Detail::folded(folded)
            }
        }
        Ending::Answered { answers, .. } => answered(answers, lang),
        Ending::Terminal { .. } => say(&said::TERMINAL_TEXT),
        Ending::Ran(ran) => ran_detail(ran, lang),
        Ending::DeniedElsewhere => say(&said::DENIED_ELSEWHERE_TEXT),
        Ending::Stopped { .. } => say(&said::STOPPED_TEXT),
        Ending::TimedOut if request.origin.hosted => say(&said::UNANSWERED_TEXT),
        Ending::TimedOut if request.origin.caller.unattended => say(&said::UNATTENDED_TEXT),
        Ending::TimedOut => say(&said::TIMED_OUT_TEXT),
        Ending::HookGone => say(&said::HOOK_GONE_TEXT),
        Ending::Orphaned => say(&said::ORPHANED_TEXT),
        Ending::Undeliverable { .. } => say(&said::UNDELIVERABLE_TEXT),
        Ending::Dropped { why } => say(said::dropped(*why)),
    }
}

/// One short answer heads the fold, whatever is longer stands in it.
fn answered(answers: &[String], lang: Lang) -> Detail {
    let said = answers.iter().map(|answer| {
        let words = asking::kept_words(answer).map_or_else(
            || escape::visible(&cut(answer.clone(), MAX_REASON), Shape::Lines),
            |text| text.get(lang).to_owned(),
        );
        asking::ANSWER.labels(cut(words, MAX_REASON), lang)
    });
    let mut said: Vec<String> = said.collect();
    let is_short = |line: &String| line.len() <= MAX_SHOWN && !line.contains('\n');
    let lead = match said.as_slice() {
        [only] if is_short(only) => said.pop(),
        _ => None,
    };
    Detail {
        lead,
        ..Detail::folded(said.iter().map(|line| div(line)).collect())
    }
}

fn ran_detail(ran: &Ran, lang: Lang) -> Detail {
    let corrected = ran.corrects.as_ref().map(|untrue| {
        let words = said::corrects(&untrue.kind, ran.by);
        coloured(words.get(lang), "orange")
    });
    let how_long = match (ran.took, ran.since) {
        (Some(took), _) if took >= 1_000 => note(said::took(took).get(lang)),
        (None, Some(since)) => markdown(said::began(&local_time(since)).get(lang)),
        (Some(_) | None, _) if ran.by == Some(DecidedBy::Other) => {
            note(said::ELSEWHERE_TEXT.get(lang))
        }
        (Some(_) | None, _) => note(said::TERMINAL_TEXT.get(lang)),
    };
    Detail {
        shown: corrected.into_iter().collect(),
        ..Detail::folded(vec![how_long])
    }
}

/// The card of a call that was allowed in the terminal and runs. `stop` is the
/// value of the one button that still does something, while it does.
pub fn running(request: &Request, since: Millis, stop: Option<&Value>, lang: Lang) -> Value {
    fitting(|budget| {
        let budget = share(budget);
        let state = said::RUNNING.get(lang);
        let body = body(request, budget, lang);
        let since = said::since(&local_time(since));
        let mut elements = vec![markdown(since.get(lang))];
        let label = said::STOP.get(lang);
        elements.extend(stop.map(|value| narrow(button("b_stop", "danger", label, value))));
        let mut folded = vec![note(said::RUNNING_TEXT.get(lang))];
        folded.extend(body.nodes.into_iter().chain(body.more));
        folded.push(note(&origin(request, lang)));
        elements.push(fold(words::FOLD_DETAILS.get(lang), folded));
        let head = CardHead {
            colour: "grey",
            title: &format!("▶ {}", body.title),
            tag: state,
            tag_colour: "neutral",
            place: &place(request, lang),
        };
        card(&head, elements, lang)
    })
}

/// No wider than its words.
fn narrow(mut button: Value) -> Value {
    button["width"] = json!("default");
    button
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::super::sample::{actions, bash, endings, read, strings, values};
    use super::*;
    use crate::approvals::request::UntrueEnding;
    use crate::rules::Rule;

    #[test]
    fn the_time_a_call_ran_is_no_part_of_its_waiting() {
        let request = bash("npm run build");
        let (since, at) = (request.asked_at + 4_000, request.asked_at + 29_000);
        let ran = |since, took, corrects| {
            Ending::Ran(Ran {
                by: None,
                since,
                took,
                corrects,
            })
        };
        let denied = UntrueEnding {
            kind: "deny".to_owned(),
            by: None,
        };
        let stopped = Ending::Stopped {
            by: super::super::sample::operator(),
            since,
        };
        let no = Ending::Terminal {
            allowed: Some(false),
        };
        for (ending, said) in [
            (
                ran(Some(since), Some(25_000), None),
                "waited 4 s · ran 25 s",
            ),
            (ran(None, Some(25_000), None), "waited 4 s · ran 25 s"),
            (ran(Some(since), None, None), "waited 4 s"),
            // What was said of it came at the end of the waiting.
            (
                ran(None, Some(9_000), Some(denied)),
                "waited 29 s · ran 9 s",
            ),
            (stopped, "waited 4 s · ran 25 s"),
            (no, "waited 29 s"),
        ] {
            let card = ended(
                &request,
                &ending,
                at,
                Confirmation::Confirmed,
                None,
                Lang::En,
            );
            let line = card["body"]["elements"][0]["content"].as_str().unwrap();
            let times = line
                .split(" · ")
                .skip(1)
                .filter(|part| !part.starts_with("By"));
            assert_eq!(times.collect::<Vec<_>>().join(" · "), said, "{line}");
        }
    }

    #[test]
    fn every_ending_says_what_who_when_and_how_long() {
        let request = bash("npm run build");
        let undo = values(Action::Undo);
        for (ending, said) in endings().iter().zip([
            "已批准",
            "已批准，规则未写入",
            "本次会话已允许",
            "已始终允许",
            "规则已撤销",
            "已始终允许这一类",
            "已拒绝",
            "已拒绝并中断",
            "已在终端批准",
            "已在终端拒绝",
            "已在终端处理",
            "已超时",
            "请求已失效",
            "连接已中断",
            "已取消",
            "已取消",
            "已取消",
            "已批准，随后被中断",
            "已取消",
            "卡片无法送达",
            "已在终端批准",
            "已在终端批准",
            "已在终端批准",
            "已在电脑上批准，后被中断",
        ]) {
            let at = request.asked_at + 61_000;
            let card = ended(
                &request,
                ending,
                at,
                Confirmation::Confirmed,
                Some(&undo),
                Lang::Zh,
            );
            let seen = read(&card);
            assert_eq!(card["header"]["text_tag_list"][0]["text"]["content"], said);
            let title = card["header"]["title"]["content"].as_str().unwrap();
            assert!(title.ends_with(" npm run build"), "{title}");
            assert!(
                seen.contains("npm run build") && seen.contains("等待 1 分 1 秒"),
                "{seen}"
            );
            assert!(seen.contains(&format!("millisecond='{at}'")), "{seen}");
            let decided = matches!(ending, Ending::Allowed { .. } | Ending::Denied { .. });
            let chosen = decided || matches!(ending, Ending::Stopped { .. });
            assert_eq!(seen.contains("<person id='ou_1'"), chosen, "{seen}");
            let always = matches!(
                ending,
                Ending::Allowed {
                    reach: Reach::Always { undone: false, .. },
                    ..
                }
            );
            assert_eq!(actions(&card), if always { vec!["undo"] } else { vec![] });
            assert!(!seen.contains("没有收到确认"));
            let card = ended(
                &request,
                ending,
                at,
                Confirmation::Unconfirmed,
                None,
                Lang::Zh,
            );
            assert_eq!(read(&card).contains("没有收到确认"), decided);
            assert_eq!(actions(&card), Vec::<&str>::new());
        }
    }

    #[test]
    fn the_card_that_is_kept_has_the_same_title_and_nothing_else_of_what_was_asked() {
        let question = json!({"questions": [{"question": "Which one?", "header": "mark-7f3a",
            "multiSelect": false, "options": [{"label": "a", "description": "mark-7f3a"}]}]});
        let of = super::super::sample::request;
        let undo = values(Action::Undo);
        for request in [
            bash("make all\necho mark-7f3a"),
            of("AskUserQuestion", question),
            of("ExitPlanMode", json!({"plan": "# Measure\nmark-7f3a"})),
            of(
                "Edit",
                json!({"file_path": "/home/lin/shop/a.rs", "old_string": "x", "new_string": "mark-7f3a"}),
            ),
            of("mcp__github__create_issue", json!({"title": "mark-7f3a"})),
        ] {
            let title = kept_title(&request, Lang::Zh);
            for ending in &endings() {
                let (at, delivery) = (request.asked_at + 61_000, Confirmation::Confirmed);
                let undo = Some(&undo);
                let whole = ended(&request, ending, at, delivery, undo, Lang::Zh);
                let kept = without_input(&request, &title, ending, at, delivery, undo, Lang::Zh);
                assert!(whole.to_string().contains("mark-7f3a"));
                assert!(!kept.to_string().contains("mark-7f3a"), "{kept}");
                assert_eq!(kept["header"], whole["header"]);
                assert_eq!(kept["config"], whole["config"]);
                assert_eq!(actions(&kept), actions(&whole));
                assert!(read(&kept).contains("等待 1 分 1 秒"), "{kept}");
                let untitled = untitled(&kept).unwrap();
                assert!(!untitled["header"]["title"].to_string().contains(&title));
                assert!(!untitled["config"].to_string().contains(&title));
                assert_eq!(untitled["body"], kept["body"]);
            }
        }
    }

    #[test]
    fn no_secret_is_kept_in_a_title_though_the_card_must_show_it() {
        let token = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        for command in [
            format!("echo $(curl -H 'Authorization: Bearer {token}' x)"),
            format!("echo {} $({token})", "y".repeat(50)),
        ] {
            let title = kept_title(&bash(&command), Lang::En);
            assert!(title.starts_with("echo "), "{title}");
            assert!(!title.contains(&token[..8]), "{title}");
        }
    }

    #[test]
    fn what_runs_says_since_when_and_offers_no_more_than_a_stop() {
        let request = bash("npm run build");
        let stop = values(Action::Interrupt);
        for (stop, offered) in [(Some(&stop), vec!["interrupt"]), (None, vec![])] {
            let card = running(&request, 1_700_000_000_000, stop, Lang::Zh);
            let seen = read(&card);
            assert_eq!(actions(&card), offered);
            for said in [
                "▶ npm run build",
                "已在电脑上批准，运行中",
                "millisecond='1700000000000'",
                "npm run build",
            ] {
                assert!(seen.contains(said), "{seen}");
            }
        }
    }

    #[test]
    fn a_decided_card_says_what_its_rule_covers() {
        let request = bash("git count-objects -v");
        let always = |rules| Reach::Always {
            rules,
            undone: false,
        };
        for (reach, zh, en) in [
            (
                always(vec![Rule::new("Bash", "npm test")]),
                "今后 Claude 可直接在 shop 中运行 `npm test`，仅此一条命令\n规则：Bash(npm test)",
                "From now on Claude may run exactly `npm test`, in shop\nRule: Bash(npm test)",
            ),
            (
                always(vec![Rule::new("Bash", "git count-objects *")]),
                "以 `git count-objects` 开头的任何命令\n规则：Bash(git count-objects *)",
                "anything that begins with `git count-objects`, in shop\nRule: Bash(git count-objects *)",
            ),
            (
                always(vec![Rule::new("Edit", "//p/a.txt")]),
                "修改文件 `/p/a.txt`，仅此一个文件，内容不限",
                "change the file `/p/a.txt` in any way, and no other",
            ),
            (
                Reach::Session(vec![Rule::bare("mcp__a__get_x")]),
                "本次会话内，Claude 可直接在 shop 中使用 mcp__a__get_x，该工具的任何参数均可",
                "Until this session ends Claude may use mcp__a__get_x with any input of this tool",
            ),
        ] {
            let ending = Ending::Allowed {
                cancelled: false,
                by: super::super::sample::operator(),
                reach,
            };
            for (lang, sentence) in [(Lang::Zh, zh), (Lang::En, en)] {
                let card = ended(&request, &ending, 0, Confirmation::Confirmed, None, lang);
                assert!(
                    read(&card).contains(sentence),
                    "{sentence}: {}",
                    read(&card)
                );
            }
        }
    }

    #[test]
    fn an_ending_is_called_by_its_own_name() {
        let of = |request: &Request, ending: &Ending| {
            read(&ended(
                request,
                ending,
                0,
                Confirmation::Confirmed,
                None,
                Lang::Zh,
            ))
        };
        let denied = Ending::Denied {
            by: super::super::sample::operator(),
            reason: None,
            interrupt: false,
        };
        let asked = |tool: &str, input| super::super::sample::request(tool, input);
        let plan = asked("ExitPlanMode", json!({"plan": "1. measure"}));
        let seen = of(&plan, &denied);
        assert!(
            seen.contains("继续完善计划") && !seen.contains("已拒绝"),
            "{seen}"
        );
        let option = |label: &str| json!({"label": label, "description": ""});
        let questions = json!([{"question": "Which?", "header": "h", "multiSelect": false,
            "options": [option("a"), option("b")]}]);
        let question = asked("AskUserQuestion", json!({"questions": questions}));
        let seen = of(&question, &denied);
        assert!(
            seen.contains("未作回答") && !seen.contains("已拒绝"),
            "{seen}"
        );
        let let_go = Ending::Ran(Ran {
            by: None,
            since: None,
            took: Some(1_000),
            corrects: Some(UntrueEnding {
                kind: "hook_gone".to_owned(),
                by: None,
            }),
        });
        let seen = of(&bash("ls"), &let_go);
        assert!(
            seen.contains("已在别处批准") && !seen.contains("终端已先批准"),
            "{seen}"
        );
        let mut unattended = bash("ls");
        unattended.origin.caller.unattended = true;
        let seen = of(&unattended, &Ending::TimedOut);
        assert!(
            seen.contains("没有获准执行") && !seen.contains("交回终端"),
            "{seen}"
        );
    }

    #[test]
    fn a_correction_says_what_was_untrue_and_how_long_it_ran() {
        let ending = Ending::Ran(Ran {
            by: None,
            since: None,
            took: Some(12_000),
            corrects: Some(UntrueEnding {
                kind: "deny".to_owned(),
                by: None,
            }),
        });
        let card = ended(
            &bash("ls"),
            &ending,
            0,
            Confirmation::Confirmed,
            None,
            Lang::Zh,
        );
        let seen = read(&card);
        assert!(
            seen.contains("曾显示「已拒绝」") && seen.contains("运行了 12 秒"),
            "{seen}"
        );
    }

    #[test]
    fn a_hosted_request_has_no_terminal_to_go_back_to() {
        let mut request = bash("ls");
        let timed_out = |request: &Request| {
            let ending = Ending::TimedOut;
            let card = ended(request, &ending, 0, Confirmation::Confirmed, None, Lang::Zh);
            read(&card)
        };
        assert!(timed_out(&request).contains("已交回终端处理"));
        request.origin.hosted = true;
        let seen = timed_out(&request);
        assert!(
            seen.contains("已按不允许处理") && !seen.contains("终端"),
            "{seen}"
        );
    }

    #[test]
    fn a_reason_is_shown_as_it_was_typed() {
        let request = bash("ls");
        let denied = |ending: &&Ending| matches!(ending, Ending::Denied { .. });
        let all = endings();
        let ending = all.iter().find(denied).unwrap();
        let card = ended(&request, ending, 0, Confirmation::Confirmed, None, Lang::Zh);
        strings(&card, &mut |_, node, text| {
            if text.contains("**no**") {
                assert_eq!(node["tag"], "plain_text");
            }
        });
        assert!(read(&card).contains("**no** <at id=all></at>"));
    }

    #[test]
    fn an_id_that_is_not_an_open_id_stays_plain() {
        let request = bash("ls");
        for id in ["on_9", "e33gg", "ou_'><at"] {
            let by = Operator {
                id: UserId::parse(id).unwrap(),
            };
            let ending = Ending::Allowed {
                cancelled: false,
                by,
                reach: Reach::Once,
            };
            let card = ended(
                &request,
                &ending,
                0,
                Confirmation::Confirmed,
                None,
                Lang::En,
            );
            assert!(!read(&card).contains("<person"));
            assert!(read(&card).contains(&format!("By: {id}")));
        }
    }
}
