//! A "yes" in the terminal, as Claude Code tells of it: in its own status file,
//! while the command runs, and by an event when it has ended. Whatever is
//! tapped meanwhile, card, toast and audit agree with what ran.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::approve_endings::Held;
use crate::hooks::{Hook, Stage, event, offered, permission, toast};

/// A process that stands for Claude Code, and what it says about itself.
struct Agent {
    session: &'static str,
    process: Child,
    dir: PathBuf,
}

impl Agent {
    fn of(stage: &Stage) -> Self {
        Self::in_session(stage, "s1")
    }

    fn in_session(stage: &Stage, session: &'static str) -> Self {
        let dir = stage.home.path().join("home/.claude");
        std::fs::create_dir_all(dir.join("sessions")).unwrap();
        let mut process = Command::new("sleep");
        let process = process.arg("600").kill_on_drop(true).spawn().unwrap();
        Self {
            session,
            process,
            dir,
        }
    }

    fn pid(&self) -> u32 {
        self.process.id().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.dir.join(format!("sessions/{}.json", self.pid()))
    }

    /// Replaces the file, as Claude Code does.
    fn says(&self, status: &str) {
        self.says_with(&json!({"status": status}));
    }

    fn says_with(&self, more: &Value) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok();
        let began = stat.and_then(|stat| {
            let (_, rest) = stat.rsplit_once(')')?;
            Some(rest.split_ascii_whitespace().nth(19)?.to_owned())
        });
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let mut said = json!({
            "pid": self.pid(), "sessionId": self.session, "procStart": began, "entrypoint": "cli",
            "version": "2.1.325", "kind": "interactive",
            "statusUpdatedAt": u64::try_from(now.as_millis()).unwrap(),
        });
        for (key, value) in more.as_object().unwrap() {
            said[key] = value.clone();
        }
        let new = self.file().with_extension("new");
        std::fs::write(&new, said.to_string()).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }

    fn asks(&self, tool: &str, input: &Value) -> Value {
        let mut asked = permission(self.session, tool, input);
        let transcript = self.dir.join("projects/-p/s1.jsonl");
        asked["transcript_path"] = transcript.to_str().into();
        asked
    }
}

fn command(text: &str) -> Value {
    json!({"command": text})
}

fn ran(name: &str, text: &str, took: u64) -> Value {
    let more = json!({"tool_name": "Bash", "tool_input": command(text), "duration_ms": took});
    event("s1", name, &more)
}

async fn tell(stage: &Stage, event: &Value) {
    stage.home.hook(event).ended().await.left_to_the_terminal();
}

/// A dialog is open, and a card beside it.
async fn open(stage: &mut Stage, agent: &Agent, text: &str) -> (Hook, String) {
    agent.says("waiting");
    stage.ask(&agent.asks("Bash", &command(text))).await
}

fn offers(stage: &Stage, card: &str) -> Vec<String> {
    offered(&stage.sim.message(card).unwrap().card.unwrap())
}

const RUNS: &str = "已在电脑上批准，运行中";

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_in_the_terminal_is_shown_while_the_command_runs() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    for name in ["PostToolUse", "PostToolUseFailure"] {
        let (hook, card) = open(&mut stage, &agent, "make slow").await;
        assert!(offers(&stage, &card).len() > 2);
        agent.says("busy");
        let shown = stage.shows(&card, RUNS).await;
        assert!(shown.contains("起运行"), "{shown}");
        assert_eq!(offers(&stage, &card), ["interrupt"]);
        tell(&stage, &ran(name, "make slow", 12_345)).await;
        hook.ended().await.left_to_the_terminal();
        let shown = stage.shows(&card, "运行了 12 秒").await;
        assert!(shown.contains("已在终端批准") && offers(&stage, &card).is_empty());
        let audit = stage.home.audit().await;
        assert_eq!(audit.last().unwrap()["decision"], "terminal");
    }
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_choice_is_told_the_truth_and_decides_nothing() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "npm run build").await;
    let held = Held::of(&stage, &card);
    agent.says("busy");
    // The first tap comes at once, the others when the card says so.
    let actions = held
        .values
        .iter()
        .filter_map(|value| value["action"].as_str());
    for action in actions.filter(|action| *action != "interrupt") {
        let (kind, text) = held.tap(&stage, action).await;
        assert_eq!(kind, "warning", "{action}");
        assert!(text.starts_with("已在终端"), "{action}: {text}");
        stage.shows(&card, RUNS).await;
    }
    tell(&stage, &ran("PostToolUse", "npm run build", 5_000)).await;
    hook.ended().await.left_to_the_terminal();
    stage.shows(&card, "运行了 5 秒").await;
    let decisions: Vec<_> = stage.home.audit().await;
    let decisions: Vec<_> = decisions.iter().map(|line| &line["decision"]).collect();
    assert_eq!(decisions, ["terminal"]);
    let rules = stage.home.project().join(".claude/settings.local.json");
    assert!(!rules.exists(), "no rule is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_can_be_stopped_and_the_card_says_that_it_ran() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make slow").await;
    agent.says("busy");
    stage.shows(&card, RUNS).await;
    let clicked = stage.tap(&card, "interrupt").await;
    assert_eq!(toast(&clicked), ("success", "已中断运行"));
    let decision = hook.ended().await.decision();
    assert_eq!(
        (&decision["behavior"], &decision["interrupt"]),
        (&json!("deny"), &json!(true))
    );
    tell(&stage, &ran("PostToolUseFailure", "make slow", 900)).await;
    stage.shows(&card, "已在电脑上批准，后被中断").await;
    assert_eq!(stage.home.audit().await[0]["decision"], "stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlasts_the_time_limit_is_not_called_unanswered() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "2")).await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make slow").await;
    agent.says("busy");
    stage.shows(&card, RUNS).await;
    hook.ended().await.left_to_the_terminal();
    let shown = stage.shows(&card, "已在终端批准\n").await;
    assert!(
        shown.contains("开始运行") && offers(&stage, &card).is_empty(),
        "{shown}"
    );
    tell(&stage, &ran("PostToolUse", "make slow", 61_000)).await;
    stage.shows(&card, "运行了 1 分 1 秒").await;
    let audit = stage.home.audit().await;
    let words: Vec<_> = audit
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["settled", "completed"]);
    assert_eq!(audit[0]["decision"], "terminal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_away_learns_of_the_yes_at_its_start() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make slow").await;
    stage.kill().await;
    agent.says("busy");
    stage.start().await;
    stage.shows(&card, RUNS).await;
    tell(&stage, &ran("PostToolUse", "make slow", 3_000)).await;
    hook.ended().await.left_to_the_terminal();
    stage.shows(&card, "运行了 3 秒").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_said_denied_of_what_ran_is_corrected_and_so_is_the_audit() {
    let mut stage = Stage::new().await;
    // No status file: nothing tells before the event.
    let (hook, card) = stage.ask_bash("make both").await;
    assert_eq!(
        toast(&stage.tap(&card, "deny").await),
        ("success", "已拒绝运行")
    );
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    stage.shows(&card, "已拒绝").await;
    tell(&stage, &ran("PostToolUse", "make both", 4_000)).await;
    let shown = stage.shows(&card, "更正：这张卡片曾显示「已拒绝」").await;
    assert!(
        shown.contains("已在终端批准\n") && shown.contains("运行了 4 秒"),
        "{shown}"
    );
    let audit = stage.home.audit().await;
    assert_eq!(
        (&audit[0]["decision"], &audit[1]["kind"]),
        (&json!("deny"), &json!("corrected"))
    );
    assert_eq!(audit[1]["detail"]["corrects"]["kind"], "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_in_no_file_when_the_call_has_ended_is_taken_back() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    for is_written in [true, false] {
        let (hook, card) = open(&mut stage, &agent, "npm test").await;
        stage.tap(&card, "always").await;
        hook.ended().await;
        stage.shows(&card, "已始终允许").await;
        let file = stage.home.project().join(".claude/settings.local.json");
        let held = if is_written {
            "Bash(npm test)"
        } else {
            "Bash(ls)"
        };
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let held = json!({"permissions": {"allow": [held]}});
        std::fs::write(&file, held.to_string()).unwrap();
        tell(&stage, &ran("PostToolUse", "npm test", 20)).await;
        if is_written {
            tokio::time::sleep(Duration::from_secs(2)).await;
            stage.shows(&card, "已始终允许").await;
        } else {
            let shown = stage.shows(&card, "已批准，规则未写入").await;
            assert!(!shown.contains("已始终允许"), "{shown}");
        }
    }
    let audit = stage.home.audit().await;
    let kinds: Vec<&Value> = audit.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["settled", "settled", "rule_not_left"]);
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagents_card_ends_with_its_own_end_only() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("busy");
    let ask = |id: &str, text: &str| {
        let mut asked = agent.asks("Bash", &command(text));
        (asked["agent_id"], asked["agent_type"]) = (id.into(), "general-purpose".into());
        asked
    };
    let (first, one) = stage.ask(&ask("a1", "make one")).await;
    let (second, two) = stage.ask(&ask("a2", "make two")).await;
    // The main agent's dialog comes and goes meanwhile.
    let (main, of_main) = open(&mut stage, &agent, "make main").await;
    agent.says("busy");
    stage.shows(&of_main, RUNS).await;
    tell(&stage, &ran("PostToolUse", "make main", 1_000)).await;
    main.ended().await.left_to_the_terminal();
    let running = json!([{"id": "a1", "type": "subagent"}, {"id": "a2", "type": "subagent"}]);
    for (name, more) in [
        ("Stop", json!({"background_tasks": running})),
        ("UserPromptSubmit", json!({"prompt": "go on"})),
        ("Stop", json!({"background_tasks": running})),
        ("SubagentStop", json!({"agent_id": "a3"})),
    ] {
        tell(&stage, &event("s1", name, &more)).await;
    }
    assert!(offers(&stage, &one).len() > 2 && offers(&stage, &two).len() > 2);
    tell(
        &stage,
        &event("s1", "SubagentStop", &json!({"agent_id": "a2"})),
    )
    .await;
    stage.shows(&two, "已在终端处理").await;
    second.ended().await.left_to_the_terminal();
    assert_eq!(
        toast(&stage.tap(&one, "allow").await),
        ("success", "已批准运行")
    );
    assert_eq!(first.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_file_of_somebody_else_changes_no_card() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make slow").await;
    let elsewhere = agent.dir.join("elsewhere.json");
    for wrong in [json!({"pid": 1}), json!({"entrypoint": "sdk-cli"})] {
        let mut said = wrong;
        said["status"] = "busy".into();
        agent.says_with(&said);
        // Whoever has seen this one has looked at the other too.
        let witness = Agent::in_session(&stage, "s2");
        let (_hook, seen) = open(&mut stage, &witness, "make witness").await;
        witness.says("busy");
        stage.shows(&seen, RUNS).await;
        assert!(offers(&stage, &card).len() > 2, "{said}");
        agent.says("waiting");
    }
    agent.says("busy");
    std::fs::rename(agent.file(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, agent.file()).unwrap();
    assert_eq!(
        toast(&stage.tap(&card, "deny").await),
        ("success", "已拒绝运行")
    );
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_in_the_terminal_is_called_one_and_an_exit_is_not() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make no").await;
    let held = Held::of(&stage, &card);
    // The hook ends first, and then the turn.
    hook.signal("-TERM");
    agent.says("idle");
    let shown = stage.shows(&card, "已在终端拒绝").await;
    assert!(!shown.contains("请求已失效"), "{shown}");
    let (_, late) = held.tap(&stage, "allow").await;
    assert_eq!(late, "请求已失效，请返回终端查看状态");

    // The dialog stays open: somebody killed the hook.
    let (hook, card) = open(&mut stage, &agent, "make killed").await;
    hook.signal("-KILL");
    stage.shows(&card, "请求已失效").await;

    // The whole session went.
    let (hook, card) = open(&mut stage, &agent, "make exit").await;
    drop(agent);
    hook.signal("-TERM");
    stage.shows(&card, "请求已失效").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_hook_allowed_is_not_called_the_terminals() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    let (hook, card) = open(&mut stage, &agent, "make other").await;
    hook.signal("-TERM");
    agent.says("busy");
    stage.shows(&card, "请求已失效").await;
    tell(&stage, &ran("PostToolUse", "make other", 900)).await;
    let shown = stage.shows(&card, "已在别处批准").await;
    assert!(shown.contains("另一个 hook"), "{shown}");
    assert!(!shown.contains("已在终端批准"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_in_print_mode_says_that_the_call_was_refused() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "1")).await;
    let agent = Agent::of(&stage);
    agent.says_with(&json!({"status": "busy", "entrypoint": "sdk-cli"}));
    let (_hook, card) = stage.ask(&agent.asks("Bash", &command("make print"))).await;
    let shown = stage.shows(&card, "已超时").await;
    assert!(shown.contains("没有获准执行"), "{shown}");
    assert!(!shown.contains("交回终端"), "{shown}");
}

/// The session's transcript, as Claude Code writes it.
impl Agent {
    fn writes(&self, line: &Value) {
        use std::io::Write as _;
        let file = self.dir.join("projects/-p/s1.jsonl");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut line = line.clone();
        line["timestamp"] = jiff::Timestamp::now().to_string().into();
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file);
        writeln!(file.unwrap(), "{line}").unwrap();
    }

    /// It calls a tool, and then a dialog opens.
    fn calls(&self, id: &str, text: &str) {
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": command(text)});
        self.writes(&json!({"type": "assistant", "message": {"content": [call]}}));
        std::thread::sleep(Duration::from_millis(20));
    }

    fn ends(&self, id: &str, more: Value) {
        let result = json!({"type": "tool_result", "tool_use_id": id, "is_error": true});
        let mut line = more;
        line["type"] = "user".into();
        line["message"] = json!({"content": [result]});
        self.writes(&line);
    }
}

fn interrupted() -> Value {
    json!({"toolDenialKind": "user-rejected"})
}

fn decided(decision: &str, source: &str) -> Value {
    json!({"permissionDecision": {"decision": decision, "source": source}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allow_that_the_terminal_interrupted_is_corrected_on_card_and_in_the_audit() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.calls("toolu_1", "make esc");
    let (hook, card) = open(&mut stage, &agent, "make esc").await;
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.shows(&card, "已批准").await;
    agent.ends("toolu_1", interrupted());
    let shown = stage.shows(&card, "已批准，终端已中断").await;
    assert!(shown.contains("没有执行，或没有执行完"), "{shown}");
    let audit = stage.home.audit().await;
    assert_eq!(
        (&audit[0]["decision"], &audit[1]["kind"]),
        (&json!("allow"), &json!("corrected"))
    );
    assert_eq!(audit[1]["detail"]["cancelled"], true);
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_away_for_the_whole_turn_learns_its_end_at_its_start() {
    for (fate, said) in [
        (decided("accept", "user_temporary"), "已在终端批准"),
        (interrupted(), "已在终端拒绝"),
        (decided("accept", "hook"), "已在别处批准"),
        (decided("reject", "hook"), "已在别处拒绝"),
    ] {
        let mut stage = Stage::new().await;
        let agent = Agent::of(&stage);
        agent.calls("toolu_1", "make away");
        let (hook, card) = open(&mut stage, &agent, "make away").await;
        let held = Held::of(&stage, &card);
        stage.kill().await;
        agent.ends("toolu_1", fate);
        agent.says("idle");
        stage.start().await;
        held.tap(&stage, "deny").await;
        let shown = stage.shows(&card, said).await;
        assert!(!shown.contains("已拒绝"), "{shown}");
        hook.ended().await.left_to_the_terminal();
        let audit = stage.home.audit().await;
        assert_eq!(audit.len(), 1, "{audit:?}");
        assert_ne!(audit[0]["decision"], "deny");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_hooks_decision_is_not_called_the_terminals() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.calls("toolu_1", "make other");
    let (hook, card) = open(&mut stage, &agent, "make other").await;
    agent.says("busy");
    let shown = stage.shows(&card, RUNS).await;
    assert!(!shown.contains("已在终端批准"), "{shown}");
    let mut event = ran("PostToolUse", "make other", 900);
    event["tool_use_id"] = "toolu_1".into();
    event["transcript_path"] = agent.asks("Bash", &Value::Null)["transcript_path"].clone();
    agent.ends("toolu_1", decided("accept", "hook"));
    tell(&stage, &event).await;
    let shown = stage.shows(&card, "已在别处批准").await;
    assert!(!shown.contains("已在终端批准"), "{shown}");
    hook.ended().await.left_to_the_terminal();
    assert_eq!(stage.home.audit().await[0]["decision"], "allowed_elsewhere");

    // A refusal, which leaves nod's hook waiting too.
    agent.calls("toolu_2", "make refused");
    let (hook, card) = open(&mut stage, &agent, "make refused").await;
    agent.ends("toolu_2", decided("reject", "hook"));
    agent.says("busy");
    let shown = stage.shows(&card, "已在别处拒绝").await;
    assert!(shown.contains("没有运行"), "{shown}");
    hook.ended().await.left_to_the_terminal();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_call_that_did_not_run_or_that_is_another_corrects_no_denial() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.calls("toolu_1", "make denied");
    let (hook, card) = open(&mut stage, &agent, "make denied").await;
    stage.tap(&card, "deny").await;
    hook.ended().await;
    stage.shows(&card, "已拒绝").await;
    agent.ends("toolu_1", decided("reject", "hook"));
    // Hooks of managed settings are told of it.
    let more = json!({"tool_name": "Bash", "tool_input": command("make denied"),
        "tool_use_id": "toolu_1", "tool_response": "Error: denied"});
    let mut refused = event("s1", "PostToolUse", &more);
    tell(&stage, &refused).await;
    refused["transcript_path"] = agent.asks("Bash", &Value::Null)["transcript_path"].clone();
    tell(&stage, &refused).await;
    // The same call once more, which a rule let pass.
    agent.calls("toolu_2", "make denied");
    agent.ends("toolu_2", decided("accept", "config"));
    let mut other = ran("PostToolUse", "make denied", 10);
    other["tool_use_id"] = "toolu_2".into();
    tell(&stage, &other).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.shows(&card, "已拒绝").await;
    let audit = stage.home.audit().await;
    assert_eq!(audit.len(), 1, "{audit:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_after_a_time_out_does_not_say_that_it_came_first() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "1")).await;
    let agent = Agent::of(&stage);
    agent.calls("toolu_1", "make late");
    let (hook, card) = open(&mut stage, &agent, "make late").await;
    stage.shows(&card, "已超时").await;
    hook.ended().await.left_to_the_terminal();
    agent.ends("toolu_1", decided("accept", "user_temporary"));
    let mut event = ran("PostToolUse", "make late", 900);
    event["tool_use_id"] = "toolu_1".into();
    tell(&stage, &event).await;
    let shown = stage.shows(&card, "曾显示「已超时」").await;
    assert!(
        shown.contains("已在终端批准") && !shown.contains("先批准"),
        "{shown}"
    );
    let audit = stage.home.audit().await;
    let kinds: Vec<_> = audit.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["settled", "completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleared_or_elsewhere_resumed_session_leaves_open_cards_open() {
    let mut stage = Stage::new().await;
    let agent = Agent::of(&stage);
    agent.says("busy");
    let mut asked = agent.asks("Bash", &command("make cleared"));
    (asked["agent_id"], asked["agent_type"]) = ("a1".into(), "general-purpose".into());
    let (hook, card) = stage.ask(&asked).await;
    tell(
        &stage,
        &event("s1", "SessionEnd", &json!({"reason": "clear"})),
    )
    .await;
    assert!(offers(&stage, &card).len() > 2);
    // The subagent goes on in the session's new id.
    let more = json!({"tool_name": "Bash", "tool_input": command("make cleared"),
        "agent_id": "a1", "duration_ms": 2_000});
    tell(&stage, &event("s9", "PostToolUse", &more)).await;
    hook.ended().await.left_to_the_terminal();
    stage.shows(&card, "运行了 2 秒").await;
}
