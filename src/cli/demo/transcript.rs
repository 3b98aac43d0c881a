//! The tour on the terminal, in plain lines: who asked what, what the card
//! showed, who tapped, what they saw, what the hook printed. Told from what
//! the local Feishu recorded, not from the script.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::agent::Printed;
use super::output;
use super::scenes::Scene;
use super::tour::headline;
use crate::simulator::{Entry, OWNER};
use crate::wording::{Lang, Text};

/// Columns the labels take.
const LABEL: usize = 14;
/// What is remembered of taps and cards, in a demo that runs for days.
const MAX_KEPT: usize = 500;

static OPENING: Text = Text::new(
    "nod demo：本机上的飞书、真正的守护进程、真正的钩子；没有任何数据离开这台机器。",
    "nod demo: a local Feishu, a real daemon and real hooks; nothing leaves this machine.",
);
static ASKS: Text = Text::new("Claude 请求", "Claude asks");
static CARD: Text = Text::new("卡片", "card");
static CARD_ENDS: Text = Text::new("卡片变为", "card becomes");
static TAPS: [Text; 2] = [
    Text::new("你点击", "you tap"),
    Text::new("同事点击", "colleague taps"),
];
static REPLIES: [Text; 2] = [
    Text::new("你回复", "you reply"),
    Text::new("同事回复", "colleague says"),
];
static TOAST: Text = Text::new("提示", "toast");
static ERROR: Text = Text::new("错误码", "error code");
static TERMINAL: Text = Text::new("终端", "terminal");
static HOOK: Text = Text::new("钩子输出", "hook prints");
static NOTHING: Text = Text::new("（无：由终端决定）", "(nothing: the terminal decides)");
static SAME: Text = Text::new("再次请求", "asked again");
static BY_RULE: Text = Text::new("由规则放行，不再询问：", "passes by its rule, no card: ");
static NO_RULE: Text = Text::new(
    "规则已撤销，会再次询问",
    "the rule is gone, so it would ask",
);
static DAEMON: Text = Text::new("守护进程", "daemon");
static CRASHED: Text = Text::new("kill -9 后重新启动", "killed with -9, then started again");
static NOBODY: Text = Text::new("没有人点击……", "nobody taps …");
static TURN: Text = Text::new("请你", "your turn");
static GO_ON: Text = Text::new(
    "在页面上点“下一幕”继续",
    "press “Next” in the page to go on",
);
static ALL_SEEN: Text = Text::new(
    "全部看完了。可在页面上重看任何一幕；按 Ctrl-C 结束。",
    "That was all. Replay any scene in the page; Ctrl-C ends everything.",
);

pub(super) fn opening(lang: Lang) {
    output::line(OPENING.get(lang));
}

pub(super) struct Transcript {
    lang: Lang,
    /// Who tapped, by event.
    taps: HashMap<String, String>,
    /// The text of each button seen, by the value a tap on it sends.
    buttons: HashMap<String, String>,
    /// The last headline told of each card.
    told: HashMap<String, String>,
}

impl Transcript {
    pub(super) fn new(lang: Lang) -> Self {
        Self {
            lang,
            taps: HashMap::new(),
            buttons: HashMap::new(),
            told: HashMap::new(),
        }
    }

    fn word(&self, text: &'static Text) -> &'static str {
        match self.lang {
            Lang::Zh => &text.zh,
            Lang::En => &text.en,
        }
    }

    pub(super) fn scene(&self, number: usize, scene: &Scene) {
        output::line(&format!("\n{number}. {}", scene.title.get(self.lang)));
        say(self.word(&ASKS), &scene.call.brief());
    }

    pub(super) fn hint(&self, hint: &Text) {
        say(self.word(&TURN), hint.get(self.lang));
    }

    pub(super) fn prints(&self, printed: &Printed) {
        let text = match printed.stdout.as_str() {
            "" => self.word(&NOTHING),
            stdout => stdout,
        };
        say(self.word(&HOOK), text);
    }

    pub(super) fn passes(&self, rule: &str) {
        let text = format!("{}{rule}", self.word(&BY_RULE));
        say(self.word(&SAME), &text);
    }

    pub(super) fn asks_again(&self) {
        say(self.word(&SAME), self.word(&NO_RULE));
    }

    pub(super) fn terminal(&self, key: &str) {
        say(self.word(&TERMINAL), key);
    }

    pub(super) fn crash(&self) {
        say(self.word(&DAEMON), self.word(&CRASHED));
    }

    pub(super) fn nobody(&self) {
        say(self.word(&NOBODY), "");
    }

    pub(super) fn go_on(&self) {
        say(self.word(&TURN), self.word(&GO_ON));
    }

    pub(super) fn all_seen(&self) {
        output::line(&format!("\n{}", self.word(&ALL_SEEN)));
    }

    pub(super) fn closing(&self, scenes: usize, took: Duration) {
        let seconds = took.as_secs_f32();
        output::line("");
        output::line(&match self.lang {
            Lang::Zh => format!("{scenes} 幕都按预期结束，用时 {seconds:.1} 秒。"),
            Lang::En => format!("{scenes} scenes, each ended as it should; {seconds:.1} s in all."),
        });
    }

    /// Tells what the local Feishu recorded.
    pub(super) fn tell(&mut self, entries: &[Entry]) {
        for entry in entries {
            let detail = &entry.detail;
            match entry.kind {
                "message" => self.message(detail),
                "card" => self.card(detail),
                "click" => {
                    if self.taps.len() >= MAX_KEPT {
                        self.taps.clear();
                    }
                    self.taps
                        .insert(text(detail, "event_id"), text(detail, "user"));
                }
                "event_out" => self.pushed(&detail["payload"]),
                "clicked" => self.clicked(detail),
                _ => {}
            }
        }
    }

    fn message(&mut self, detail: &Map<String, Value>) {
        let Some(card) = detail.get("card").filter(|card| card.is_object()) else {
            return;
        };
        let mut labels = Vec::new();
        buttons(card, &mut labels);
        let shown: Vec<String> = labels
            .iter()
            .map(|(_, label)| format!("[{label}]"))
            .collect();
        let tag = &card["header"]["text_tag_list"][0]["text"]["content"];
        let line = format!(
            "{} · {} · {}",
            headline(card),
            card["header"]["subtitle"]["content"]
                .as_str()
                .unwrap_or_default(),
            tag.as_str().unwrap_or_default(),
        );
        say(self.word(&CARD), &line);
        if !shown.is_empty() {
            say("", &shown.join(" "));
        }
        self.buttons = labels.into_iter().collect();
        if self.told.len() >= MAX_KEPT {
            self.told.clear();
        }
        self.told
            .insert(text(detail, "message_id"), headline(card).to_owned());
    }

    fn card(&mut self, detail: &Map<String, Value>) {
        let card = &detail["card"];
        let mut labels = Vec::new();
        buttons(card, &mut labels);
        self.buttons.extend(labels);
        let (id, title) = (text(detail, "message_id"), headline(card).to_owned());
        if self.buttons.len() >= MAX_KEPT {
            self.buttons.clear();
        }
        if self.told.get(&id) != Some(&title) {
            say(self.word(&CARD_ENDS), &title);
            self.told.insert(id, title);
        }
    }

    /// A tap or a text on its way to nod.
    fn pushed(&self, payload: &Value) {
        let event = &payload["event"];
        if let Some(id) = payload["header"]["event_id"].as_str()
            && let Some(user) = self.taps.get(id)
        {
            let value = event["action"]["value"].to_string();
            let label = self.buttons.get(&value).map_or("", String::as_str);
            let fields = event["action"]["form_value"].as_object();
            let typed = fields.into_iter().flat_map(Map::values).map(typed);
            let label = format!("[{label}]{}", typed.collect::<String>());
            say(self.by(user, &TAPS), &label);
        } else if let Some(content) = event["message"]["content"].as_str() {
            let content: Value = serde_json::from_str(content).unwrap_or_default();
            let text = content["text"].as_str().unwrap_or_default();
            let user = event["sender"]["sender_id"]["open_id"]
                .as_str()
                .unwrap_or_default();
            say(self.by(user, &REPLIES), &format!("“{text}”"));
        }
    }

    /// The words for the owner, or for anybody else.
    fn by(&self, user: &str, words: &'static [Text; 2]) -> &'static str {
        let [you, other] = words;
        let own = user.is_empty() || user == OWNER;
        self.word(if own { you } else { other })
    }

    fn clicked(&mut self, detail: &Map<String, Value>) {
        self.taps.remove(&text(detail, "event_id"));
        if let Some(toast) = detail["toast"]["content"].as_str() {
            let tone = detail["toast"]["type"].as_str().unwrap_or_default();
            let took = detail["latency_us"]
                .as_u64()
                .map_or_else(String::new, |us| {
                    format!("  {}.{} ms", us / 1_000, us % 1_000 / 100)
                });
            say(self.word(&TOAST), &format!("{toast}  ({tone}){took}"));
        } else if let Some(code) = detail["popup"].as_i64() {
            say(self.word(&ERROR), &code.to_string());
        }
    }
}

fn text(detail: &Map<String, Value>, key: &str) -> String {
    let value = detail.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// What was put into one field of a form.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => format!("  “{text}”"),
        other => format!("  {other}"),
    }
}

/// Every button of a card: the value it sends and its text.
fn buttons(node: &Value, found: &mut Vec<(String, String)>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| buttons(node, found)),
        Value::Object(map) => {
            if node["tag"] == "button"
                && let Some(value) = node["behaviors"][0].get("value")
                && let Some(label) = node["text"]["content"].as_str()
            {
                found.push((value.to_string(), label.to_owned()));
            }
            map.values().for_each(|node| buttons(node, found));
        }
        _ => {}
    }
}

fn say(label: &str, text: &str) {
    let blank = " ".repeat(LABEL.saturating_sub(columns(label)));
    output::line(format!("   {label}{blank} {text}").trim_end());
}

/// How many columns a terminal gives to a text.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}
