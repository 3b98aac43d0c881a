//! Approvals from end to end: a hook asks, a card comes, a person taps, the
//! hook prints. Toasts are the reference protocol's, to the letter.

use nod::for_tests::simulator::{Armed, ChatText, Fault, OWNER, Press, STRANGER};
use serde_json::{Value, json};

use crate::hooks::{Stage, face, offered, permission, toast, values};
use crate::v1_clients::V1Client;

const ALLOWED: (&str, &str) = ("success", "已批准运行");
const DENIED: (&str, &str) = ("success", "已拒绝运行");
const HANDLED: (&str, &str) = ("warning", "该请求已被处理，请勿重复操作");
const UNKNOWN: (&str, &str) = ("error", "请求不存在或已过期");
const INVALID: (&str, &str) = ("error", "无效的回调请求");

#[tokio::test(flavor = "multi_thread")]
async fn each_button_does_what_its_seed_says() {
    buttons(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn buttons(mut stage: Stage) {
    let local = json!([{
        "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test"}],
        "behavior": "allow", "destination": "localSettings",
    }]);
    let session = json!([{
        "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test"}],
        "behavior": "allow", "destination": "session",
    }]);
    let message = "用户通过飞书拒绝";
    let cases = [
        ("allow", ALLOWED, json!({"behavior": "allow"}), "已批准"),
        (
            "always",
            ("success", "已始终允许，后续相同操作将自动批准"),
            json!({"behavior": "allow", "updatedPermissions": local}),
            "已始终允许",
        ),
        (
            "session",
            ("success", "已批准，本次会话内相同操作将自动批准"),
            json!({"behavior": "allow", "updatedPermissions": session}),
            "本次会话已允许",
        ),
        (
            "deny",
            DENIED,
            json!({"behavior": "deny", "message": message}),
            "已拒绝",
        ),
        (
            "interrupt",
            ("success", "已拒绝并中断"),
            json!({"behavior": "deny", "message": message, "interrupt": true}),
            "已拒绝并中断",
        ),
    ];
    for (action, expected, decision, title) in cases {
        let (hook, card) = stage.ask_bash("npm test").await;
        let shown = stage.sim.message(&card).unwrap().card.unwrap();
        for value in values(&shown) {
            for field in ["action", "request_id", "callback_url"] {
                assert!(value[field].is_string(), "{value}");
            }
        }
        for named in ["npm test", "tester", "claude --resume s1"] {
            assert!(face(&shown).contains(named), "{named}: {}", face(&shown));
        }
        let clicked = stage.tap(&card, action).await;
        assert_eq!(toast(&clicked), expected, "{action}");
        assert_eq!(hook.ended().await.decision(), decision, "{action}");
        let after = stage.shows(&card, title).await;
        assert!(after.contains("npm test"), "{after}");
        let now = stage.sim.message(&card).unwrap().card.unwrap();
        let undo = if action == "always" {
            vec!["undo"]
        } else {
            vec![]
        };
        assert_eq!(offered(&now), undo);
    }
    let kinds: Vec<Value> = stage
        .home
        .audit()
        .await
        .iter()
        .map(|line| line["decision"].clone())
        .collect();
    let expected = ["allow", "always", "session", "deny", "interrupt"];
    assert_eq!(kinds, expected);
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_may_not_decide_changes_nothing() {
    let mut stage = Stage::with(|options, home| {
        home.set("FEISHU_CHAT_ID", nod::for_tests::simulator::GROUP);
        let _ = options;
    })
    .await;
    let (hook, card) = stage.ask_bash("make").await;
    let stranger = Press::action(&card, "allow").by(STRANGER);
    let refused = ("error", "你不在审批人名单中，操作未生效");
    for _ in 0..3 {
        let clicked = stage.press(stranger.clone()).await;
        assert_eq!(toast(&clicked), refused);
        assert!(clicked.card.is_none());
    }
    let report = stage.sent().await;
    assert!(report.content.contains(STRANGER), "{}", report.content);

    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    let own = values(&shown)
        .into_iter()
        .find(|value| value["action"] == "allow")
        .unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = own.clone();
        change(&mut value);
        value
    };
    let forged = [
        changed(&|v| v["action"] = json!("always")),
        changed(&|v| {
            v.as_object_mut().unwrap().remove("seal");
        }),
        changed(&|v| v["callback_url"] = json!("http://127.0.0.1:1")),
        changed(&|v| v["action"] = json!("explode")),
        changed(&|v| {
            v.as_object_mut().unwrap().remove("action");
        }),
        changed(&|v| {
            v.as_object_mut().unwrap().remove("request_id");
        }),
        changed(&|v| v["request_id"] = json!(7)),
        json!("allow"),
        json!({}),
        Value::Null,
    ];
    for (n, value) in forged.iter().enumerate() {
        let outcome = click(&stage, value, &card, &format!("forged{n}")).await;
        assert_eq!(outcome, INVALID, "{value}");
    }
    let (other, second) = stage.ask_bash("make other").await;
    let lifted = click(&stage, &own, &second, "lifted").await;
    assert_eq!(lifted, INVALID);
    let unknown = json!({"action": "allow", "request_id": "nobody-knows-this-one"});
    assert_eq!(click(&stage, &unknown, &card, "unknown").await, UNKNOWN);
    for body in [
        json!({"host": "im_share"}),
        json!({"delivery_type": "url_preview"}),
    ] {
        let (_, outcome) = stage
            .sim
            .push_click_raw(event_of(&own, &card, "elsewhere", &body))
            .await;
        assert_eq!(outcome.toast.unwrap().content, INVALID.1, "{body}");
    }

    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    assert_eq!(toast(&stage.tap(&second, "deny").await), DENIED);
    assert_eq!(other.ended().await.decision()["behavior"], "deny");
    let lines = stage.home.audit().await;
    let strange: Vec<_> = lines
        .iter()
        .filter(|line| line["kind"] == "not_an_approver")
        .collect();
    assert_eq!(strange.len(), 1, "the others are summed up");
    assert_eq!(strange[0]["operator"], STRANGER);
}

/// A tap with any value, as its toast.
async fn click(
    stage: &Stage,
    value: &Value,
    message: &str,
    event: &str,
) -> (&'static str, &'static str) {
    let body = event_of(value, message, event, &json!({}));
    let (_, outcome) = stage.sim.push_click_raw(body).await;
    let toast = outcome.toast.expect("a toast");
    [ALLOWED, DENIED, HANDLED, UNKNOWN, INVALID]
        .into_iter()
        .find(|(kind, text)| toast.kind == *kind && toast.content == *text)
        .unwrap_or_else(|| panic!("{toast:?}"))
}

pub(crate) fn event_of(value: &Value, message: &str, event: &str, more: &Value) -> String {
    let micros = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_micros();
    let mut body = json!({
        "schema": "2.0",
        "header": {
            "event_id": event,
            "token": "t",
            "create_time": micros.to_string(),
            "event_type": "card.action.trigger",
            "tenant_key": nod::for_tests::simulator::TENANT,
            "app_id": nod::for_tests::simulator::APP_ID,
        },
        "event": {
            "operator": {"tenant_key": nod::for_tests::simulator::TENANT, "open_id": OWNER},
            "token": "c-1",
            "action": {"value": value, "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": message, "open_chat_id": nod::for_tests::simulator::GROUP},
        },
    });
    for (key, value) in more.as_object().unwrap() {
        body["event"][key] = value.clone();
    }
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_before_the_send_returned_decides() {
    let mut stage = Stage::new().await;
    let slow = Fault::SlowRest {
        ms: 1_500,
        path: "POST /open-apis/im/v1/messages".to_owned(),
    };
    stage.sim.set_fault(Armed::once(slow)).unwrap();
    let (hook, card) = stage.ask_bash("make early").await;
    let value = values(&stage.sim.message(&card).unwrap().card.unwrap()).remove(0);
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.shows(&card, "已批准").await;
    assert_eq!(click(&stage, &value, &card, "late").await, HANDLED);
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_counts_once_also_after_a_restart_and_later_taps_hear_the_truth() {
    let mut stage = Stage::new().await;
    // Feishu has taken such a card before.
    let (hook, card) = stage.ask_bash("make ready").await;
    stage.tap(&card, "allow").await;
    hook.ended().await;
    stage.shows(&card, "已批准").await;
    let (hook, card) = stage.ask_bash("make once").await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    let value = |action: &str| {
        let all = values(&shown);
        all.into_iter().find(|v| v["action"] == action).unwrap()
    };
    let body = event_of(&value("allow"), &card, "the-same-event", &json!({}));
    let push = || stage.sim.push_click_raw(body.clone());
    let ((_, first), (_, second)) = tokio::join!(push(), push());
    assert_eq!(first.toast.as_ref().unwrap().content, ALLOWED.1);
    assert_eq!(second, first);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let again = click(&stage, &value("deny"), &card, "another-event").await;
    assert_eq!(again, HANDLED);
    let (_, late) = stage
        .sim
        .push_click_raw(event_of(&value("deny"), &card, "a-third", &json!({})))
        .await;
    assert!(late.card.is_some(), "a late click gets the card as it is");

    stage.shows(&card, "已批准").await;
    stage.kill().await;
    stage.start().await;
    let (_, third) = stage.sim.push_click_raw(body).await;
    assert_eq!(third.toast, first.toast, "the same answer after a restart");
    let (before, after) = (first.card.unwrap(), third.card.unwrap());
    assert!(face(&before).contains("make once"));
    assert!(face(&after).contains("已批准"), "{after}");
    assert_eq!(after["header"], before["header"], "no poorer than it was");
    assert!(
        !after["body"].to_string().contains("make once"),
        "no more than the title is kept"
    );
    let again = click(&stage, &value("interrupt"), &card, "after-restart").await;
    assert_eq!(again, HANDLED);
    assert_eq!(stage.home.audit().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_reaches_the_model_by_form_and_by_reply() {
    reasons(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn reasons(mut stage: Stage) {
    let (hook, card) = stage.ask_bash("rm build").await;
    let press = Press::action(&card, "deny_with").fill("reason", "  用 make clean 代替 ");
    assert_eq!(toast(&stage.press(press).await), DENIED);
    let decision = hook.ended().await.decision();
    assert_eq!(decision["message"], "用 make clean 代替");
    assert!(
        stage
            .shows(&card, "已拒绝")
            .await
            .contains("用 make clean 代替")
    );

    let (hook, card) = stage.ask_bash("rm build").await;
    assert!(stage.face(&card).contains("此前已被拒绝 1 次"));
    let reply = |text: &str, user: &str, parent: &str| ChatText {
        text: text.to_owned(),
        user: user.to_owned(),
        parent_id: Some(parent.to_owned()),
        ..ChatText::default()
    };
    stage
        .sim
        .push_text(&reply("先别删", "", &card))
        .await
        .unwrap();
    let decision = hook.ended().await.decision();
    assert_eq!(decision["behavior"], "deny");
    assert_eq!(decision["message"], "先别删");
    assert_eq!(decision.get("interrupt"), None);
    stage.shows(&card, "先别删").await;
    let told = stage.sent().await;
    assert!(told.content.contains("已拒绝"), "{}", told.content);

    let slow = Fault::SlowRest {
        ms: 500,
        path: "POST /open-apis/im/v1/messages".to_owned(),
    };
    stage.sim.set_fault(Armed::once(slow)).unwrap();
    let (hook, early) = stage.ask_bash("rm dist").await;
    let before = reply("还没发完就回复", "", &early);
    stage.sim.push_text(&before).await.unwrap();
    let decision = hook.ended().await.decision();
    assert_eq!(decision["message"], "还没发完就回复");
    let told = stage.sent().await;
    assert!(told.content.contains("已拒绝"), "{}", told.content);

    stage
        .sim
        .push_text(&reply("再想想", "", &card))
        .await
        .unwrap();
    let told = stage.sent().await;
    assert!(told.content.contains(HANDLED.1), "{}", told.content);
}

fn refuses(code: i64, msg: &str) -> Fault {
    Fault::RestError {
        path: "POST /open-apis/im/v1/messages".to_owned(),
        code,
        http: 400,
        msg: msg.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layout_feishu_refuses_is_given_up_and_the_call_can_still_be_allowed() {
    let mut stage = Stage::new().await;
    let words = "Failed to create card content, ext=ErrCode: 200621; ErrMsg: parse card json err";
    let refuse = refuses(230_099, words);
    stage.sim.set_fault(Armed::once(refuse)).unwrap();
    let (hook, card) = stage.ask_bash("echo canary-content").await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    assert_eq!(
        offered(&shown),
        ["allow", "deny", "always", "interrupt", "session"]
    );
    assert!(face(&shown).contains("echo canary-content"));
    for gone in ["\"form\"", "\"markdown\"", "column_set", "collapsible"] {
        assert!(!shown.to_string().contains(gone), "{gone}: {shown}");
    }
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.shows(&card, "已批准").await;
    let told = stage.sent().await;
    assert!(told.content.contains("230099"), "{}", told.content);
    let status = stage.until_status(|status| status["pending"] == 0).await;
    assert_eq!(status["needs"][0]["code"], 230_099);

    // From now on nothing else is tried, and nobody is told again.
    let (hook, card) = stage.ask_bash("sudo rm -r canary").await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    assert_eq!(offered(&shown), ["deny", "allow", "interrupt"]);
    assert_eq!(toast(&stage.tap(&card, "deny").await), DENIED);
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn feishus_own_trouble_with_a_card_is_not_taken_for_the_cards_fault() {
    let mut stage = Stage::new().await;
    let refuse = refuses(
        230_099,
        "Failed to create card content, ext=Server Internal Error",
    );
    stage.sim.set_fault(Armed::once(refuse)).unwrap();
    let (hook, card) = stage.ask_bash("echo hi").await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    assert!(shown.to_string().contains("\"form\""), "{shown}");
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let status = stage.until_status(|status| status["pending"] == 0).await;
    assert_eq!(status["needs"], json!([]), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn content_feishu_refuses_leaves_a_card_that_can_only_deny() {
    for code in [230_022, 230_025, 230_028] {
        let mut stage = Stage::new().await;
        stage
            .sim
            .set_fault(Armed::once(refuses(code, "refused")))
            .unwrap();
        let (hook, card) = stage.ask_bash("echo canary-content").await;
        let shown = stage.sim.message(&card).unwrap().card.unwrap();
        assert_eq!(
            offered(&shown),
            ["deny", "interrupt", "deny_with"],
            "{code}"
        );
        assert!(!shown.to_string().contains("canary-content"));
        assert_eq!(toast(&stage.tap(&card, "deny").await), DENIED);
        assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_leaf_of_an_unknown_tool_is_on_its_card() {
    let mut stage = Stage::new().await;
    let unknown = json!({"a": {"b": ["\u{202e}evil", 7]}, "c": null});
    let (hook, card) = stage.ask(&permission("s1", "mcp__x__y", &unknown)).await;
    let all = stage.face(&card);
    assert!(all.contains("⟦U+202E⟧evil") && all.contains('7'), "{all}");
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_decides_what_runs_is_red_and_never_always() {
    let mut stage = Stage::new().await;
    let project = stage.home.project();
    for (file, named) in [
        (".git/hooks/pre-commit", "涉及 git 钩子或配置"),
        (".Claude/settings.json", "涉及 Claude 或 nod 自身的设置"),
        (".github/workflows/ci.yml", "涉及构建、测试或自动化脚本"),
    ] {
        let input = json!({"file_path": project.join(file), "content": "echo hi"});
        let (hook, card) = stage.ask(&permission("s1", "Write", &input)).await;
        let shown = stage.sim.message(&card).unwrap().card.unwrap();
        assert_eq!(
            offered(&shown),
            ["deny", "allow", "interrupt", "deny_with"],
            "{file}"
        );
        assert_eq!(shown["header"]["template"], "red", "{file}");
        assert!(shown["header"].to_string().contains(named), "{file}");
        assert!(!shown.to_string().contains("primary_filled"), "{file}");
        assert_eq!(toast(&stage.tap(&card, "deny").await), DENIED);
        assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_plain_v1_is_served_and_its_rule_written_by_nod() {
    let mut stage = Stage::new().await;
    let project = stage.home.project();
    let (id, input) = (
        "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
        json!({"command": "cargo check"}),
    );
    let (mut client, ack) = V1Client::ask(&stage, id, "Bash", &input).await;
    let expected =
        json!({"success": true, "message": "Request registered", "session_id": "sess_123"});
    assert_eq!(ack, expected);
    let card = stage.sent().await.message_id;
    let clicked = stage.tap(&card, "always").await;
    assert_eq!(
        toast(&clicked),
        ("success", "已始终允许，后续相同操作将自动批准")
    );
    let decision = client.decision().await;
    let expected =
        json!({"success": true, "session_id": "sess_123", "decision": {"behavior": "allow"}});
    assert_eq!(decision, expected);
    let file = project.join(".claude/settings.local.json");
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let rule = json!(["Bash(cargo check)"]);
    assert_eq!(written["permissions"]["allow"], rule);

    let listed = stage.home.run(&["rules"]).await;
    assert!(listed.stdout.contains("Bash(cargo check)"), "{listed:?}");
    let undone = stage.home.run(&["rules", "undo", "1"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(written["permissions"]["allow"], json!([]));
    assert!(stage.home.run(&["rules"]).await.stdout.contains("(undone "));
    let audit = stage.home.audit().await;
    let last = audit.last().unwrap();
    assert_eq!(last["kind"], "rule_undone");
    assert_eq!(last["rule"], "Bash(cargo check)");
    assert_eq!(last["source"], "terminal");
    // A rule that somebody wrote again by hand is theirs.
    let by_hand = json!({"permissions": {"allow": ["Bash(cargo check)"]}}).to_string();
    std::fs::write(&file, &by_hand).unwrap();
    let again = stage.home.run(&["rules", "undo", "1"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("nothing was changed"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), by_hand);
    assert_eq!(stage.home.audit().await.len(), audit.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_always_is_taken_back_from_its_card() {
    always_and_undo(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn always_and_undo(mut stage: Stage) {
    let (hook, card) = stage.ask_bash("npm run build").await;
    stage.tap(&card, "always").await;
    let decision = hook.ended().await.decision();
    let rule = &decision["updatedPermissions"][0]["rules"][0];
    let rule = format!(
        "{}({})",
        rule["toolName"].as_str().unwrap(),
        rule["ruleContent"].as_str().unwrap()
    );
    let file = stage.home.project().join(".claude/settings.local.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let kept = json!({"permissions": {"allow": ["Read", rule], "deny": ["Bash(rm)"]}});
    std::fs::write(&file, format!("{kept:#}")).unwrap();

    stage.shows(&card, "撤销规则").await;
    let clicked = stage.tap(&card, "undo").await;
    assert_eq!(
        toast(&clicked),
        ("success", "已撤销规则，后续操作将再次询问")
    );
    let left: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let expected = json!({"permissions": {"allow": ["Read"], "deny": ["Bash(rm)"]}});
    assert_eq!(left, expected);
    stage.shows(&card, "规则已撤销").await;
    let kinds: Vec<_> = stage
        .home
        .audit()
        .await
        .iter()
        .map(|line| line["kind"].clone())
        .collect();
    assert_eq!(kinds, ["settled", "rule_undone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_taps_at_once_one_wins_and_only_its_rule_is_left() {
    let mut stage = Stage::new().await;
    let mut left = Vec::new();
    for round in 0..6 {
        let command = format!("cargo check --jobs {round}");
        let (id, input) = (format!("race-{round:027}"), json!({"command": command}));
        let (mut client, _) = V1Client::ask(&stage, &id, "Bash", &input).await;
        let card = stage.sent().await.message_id;
        let (always, deny) = tokio::join!(stage.tap(&card, "always"), stage.tap(&card, "deny"));
        let kinds = (toast(&always).0, toast(&deny).0);
        let behavior = client.decision().await["decision"]["behavior"].clone();
        match kinds {
            ("success", "warning") => {
                assert_eq!(behavior, "allow");
                left.push(json!(format!("Bash({command})")));
            }
            ("warning", "success") => assert_eq!(behavior, "deny"),
            _ => panic!("{kinds:?}"),
        }
    }
    let file = stage.home.project().join(".claude/settings.local.json");
    let text = std::fs::read(file).unwrap_or_else(|_| b"{}".to_vec());
    let written: Value = serde_json::from_slice(&text).unwrap();
    let rules = written["permissions"]["allow"].as_array();
    assert_eq!(rules.cloned().unwrap_or_default(), left);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_right_behind_the_tap_is_what_the_card_shows_in_the_end() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("npm test").await;
    stage.tap(&card, "always").await;
    hook.ended().await;
    stage.shows(&card, "撤销规则").await;
    let undone = stage.tap(&card, "undo").await;
    assert_eq!(toast(&undone).0, "success");
    // The decision's own edit comes a second later and must not win.
    let edits = |sim: &nod::for_tests::simulator::Simulator| {
        let history = sim.history(0);
        let calls = history.iter().filter(|entry| entry.kind == "rest");
        let edits = calls.filter(|entry| {
            let call = entry.detail["call"].as_str();
            call.is_some_and(|call| call.starts_with("PATCH "))
        });
        (edits.count() >= 2).then_some(())
    };
    stage.sim.wait_for(crate::hooks::LIMIT, edits).await;
    stage.shows(&card, "规则已撤销").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_deserves_a_second_look_is_never_always_allowed() {
    let mut stage = Stage::new().await;
    for command in ["git push --force origin main", "rm -rf src/legacy"] {
        let (hook, card) = stage.ask_bash(command).await;
        let shown = stage.sim.message(&card).unwrap().card.unwrap();
        let offers = offered(&shown);
        assert!(
            !offers.iter().any(|o| o == "always" || o == "session"),
            "{offers:?}"
        );
        stage.tap(&card, "deny").await;
        hook.ended().await;
    }
}
