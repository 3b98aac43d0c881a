//! A stand-in for Claude Code: speaks its stdio protocol from a script, so
//! that a whole session can be seen where no Claude Code is installed. It runs
//! no tool and touches no file.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::output;
use crate::text::{Lang, Text};

/// The program plays Claude Code when it is started under this name.
pub(in crate::cli) const NAME: &str = "nod-stand-in";

/// The task that goes on until it is stopped.
pub(super) static REVIEW: Text = Text::new(
    "逐个文件检查整个商店",
    "Review the whole shop, file by file",
);
/// The answer the tour gives to the one question.
pub(super) static HALF_UP: Text = Text::new("四舍五入", "Half up");
static TO_EVEN: Text = Text::new("银行家舍入", "To the even cent");

static LOOKING: Text = Text::new(
    "我先看看价格是怎么算的。",
    "Let me see how prices are computed.",
);
static ROUNDING: Text = Text::new("半分钱怎么舍入？", "How should half a cent be rounded?");
static ROUNDING_HEADER: Text = Text::new("舍入", "Rounding");
static HALF_UP_WHY: Text = Text::new("收银台的习惯", "as tills do");
static TO_EVEN_WHY: Text = Text::new("长期误差最小", "least drift over time");
static TESTING: Text = Text::new(
    "价格改好了，再跑一遍测试。",
    "The prices are done; now the tests.",
);
static TEST_CALL: Text = Text::new("运行单元测试", "Run the unit tests");
static NO_ANSWER: Text = Text::new("（没有回答）", "(no answer)");
static NO_SCRIPT: Text = Text::new(
    "我只是演示里的替身，照着剧本说话，这件事做不了。换成真正的 Claude Code，它已经动手了。",
    "I am only the demo's stand-in and follow a script, so I can't do that. The real Claude Code would be at work by now.",
);
static FILES: [&str; 6] = [
    "src/price.ts",
    "src/cart.ts",
    "src/orders.ts",
    "src/invoice.ts",
    "src/stock.ts",
    "src/mail.ts",
];

/// Long enough to be read, short enough not to bore.
const PACE: Duration = Duration::from_millis(800);
/// A review nobody stops ends after so many files.
const MOST_FILES: usize = 300;
/// Lines and texts that may wait.
const MAX_WAITING: usize = 64;

/// Plays until the input ends.
pub(in crate::cli) fn run() {
    let (lines, heard) = mpsc::sync_channel(MAX_WAITING);
    std::thread::spawn(move || {
        let input = std::io::stdin().lock().lines();
        for line in input.map_while(Result::ok).filter_map(|line| hear(&line)) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
    let say = |line: Value| output::line(&line.to_string());
    StandIn::new(heard, say, PACE, std::process::id()).play();
}

/// What nod writes, as far as it concerns a stand-in.
#[derive(Debug, PartialEq)]
enum StandInInput {
    Text(SpokenText),
    Answer { request: String, answer: Value },
    Interrupt { request: String },
    Mode { request: String, mode: String },
}

#[derive(Debug, PartialEq)]
struct SpokenText {
    uuid: String,
    text: String,
}

fn hear(line: &str) -> Option<StandInInput> {
    let line: Value = serde_json::from_str(line).ok()?;
    let own = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let request = own(&line["request_id"]);
    match line["type"].as_str()? {
        "user" => Some(StandInInput::Text(SpokenText {
            uuid: own(&line["uuid"]),
            text: own(&line["message"]["content"]),
        })),
        "control_response" => Some(StandInInput::Answer {
            request: own(&line["response"]["request_id"]),
            answer: line["response"]["response"].clone(),
        }),
        "control_request" => match line["request"]["subtype"].as_str()? {
            "interrupt" => Some(StandInInput::Interrupt { request }),
            "set_permission_mode" => Some(StandInInput::Mode {
                request,
                mode: own(&line["request"]["mode"]),
            }),
            _ => None,
        },
        _ => None,
    }
}

/// Why a turn ends before its end.
#[derive(Debug, PartialEq, Eq)]
enum Halt {
    Interrupted,
    /// Nobody writes any more.
    Alone,
}

struct StandIn<S> {
    heard: Receiver<StandInInput>,
    say: S,
    pace: Duration,
    texts: VecDeque<SpokenText>,
    mode: String,
    /// Tells what this run asks from what a run before it in the same session
    /// asked.
    run: u32,
    /// Tool calls and questions so far, for their ids.
    calls: u32,
    turns: u32,
}

impl<S: FnMut(Value)> StandIn<S> {
    fn new(heard: Receiver<StandInInput>, say: S, pace: Duration, run: u32) -> Self {
        Self {
            heard,
            say,
            pace,
            run,
            texts: VecDeque::new(),
            mode: "default".to_owned(),
            calls: 0,
            turns: 0,
        }
    }

    fn play(mut self) {
        loop {
            match self.next_text().and_then(|spoken| self.turn(&spoken)) {
                Ok(()) => {}
                Err(Halt::Interrupted) => self.end(&json!({
                    "subtype": "error_during_execution",
                    "is_error": true,
                    "terminal_reason": "aborted_tools",
                })),
                Err(Halt::Alone) => return,
            }
        }
    }

    fn next_text(&mut self) -> Result<SpokenText, Halt> {
        loop {
            if let Some(spoken) = self.texts.pop_front() {
                return Ok(spoken);
            }
            // An answer between turns is for nobody, and there is nothing
            // to interrupt.
            if self.listen(None) == Err(Halt::Alone) {
                return Err(Halt::Alone);
            }
        }
    }

    fn turn(&mut self, spoken: &SpokenText) -> Result<(), Halt> {
        self.turns += 1;
        let mode = self.mode.clone();
        self.reached(&spoken.uuid, "started");
        (self.say)(json!({
            "type": "system",
            "subtype": "init",
            "model": "stand-in",
            "permissionMode": mode,
        }));
        let lang = language(&spoken.text);
        let answer = if spoken.text == REVIEW.get(lang) {
            self.review(lang)?
        } else if self.turns == 1 {
            self.prices(lang)?
        } else {
            NO_SCRIPT.get(lang).to_owned()
        };
        self.reached(&spoken.uuid, "completed");
        self.end(&json!({
            "subtype": "success",
            "is_error": false,
            "result": answer,
            "terminal_reason": "completed",
        }));
        Ok(())
    }

    /// Looks, asks, runs the tests if it may, and says how it went.
    fn prices(&mut self, lang: Lang) -> Result<String, Halt> {
        self.uses(LOOKING.get(lang), "Read", &json!({"file_path": FILES[0]}))?;
        let option = |label: &Text, why: &Text| json!({"label": label.get(lang), "description": why.get(lang)});
        let question = ROUNDING.get(lang);
        let answer = self.ask(
            "AskUserQuestion",
            &json!({"questions": [{
                "question": question,
                "header": ROUNDING_HEADER.get(lang),
                "multiSelect": false,
                "options": [option(&HALF_UP, &HALF_UP_WHY), option(&TO_EVEN, &TO_EVEN_WHY)],
            }]}),
        )?;
        let chosen = answer["updatedInput"]["answers"][question].as_str();
        let chosen = chosen.unwrap_or(NO_ANSWER.get(lang)).to_owned();
        self.uses(
            TESTING.get(lang),
            "Read",
            &json!({"file_path": "package.json"}),
        )?;
        let command = json!({"command": "npm test", "description": TEST_CALL.get(lang)});
        let verdict = self.ask("Bash", &command)?;
        if verdict["behavior"] == "allow" {
            self.uses("", "Bash", &command)?;
            return Ok(match lang {
                Lang::Zh => {
                    format!("价格现在都是整数的**分**，舍入方式：**{chosen}**。42 个测试全部通过。")
                }
                Lang::En => format!(
                    "Prices are whole **cents** now, rounded as you chose: **{chosen}**. All 42 tests pass."
                ),
            });
        }
        let why = verdict["message"].as_str().unwrap_or_default();
        Ok(match lang {
            Lang::Zh => {
                format!("价格现在都是整数的**分**，舍入方式：**{chosen}**。测试没有运行：{why}")
            }
            Lang::En => format!(
                "Prices are whole **cents** now, rounded as you chose: **{chosen}**. The tests did not run: {why}"
            ),
        })
    }

    /// Reads one file after the other.
    fn review(&mut self, lang: Lang) -> Result<String, Halt> {
        for (number, file) in (1..=MOST_FILES).zip(FILES.iter().cycle()) {
            let words = match lang {
                Lang::Zh => format!("第 {number} 个文件"),
                Lang::En => format!("File number {number}"),
            };
            self.uses(&words, "Read", &json!({"file_path": file}))?;
        }
        Ok(NO_SCRIPT.get(lang).to_owned())
    }

    /// Says something and uses a tool that needs no leave, or has it.
    fn uses(&mut self, words: &str, tool: &str, input: &Value) -> Result<(), Halt> {
        let id = self.tool_use(words, tool, input);
        self.pause()?;
        (self.say)(
            json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": "", "is_error": false},
            ]}}),
        );
        Ok(())
    }

    fn tool_use(&mut self, words: &str, tool: &str, input: &Value) -> String {
        self.calls += 1;
        let id = format!("toolu_{}", self.calls);
        let mut content = vec![json!({"type": "tool_use", "id": id, "name": tool, "input": input})];
        if !words.is_empty() {
            content.insert(0, json!({"type": "text", "text": words}));
        }
        (self.say)(
            json!({"type": "assistant", "message": {"role": "assistant", "content": content}}),
        );
        id
    }

    /// Asks for leave, or for an answer, and waits as long as it takes.
    fn ask(&mut self, tool: &str, input: &Value) -> Result<Value, Halt> {
        let id = self.tool_use("", tool, input);
        let asked = format!("ask-{}-{}", self.run, self.calls);
        (self.say)(
            json!({"type": "control_request", "request_id": asked, "request": {
                "subtype": "can_use_tool",
                "tool_name": tool,
                "input": input,
                "tool_use_id": id,
                "requires_user_interaction": tool == "AskUserQuestion",
            }}),
        );
        loop {
            match self.listen(None) {
                Ok(Some((request, answer))) if request == asked => return Ok(answer),
                Ok(_) => {}
                Err(halt) => {
                    (self.say)(json!({"type": "control_cancel_request", "request_id": asked}));
                    return Err(halt);
                }
            }
        }
    }

    fn pause(&mut self) -> Result<(), Halt> {
        let until = Instant::now() + self.pace;
        while Instant::now() < until {
            self.listen(Some(until))?;
        }
        Ok(())
    }

    /// Hears one line, or nothing until then. An answer is for who waits for it.
    fn listen(&mut self, until: Option<Instant>) -> Result<Option<(String, Value)>, Halt> {
        let heard = match until {
            Some(until) => {
                match self
                    .heard
                    .recv_timeout(until.saturating_duration_since(Instant::now()))
                {
                    Ok(heard) => heard,
                    Err(RecvTimeoutError::Timeout) => return Ok(None),
                    Err(RecvTimeoutError::Disconnected) => return Err(Halt::Alone),
                }
            }
            None => self.heard.recv().map_err(|_| Halt::Alone)?,
        };
        match heard {
            StandInInput::Answer { request, answer } => return Ok(Some((request, answer))),
            StandInInput::Interrupt { request } => {
                self.reply(&request, &json!({"still_queued": []}));
                return Err(Halt::Interrupted);
            }
            StandInInput::Mode { request, mode } => {
                self.reply(&request, &json!({"mode": mode}));
                self.mode = mode;
            }
            StandInInput::Text(spoken) if self.texts.len() < MAX_WAITING => {
                self.reached(&spoken.uuid, "queued");
                self.texts.push_back(spoken);
            }
            StandInInput::Text(spoken) => self.reached(&spoken.uuid, "cancelled"),
        }
        Ok(None)
    }

    fn reply(&mut self, request: &str, response: &Value) {
        (self.say)(json!({"type": "control_response", "response": {
            "subtype": "success",
            "request_id": request,
            "response": response,
        }}));
    }

    fn reached(&mut self, uuid: &str, state: &str) {
        (self.say)(json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state}));
    }

    fn end(&mut self, how: &Value) {
        let mut line = json!({
            "type": "result",
            "num_turns": self.turns,
            "queued_turn_count": self.texts.len(),
        });
        if let (Some(line), Some(how)) = (line.as_object_mut(), how.as_object()) {
            line.extend(how.clone());
        }
        (self.say)(line);
    }
}

/// It answers in the language it is spoken to in.
fn language(text: &str) -> Lang {
    if text.is_ascii() { Lang::En } else { Lang::Zh }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::parse;
    use crate::talk::{AgentSaid, AgentWants, How, Mode, Say, TextStage, ToolVerdict};

    const RUN: u32 = 7;

    /// Everything the stand-in says to these orders, as nod reads it.
    fn said(orders: &[Say], pace: Duration) -> Vec<AgentSaid> {
        let (tell, heard) = mpsc::sync_channel(MAX_WAITING);
        for order in orders {
            let line = hear(&order.to_line()).expect("it hears what nod writes");
            tell.send(line).expect("room");
        }
        drop(tell);
        let mut lines = Vec::new();
        let say = |line: Value| lines.push(parse(line.to_string().as_bytes()).expect("a line"));
        StandIn::new(heard, say, pace, RUN).play();
        let strange = |line: &&AgentSaid| matches!(line, AgentSaid::Other { .. });
        assert_eq!(lines.iter().find(strange), None, "nod knows every line");
        lines
    }

    fn text(text: &str) -> Say {
        Say::Text {
            uuid: format!("u-{text}"),
            text: text.to_owned(),
        }
    }

    fn verdict(request: &str, verdict: ToolVerdict) -> Say {
        Say::Verdict {
            request: request.to_owned(),
            verdict,
        }
    }

    fn allow(request: &str, input: Value) -> Say {
        let updates = Vec::new();
        verdict(request, ToolVerdict::Allow { input, updates })
    }

    fn interrupt() -> Say {
        Say::Interrupt {
            request: "nod-stop".to_owned(),
        }
    }

    fn asked(lines: &[AgentSaid]) -> Vec<(&str, &str)> {
        let requests = lines.iter().filter_map(|line| match line {
            AgentSaid::Request(request) => Some(request),
            _ => None,
        });
        let tools = requests.filter_map(|request| match &request.what {
            AgentWants::Tool(tool) => Some((request.id.as_str(), tool.tool.as_str())),
            _ => None,
        });
        tools.collect()
    }

    fn results(lines: &[AgentSaid]) -> Vec<&str> {
        let ends = lines.iter().filter_map(|line| match line {
            AgentSaid::TurnEnd(end) => end.text.as_deref(),
            _ => None,
        });
        ends.collect()
    }

    #[test]
    fn a_task_asks_runs_what_it_may_and_tells_what_was_chosen() {
        let answers = json!({"answers": {ROUNDING.en.as_ref(): HALF_UP.en.as_ref()}});
        for (last, ending) in [
            (allow("ask-7-4", json!({})), "All 42 tests pass."),
            (
                verdict("ask-7-4", ToolVerdict::deny("not now")),
                "The tests did not run: not now",
            ),
        ] {
            let orders = [
                text("Charge cents"),
                allow("ask-7-2", answers.clone()),
                last,
            ];
            let lines = said(&orders, Duration::ZERO);
            assert_eq!(
                asked(&lines),
                [("ask-7-2", "AskUserQuestion"), ("ask-7-4", "Bash")]
            );
            let [told] = results(&lines)[..] else {
                panic!("{lines:?}")
            };
            assert!(told.contains("Half up") && told.ends_with(ending), "{told}");
        }
    }

    fn interrupted(lines: &[AgentSaid]) -> usize {
        let aborted = |line: &&AgentSaid| matches!(line, AgentSaid::TurnEnd(end) if end.how == How::Interrupted);
        lines.iter().filter(aborted).count()
    }

    #[test]
    fn an_interrupt_ends_a_wait_and_the_next_text_is_heard() {
        let orders = [text("价格"), interrupt(), text("然后？")];
        let lines = said(&orders, Duration::ZERO);
        assert_eq!(interrupted(&lines), 1);
        let withdrawn = AgentSaid::Withdrawn {
            request: "ask-7-2".to_owned(),
        };
        assert!(lines.contains(&withdrawn), "{lines:?}");
        assert_eq!(results(&lines), [NO_SCRIPT.get(Lang::Zh)]);
    }

    #[test]
    fn a_review_goes_on_until_it_is_interrupted() {
        let lines = said(&[text(&REVIEW.en), interrupt()], Duration::from_millis(1));
        assert_eq!(interrupted(&lines), 1);
        assert_eq!(results(&lines), [""; 0]);
    }

    #[test]
    fn texts_wait_their_turn_and_modes_are_taken_over() {
        let mode = Say::SetMode {
            request: "nod-1".to_owned(),
            mode: Mode::Plan,
        };
        let orders = [
            text("one"),
            text("two"),
            mode,
            allow("ask-7-2", json!({})),
            allow("ask-7-4", json!({})),
        ];
        let lines = said(&orders, Duration::ZERO);
        let stages: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                AgentSaid::Text { uuid, stage } => Some((uuid.as_str(), *stage)),
                _ => None,
            })
            .collect();
        assert_eq!(
            stages,
            [
                ("u-one", TextStage::Queued),
                ("u-one", TextStage::Started),
                ("u-two", TextStage::Queued),
                ("u-one", TextStage::Completed),
                ("u-two", TextStage::Started),
                ("u-two", TextStage::Completed),
            ]
        );
        let modes: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                AgentSaid::Began(began) => began.mode,
                _ => None,
            })
            .collect();
        assert_eq!(modes, [Mode::Default, Mode::Plan]);
        let queued: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                AgentSaid::TurnEnd(end) => Some(end.queued),
                _ => None,
            })
            .collect();
        assert_eq!(queued, [1, 0]);
    }
}
