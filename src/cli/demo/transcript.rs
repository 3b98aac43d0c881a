//! The tour on the terminal, in plain lines: who asked what, what the card
//! showed, who tapped, what they saw, what the hook printed. Told from what
//! the local Feishu recorded, not from the script.

pub(super) mod look;
pub(super) mod team;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::agent::Printed;
use super::output;
use super::scenes::Scene;
use super::tour::headline;
use crate::simulator::{HistoryEntry, OWNER};
use crate::text::{Lang, Text};

/// Columns the labels take.
const LABEL: usize = 14;
/// What is remembered of taps and cards, in a demo that runs for days.
const MAX_KEPT: usize = 500;

static OPENING: Text = Text::new(
    "nod demo：本机上的飞书、真正的守护进程、真正的 hook；没有任何数据离开这台机器。",
    "nod demo: a local Feishu, a real daemon and real hooks; nothing leaves this machine.",
);
static ASKS: Text = Text::new("Claude 请求", "Claude asks");
static CARD: Text = Text::new("卡片", "card");
static CARD_ENDS: Text = Text::new("卡片变为", "card becomes");
static TAPS: [Text; 2] = [
    Text::new("你点击", "you tap"),
    Text::new("同事点击", "colleague taps"),
];
static WRITES: [Text; 2] = [
    Text::new("你发消息", "you write"),
    Text::new("同事发消息", "colleague says"),
];
static REPLIES: [Text; 2] = [
    Text::new("你回复卡片", "you reply"),
    Text::new("同事回复", "colleague says"),
];
static SAYS: Text = Text::new("nod 回复", "nod says");
static PROGRESS: Text = Text::new("进度", "progress");
static TOAST: Text = Text::new("提示", "toast");
static ERROR: Text = Text::new("错误码", "error code");
static TERMINAL: Text = Text::new("终端", "terminal");
static HOOK: Text = Text::new("hook 的决定", "hook decides");
static NOTHING: Text = Text::new("（不作决定）", "(nothing)");
static CLAUDE: Text = Text::new("Claude Code", "Claude Code");
static RUNS: Text = Text::new("运行它", "runs it");
static KEEPS: Text = Text::new(
    "运行它，并把规则写入 .claude/settings.local.json：",
    "runs it, and writes the rule into .claude/settings.local.json: ",
);
static HAS_ANSWERS: Text = Text::new("拿到回答，继续执行", "has its answers and goes on");
static HAS_PLAN: Text = Text::new("按计划动手", "sets to work on the plan");
static READS: Text = Text::new(
    "不运行，读到理由后换个办法",
    "does not run it, reads why, and finds another way",
);
static STOPS: Text = Text::new(
    "不运行，这一轮立即停止",
    "does not run it; its turn stops at once",
);
static DIALOG: Text = Text::new(
    "以它自己的对话框为准；nod 什么也没批准",
    "goes by its own dialog; nod allowed nothing",
);
static SAME: Text = Text::new("同样的命令", "the same again");
static BY_RULE: Text = Text::new("由规则放行，没有卡片：", "passes by its rule, no card: ");
static NO_RULE: Text = Text::new("规则已撤销，会再次询问", "would ask: the rule is gone");
static NOBODY: Text = Text::new("没有人点击……", "nobody taps …");
static TURN: Text = Text::new("请你", "your turn");
static GO_ON: Text = Text::new(
    "在页面上点“下一幕”继续",
    "press “Next” in the page to go on",
);
static NEXT: Text = Text::new("下一步：`nod setup`", "next: `nod setup`");
static ALL_SEEN: Text = Text::new(
    "全部看完了。可在页面上重看任何一幕；按 Ctrl-C 结束。",
    "That was all. Replay any scene in the page; Ctrl-C ends everything.",
);

pub(super) fn opening(lang: Lang) {
    output::line(OPENING.get(lang));
}

#[derive(Default)]
pub(super) struct Transcript {
    lang: Lang,
    /// The gateways, by their connections.
    gateways: HashMap<u64, String>,
    /// Who tapped, by event.
    taps: HashMap<String, String>,
    /// The text of each button seen, by the value a tap on it sends.
    buttons: HashMap<String, String>,
    /// The text of each option seen, by its field's name and its value.
    options: HashMap<(String, String), String>,
    /// What was told last of each card.
    told: HashMap<(String, ToldPart), String>,
}

/// What is told of a card each time it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ToldPart {
    Title,
    Step,
}

impl Transcript {
    pub(super) fn new(lang: Lang) -> Self {
        Self {
            lang,
            ..Self::default()
        }
    }

    fn word(&self, text: &'static Text) -> &'static str {
        text.get(self.lang)
    }

    pub(super) fn scene(&self, number: usize, scene: &Scene) {
        output::line(&format!("\n{number}. {}", scene.title.get(self.lang)));
        output::line(&format!("   {}", scene.story.get(self.lang)));
        if let Some(call) = scene.call() {
            say(self.word(&ASKS), &call.brief());
        }
    }

    pub(super) fn hint(&self, hint: &Text) {
        say(self.word(&TURN), hint.get(self.lang));
    }

    /// What a hook printed, and what that comes to.
    pub(super) fn prints(&self, printed: &Printed) {
        let mut decision = printed.decision();
        let meaning = self.meaning(&decision);
        if let Some(questions) = decision.pointer_mut("/updatedInput/questions") {
            *questions = json!("…");
        }
        let text = if decision.is_null() && printed.stdout.is_empty() {
            self.word(&NOTHING).to_owned()
        } else if decision.is_null() {
            printed.stdout.clone()
        } else {
            decision.to_string()
        };
        say(self.word(&HOOK), &text);
        say(self.word(&CLAUDE), &meaning);
    }

    fn meaning(&self, decision: &Value) -> String {
        let rule = &decision["updatedPermissions"][0]["rules"][0];
        let text = match decision["behavior"].as_str() {
            Some("allow") if rule.is_object() => {
                let tool = rule["toolName"].as_str().unwrap_or_default();
                let content = rule["ruleContent"].as_str().unwrap_or_default();
                return format!("{}{tool}({content})", self.word(&KEEPS));
            }
            Some("allow") if decision["updatedInput"]["answers"].is_object() => &HAS_ANSWERS,
            Some("allow") if decision["updatedInput"]["plan"].is_string() => &HAS_PLAN,
            Some("allow") => &RUNS,
            Some("deny") if decision["interrupt"] == true => &STOPS,
            Some("deny") => &READS,
            _ => &DIALOG,
        };
        self.word(text).to_owned()
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
        output::line(self.word(&NEXT));
    }

    /// Tells what the local Feishu recorded.
    pub(super) fn tell(&mut self, entries: &[HistoryEntry]) {
        for entry in entries {
            let detail = &entry.detail;
            match entry.kind {
                "message" => self.message(detail),
                "card" => self.card(detail),
                "click" => {
                    with_room(&mut self.taps)
                        .insert(text(detail, "event_id"), text(detail, "user"));
                }
                "event_out" => {
                    self.pushed(&detail["payload"]);
                    self.via(entry.connection);
                }
                "note" => self.noted(detail),
                "clicked" => self.clicked(detail),
                _ => {}
            }
        }
    }

    /// Learns which connection is which gateway's.
    fn noted(&mut self, detail: &Map<String, Value>) {
        let connection = detail.get("connection").and_then(Value::as_u64);
        if let Some(connection) = connection
            && detail.get("note").is_some_and(|note| note == "gateway")
        {
            with_room(&mut self.gateways).insert(connection, text(detail, "name"));
        }
    }

    /// A message of nod's; one that Feishu knew already is no news.
    fn message(&mut self, detail: &Map<String, Value>) {
        if detail.get("repeated") == Some(&Value::Bool(true)) {
            return;
        }
        let Some(card) = detail.get("card").filter(|card| card.is_object()) else {
            if let Some(words) = detail.get("content").and_then(look::words) {
                say(self.word(&SAYS), &words);
            }
            return;
        };
        self.learn(card);
        let header = &card["header"];
        let parts = [
            &header["title"]["content"],
            &header["subtitle"]["content"],
            &header["text_tag_list"][0]["text"]["content"],
        ];
        let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_str()).collect();
        say(self.word(&CARD), &parts.join(" · "));
        let labels = look::buttons(card);
        if labels.is_empty() {
            for line in look::markdown(card).lines().filter(|line| !line.is_empty()) {
                say("", line);
            }
        } else {
            let shown: Vec<String> = labels.iter().map(|(_, l)| format!("[{l}]")).collect();
            say("", &shown.join(" "));
        }
        let id = text(detail, "message_id");
        self.is_news(&id, ToldPart::Title, headline(card));
    }

    fn card(&mut self, detail: &Map<String, Value>) {
        let card = &detail["card"];
        self.learn(card);
        let (id, title) = (text(detail, "message_id"), headline(card));
        if self.is_news(&id, ToldPart::Title, title) {
            say(self.word(&CARD_ENDS), title);
        }
        if let Some(step) = look::step(card)
            && self.is_news(&id, ToldPart::Step, &step)
        {
            say(self.word(&PROGRESS), &step);
        }
    }

    /// Keeps what the card's buttons and options are called.
    fn learn(&mut self, card: &Value) {
        with_room(&mut self.buttons).extend(look::buttons(card));
        with_room(&mut self.options).extend(look::options(card));
    }

    /// Whether this part of the card reads differently from when it was told.
    fn is_news(&mut self, card: &str, part: ToldPart, now: &str) -> bool {
        let told = with_room(&mut self.told).insert((card.to_owned(), part), now.to_owned());
        told.as_deref() != Some(now)
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
            let given = fields.into_iter().flatten();
            let given = given.map(|(name, value)| format!("  {}", self.given(name, value)));
            let label = format!("[{label}]{}", given.collect::<String>());
            say(self.by(user, &TAPS), &label);
        } else if let Some(words) = look::words(&event["message"]["content"]) {
            let user = event["sender"]["sender_id"]["open_id"]
                .as_str()
                .unwrap_or_default();
            let is_reply = event["message"]["parent_id"].is_string();
            let label = self.by(user, if is_reply { &REPLIES } else { &WRITES });
            say(label, &format!("“{words}”"));
        }
    }

    /// What was put into one field of a form: the texts of the options that
    /// were chosen, or what was typed.
    fn given(&self, name: &str, value: &Value) -> String {
        let option = |value: &Value| {
            let value = value.as_str()?;
            let key = (name.to_owned(), value.to_owned());
            self.options.get(&key).cloned()
        };
        if let Some(values) = value.as_array() {
            let chosen: Vec<String> = values.iter().filter_map(option).collect();
            return chosen.join(" + ");
        }
        option(value).unwrap_or_else(|| format!("“{}”", value.as_str().unwrap_or_default()))
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
            let mark = match detail["toast"]["type"].as_str() {
                Some("success") => "✓",
                Some("error") => "✗",
                _ => "!",
            };
            let took = detail["latency_us"]
                .as_u64()
                .map_or_else(String::new, |us| {
                    let ms = format!("{}.{} ms", us / 1_000, us % 1_000 / 100);
                    match self.lang {
                        Lang::Zh => format!("（{ms} 后）"),
                        Lang::En => format!("  (after {ms})"),
                    }
                });
            say(self.word(&TOAST), &format!("{mark} {toast}{took}"));
        } else if let Some(code) = detail["popup"].as_i64() {
            say(self.word(&ERROR), &code.to_string());
        }
    }
}

fn text(detail: &Map<String, Value>, key: &str) -> String {
    let value = detail.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// A map that begins anew once it is full.
fn with_room<K, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if map.len() >= MAX_KEPT {
        map.clear();
    }
    map
}

fn say(label: &str, text: &str) {
    let blank = " ".repeat(LABEL.saturating_sub(columns(label)));
    output::line(format!("   {label}{blank} {text}").trim_end());
}

/// How many columns a terminal gives to a text.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}
