//! The scripted agent: asks for permission exactly as Claude Code does, by
//! starting `nod hook` with JSON on its stdin, and does what the answer says,
//! down to the rule it writes into the project's settings.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;
use tokio::task::JoinHandle;

use super::process::terminate;
use super::stage::DemoStage;

/// One tool call the agent wants to make.
#[derive(Debug, Clone)]
pub(super) struct DemoCall {
    pub(super) tool: &'static str,
    pub(super) input: Value,
}

impl DemoCall {
    /// The call on one line, as a person would say it.
    pub(super) fn brief(&self) -> String {
        let text = |key: &str| self.input[key].as_str();
        if let Some(questions) = self.input["questions"].as_array() {
            let asked = questions.iter().filter_map(|one| one["question"].as_str());
            return asked.collect::<Vec<_>>().join(" · ");
        }
        if let Some(plan) = text("plan") {
            return plan.lines().next().unwrap_or_default().to_owned() + " …";
        }
        let file = text("file_path").and_then(|path| path.rsplit('/').next());
        let named = text("command").or(file).unwrap_or_default();
        format!("{}: {named}", self.tool)
    }

    /// Whether Claude Code asks for it with yes and no, as the page's
    /// terminal can.
    pub(super) fn has_dialog(&self) -> bool {
        ["Bash", "Edit"].contains(&self.tool)
    }

    /// The rule Claude Code would write for exactly this call.
    fn rule(&self) -> Option<String> {
        let command = self.input["command"].as_str()?;
        Some(format!("{}({command})", self.tool))
    }
}

pub(super) struct DemoAgent {
    session: String,
    project: PathBuf,
}

/// A hook that waits for somebody's decision.
pub(super) struct WaitingHook {
    pid: Option<u32>,
    ended: JoinHandle<io::Result<Printed>>,
    /// What it got on stdin.
    pub(super) stdin: Value,
}

/// What a hook left when it ended.
#[derive(Debug, Clone)]
pub(super) struct Printed {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) took: Duration,
}

impl Printed {
    /// The decision Claude Code reads, or null.
    pub(super) fn decision(&self) -> Value {
        serde_json::from_str::<Value>(&self.stdout)
            .map(|mut printed| printed["hookSpecificOutput"]["decision"].take())
            .unwrap_or_default()
    }
}

impl DemoAgent {
    pub(super) fn new(stage: &DemoStage) -> Self {
        let random = rand::random::<u128>();
        Self {
            session: format!("{:08x}-demo", random & 0xffff_ffff),
            project: stage.project(),
        }
    }

    /// Sits down before the laptop of the scene; on another one it is another
    /// session.
    pub(super) fn sit_down(&mut self, stage: &DemoStage) {
        if self.project != stage.project() {
            *self = Self::new(stage);
        }
    }

    fn event(&self, name: &str, call: &DemoCall) -> Value {
        json!({
            "session_id": self.session,
            "transcript_path": self.project.join("transcript.jsonl"),
            "cwd": self.project,
            "permission_mode": "default",
            "hook_event_name": name,
            "tool_name": call.tool,
            "tool_input": call.input,
        })
    }

    /// Starts the hook; a person decides.
    pub(super) async fn ask(&self, stage: &DemoStage, call: &DemoCall) -> io::Result<WaitingHook> {
        let mut stdin = self.event("PermissionRequest", call);
        if let Some(command) = call.input["command"].as_str() {
            stdin["permission_suggestions"] = json!([{
                "type": "addRules",
                "rules": [{"toolName": call.tool, "ruleContent": command}],
                "behavior": "allow",
                "destination": "localSettings",
            }]);
        }
        let since = Instant::now();
        let child = self.hook(stage, &stdin).await?;
        Ok(WaitingHook {
            pid: child.id(),
            ended: tokio::spawn(printed(child, since)),
            stdin,
        })
    }

    /// The call was allowed in Claude Code's own dialog and has run.
    pub(super) async fn ran(&self, stage: &DemoStage, call: &DemoCall) -> io::Result<()> {
        let mut event = self.event("PostToolUse", call);
        event["tool_response"] = json!({"stdout": "", "stderr": ""});
        let mut child = self.hook(stage, &event).await?;
        child.wait().await.map(drop)
    }

    async fn hook(&self, stage: &DemoStage, input: &Value) -> io::Result<Child> {
        let mut child = stage
            .command("hook")
            .arg("--config")
            .arg(stage.hook_file()?)
            .env("CLAUDE_PROJECT_DIR", &self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.to_string().as_bytes()).await?;
        }
        Ok(child)
    }

    fn settings(&self) -> PathBuf {
        self.project.join(".claude").join("settings.local.json")
    }

    fn allowed(&self) -> Vec<String> {
        let text = fs::read_to_string(self.settings()).unwrap_or_default();
        let settings: Value = serde_json::from_str(&text).unwrap_or_default();
        let rules = settings["permissions"]["allow"].as_array();
        rules
            .into_iter()
            .flatten()
            .filter_map(|rule| rule.as_str().map(str::to_owned))
            .collect()
    }

    /// The rule in the project's settings that lets the call pass unasked.
    pub(super) fn passes(&self, call: &DemoCall) -> Option<String> {
        let rule = call.rule()?;
        self.allowed().contains(&rule).then_some(rule)
    }

    /// Writes the rules an answer carries where Claude Code would write them.
    pub(super) fn keep_rules(&self, decision: &Value) -> io::Result<()> {
        let updates = decision["updatedPermissions"].as_array();
        let lasting = updates.into_iter().flatten().filter(|update| {
            update["type"] == "addRules" && update["destination"] == "localSettings"
        });
        let mut allowed = self.allowed();
        for rule in lasting
            .filter_map(|update| update["rules"].as_array())
            .flatten()
        {
            let tool = rule["toolName"].as_str().unwrap_or_default();
            allowed.push(match rule["ruleContent"].as_str() {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            });
        }
        if allowed.is_empty() {
            return Ok(());
        }
        let file = self.settings();
        fs::create_dir_all(self.project.join(".claude"))?;
        fs::write(
            file,
            format!("{:#}\n", json!({"permissions": {"allow": allowed}})),
        )
    }
}

impl WaitingHook {
    /// Waits for the hook's end and takes what it printed. May be dropped and
    /// called again; the hook goes on meanwhile.
    pub(super) async fn end(&mut self) -> io::Result<Printed> {
        (&mut self.ended).await?
    }

    /// What Claude Code does when the person presses Esc or leaves.
    pub(super) fn give_up(&self) {
        terminate(self.pid);
    }
}

async fn printed(child: Child, since: Instant) -> io::Result<Printed> {
    let output = child.wait_with_output().await?;
    Ok(Printed {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: since.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_on_one_line() {
        for (tool, input, told) in [
            ("Bash", json!({"command": "npm test"}), "Bash: npm test"),
            ("Edit", json!({"file_path": "/a/b/c.ts"}), "Edit: c.ts"),
            ("ExitPlanMode", json!({"plan": "1. x\n2. y"}), "1. x …"),
            (
                "AskUserQuestion",
                json!({"questions": [{"question": "A?"}, {"question": "B?"}]}),
                "A? · B?",
            ),
        ] {
            assert_eq!(DemoCall { tool, input }.brief(), told);
        }
    }
}
