//! Rules from end to end: what a tap leaves is what the card said, whatever
//! Claude Code proposes; and over the corpus no rule covers more than it says.

use nod::for_tests::rules::{NoRule, PathKind, Rule, offer_here};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::fuzz::{asked, matcher};
use crate::hooks::{Stage, bash, face, offered, permission, toast};

fn update(rule: &Value, to: &str) -> Value {
    json!({"behavior": "allow", "updatedPermissions": [
        {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": to},
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_always_for_one_git_setting_does_not_open_every_other() {
    let mut stage = Stage::new().await;
    let mut input = bash("s1", "git config user.name lin");
    input["permission_suggestions"] = json!([{
        "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "git config *"}],
        "behavior": "allow", "destination": "localSettings",
    }]);
    let (hook, card) = stage.ask(&input).await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    let sentence = "今后 Claude 可直接在 project 中运行 `git config user.name lin`，仅此一条命令";
    assert!(face(&shown).contains(sentence), "{}", face(&shown));
    assert!(!face(&shown).contains("git config *"));
    let clicked = stage.tap(&card, "always").await;
    assert_eq!(
        toast(&clicked),
        ("success", "已始终允许，后续相同操作将自动批准")
    );
    let exact = json!({"toolName": "Bash", "ruleContent": "git config user.name lin"});
    assert_eq!(
        hook.ended().await.decision(),
        update(&exact, "localSettings")
    );
    let after = stage.shows(&card, "已始终允许").await;
    assert!(after.contains(sentence), "{after}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wider_rule_is_left_only_by_its_own_button() {
    let mut stage = Stage::new().await;
    let get = |number: u32| permission("s1", "mcp__github__get_issue", &json!({"number": number}));
    let wide = json!({"toolName": "Bash", "ruleContent": "git count-objects *"});
    let tool = json!({"toolName": "mcp__github__get_issue"});
    for (input, action, said, rule, to, title) in [
        (
            bash("s1", "git count-objects -v"),
            "wider",
            "已批准。今后 Claude 可直接在 project 中运行以 `git count-objects` 开头的任何命令",
            &wide,
            "localSettings",
            "已始终允许这一类",
        ),
        (
            get(1),
            "wider",
            "已批准。今后 Claude 可直接在 project 中使用 mcp__github__get_issue，该工具的任何参数均可",
            &tool,
            "localSettings",
            "已始终允许这一类",
        ),
        (
            get(2),
            "session",
            "已批准。本次会话内，Claude 可直接在 project 中使用 mcp__github__get_issue，该工具的任何参数均可",
            &tool,
            "session",
            "本次会话已允许",
        ),
    ] {
        let (hook, card) = stage.ask(&input).await;
        let shown = face(&stage.sim.message(&card).unwrap().card.unwrap());
        let sentence = said.strip_prefix("已批准。").unwrap();
        assert!(shown.contains(sentence), "{shown}");
        let clicked = stage.tap(&card, action).await;
        assert_eq!(toast(&clicked), ("success", said));
        assert_eq!(hook.ended().await.decision(), update(rule, to));
        let after = stage.shows(&card, title).await;
        assert!(after.contains(sentence), "{after}");
    }
    let kinds: Vec<Value> = stage
        .home
        .audit()
        .await
        .iter()
        .map(|line| line["decision"].clone())
        .collect();
    assert_eq!(kinds, ["wider", "wider", "session"]);
    let (hook, card) = stage
        .ask(&permission(
            "s1",
            "mcp__shell__exec",
            &json!({"command": "x"}),
        ))
        .await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    assert_eq!(offered(&shown), ["allow", "deny", "interrupt", "deny_with"]);
    stage.tap(&card, "deny").await;
    hook.ended().await;
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_always_from_a_subdirectory_names_the_repository_it_holds_in() {
    let mut stage = Stage::new().await;
    let repository = stage.home.path().canonicalize().unwrap();
    std::fs::create_dir(repository.join(".git")).unwrap();
    std::fs::write(repository.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let (hook, card) = stage.ask(&bash("s1", "npm test")).await;
    let shown = face(&stage.sim.message(&card).unwrap().card.unwrap());
    let name = repository.file_name().unwrap().to_string_lossy();
    let file = repository.join(".claude/settings.local.json");
    let file = file.to_string_lossy();
    for part in [format!("可直接在 {name} 中运行").as_str(), &file] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    stage.tap(&card, "always").await;
    hook.ended().await;
    let after = stage.shows(&card, "已始终允许").await;
    assert!(after.contains(&*name), "{after}");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn allowing_one_look_at_a_directory_does_not_open_what_is_below() {
    let mut stage = Stage::new().await;
    let outside = stage.home.path().join("outside");
    std::fs::create_dir_all(outside.join("below")).unwrap();
    std::fs::write(outside.join("notes"), "n").unwrap();
    std::os::unix::fs::symlink(outside.join("notes"), outside.join("link")).unwrap();
    let directories = [
        stage.home.path().to_owned(),
        stage.home.project(),
        outside.clone(),
        outside.join("below"),
        outside.join("link"),
        outside.join("missing"),
    ];
    for (n, path) in directories.into_iter().enumerate() {
        for tool in ["Read", "Write"] {
            let input = json!({"file_path": path, "content": "x"});
            let asked = permission(&format!("s{n}"), tool, &input);
            let (hook, card) = stage.ask(&asked).await;
            let shown = stage.sim.message(&card).unwrap().card.unwrap();
            for action in ["always", "session", "wider"] {
                let there = offered(&shown).iter().any(|offered| offered == action);
                assert!(!there, "{tool} {} offers {action}", path.display());
            }
            stage.tap(&card, "deny").await;
            hook.ended().await;
        }
    }
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_became_a_directory_before_the_tap_gets_no_rule() {
    let mut stage = Stage::new().await;
    let file = stage.home.project().join("a.txt");
    std::fs::write(&file, "a").unwrap();
    let input = json!({"file_path": file, "content": "b"});
    for action in ["always", "session"] {
        let (hook, card) = stage.ask(&permission("s1", "Write", &input)).await;
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        let clicked = stage.tap(&card, action).await;
        let refused = "该请求没有安全的规则，不能始终允许";
        assert_eq!(toast(&clicked), ("warning", refused), "{action}");
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, "a").unwrap();
        let clicked = stage.tap(&card, action).await;
        assert_eq!(toast(&clicked).0, "success");
        let rule = json!({"toolName": "Edit", "ruleContent": format!("/{}", file.display())});
        let to = if action == "always" {
            "localSettings"
        } else {
            "session"
        };
        assert_eq!(hook.ended().await.decision(), update(&rule, to));
    }
    stage.no_violations();
}

/// The command of each line.
fn corpus(text: &str) -> Vec<String> {
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["command"].as_str().unwrap().to_owned()
    };
    text.lines()
        .filter(|line| !line.is_empty())
        .map(read)
        .collect()
}

/// What Claude Code would propose, and what an attacker would try under it.
fn beside(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut near = vec![
        format!("{command} x"),
        format!("{command}x"),
        format!("{command} --output=/tmp/x"),
        format!("{command} && curl x"),
        format!("{command} > Makefile"),
        format!("FOO=1 {command}"),
        format!("sudo {command}"),
    ];
    for taken in 1..words.len().min(4) {
        near.push(words[..taken].join(" "));
        near.push(format!("{} core.fsmonitor ./x", words[..taken].join(" ")));
    }
    near
}

#[test]
fn over_the_corpus_no_rule_covers_more_than_its_sentence() {
    let lists = [
        include_str!("../data/commands/everyday-blind.jsonl"),
        include_str!("../data/commands/everyday.jsonl"),
        include_str!("../data/commands/dangerous-blind.jsonl"),
        include_str!("../data/commands/dangerous.jsonl"),
    ]
    .map(corpus);
    let all: Vec<&String> = lists.iter().flatten().collect();
    assert!(all.len() >= 700, "only {} commands", all.len());
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let (mut exact, mut simple) = (0, 0);
    for command in &all {
        let input = json!({"command": command});
        let offer = offer_here(&asked::request("Bash", input), PathKind::Unknown);
        for reach in [&offer.always, &offer.session] {
            for rule in reach.iter().flatten() {
                assert_eq!(rule, &Rule::new("Bash", command.trim()), "not the command");
                rules.insert(rule.render(), rule.clone());
            }
        }
        for rule in offer.wider.iter().flatten() {
            rules.insert(rule.render(), rule.clone());
        }
        exact += usize::from(offer.always.is_ok());
        match offer.always {
            Ok(_) => simple += 1,
            Err(NoRule::Compound | NoRule::Expansion | NoRule::Wildcard | NoRule::Unseen) => {}
            Err(why) => {
                simple += 1;
                *refused.entry(format!("{why:?}")).or_default() += 1;
            }
        }
    }
    let mut unsaid = Vec::new();
    for rule in rules.values() {
        let own = rule
            .content
            .as_deref()
            .unwrap_or_default()
            .trim_end_matches(" *");
        let near = beside(own);
        for other in all
            .iter()
            .map(|command| command.as_str())
            .chain(near.iter().map(String::as_str))
        {
            if let Some(command) = matcher::unsaid(rule, other) {
                unsaid.push((rule.render(), command.to_owned()));
            }
        }
    }
    assert_eq!(unsaid, [], "rules that cover more than they say");
    crate::hooks::report(&format!(
        "{} commands, {exact} of {simple} simple ones with an always, {} rules; refused: {refused:?}",
        all.len(),
        rules.len(),
    ));
    assert!(rules.len() > 60, "only {} rules", rules.len());
}
