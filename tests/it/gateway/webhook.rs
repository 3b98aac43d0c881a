//! The mode without an app: a custom bot's card, its pages, and every way a
//! press can end.

use std::net::SocketAddr;

use nod::for_tests::simulator::{Simulator, WEBHOOK_SECRET};
use serde_json::{Value, json};

use super::rig::{Hook, LIMIT, Machine, feishu, free, http};
use crate::codex::fake::Codex;

fn machine(feishu: &Simulator, at: SocketAddr, timeout: &str) -> Machine {
    Machine::start(
        at,
        &[
            ("FEISHU_SEND_MODE", "webhook"),
            ("FEISHU_WEBHOOK_URL", &feishu.webhook_url()),
            ("FEISHU_WEBHOOK_SECRET", WEBHOOK_SECRET),
            ("PERMISSION_REQUEST_TIMEOUT", timeout),
        ],
    )
}

/// The links of the card for this request, by action.
async fn links(feishu: &Simulator, request: &str) -> Vec<String> {
    let needle = format!("id={request}&");
    let said = feishu.wait_for(LIMIT, |feishu| {
        let said = feishu.history(0);
        let said = said.iter().filter(|entry| entry.kind == "webhook");
        said.map(|entry| addresses(&entry.detail["said"]))
            .find(|all| all.iter().any(|url| url.contains(&needle)))
    });
    said.await.expect("a card from the custom bot")
}

fn addresses(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => match map.get("default_url") {
            Some(url) => vec![url.as_str().unwrap().to_owned()],
            None => map.values().flat_map(addresses).collect(),
        },
        Value::Array(list) => list.iter().flat_map(addresses).collect(),
        _ => Vec::new(),
    }
}

fn path(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap();
    &rest[rest.find('/').unwrap()..]
}

/// The form of a page as its button would post it.
fn form(page: &str) -> String {
    page.split("<input type=\"hidden\" name=\"")
        .skip(1)
        .map(|input| {
            let (name, rest) = input.split_once("\" value=\"").unwrap();
            format!("{name}={}", rest.split('"').next().unwrap())
        })
        .collect::<Vec<_>>()
        .join("&")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_decides_once_and_opening_it_decides_nothing() {
    let feishu = feishu().await;
    let at = free([127, 0, 0, 1]);
    let machine = machine(&feishu, at, "300");
    let hook = Hook::ask(&machine, "req-allow", "echo '<b>hi</b>'").await;
    let urls = links(&feishu, "req-allow").await;
    let names: Vec<_> = urls
        .iter()
        .map(|url| path(url).split('?').next().unwrap())
        .collect();
    assert_eq!(names, ["/allow", "/deny", "/always", "/interrupt"]);
    // A crawler or a curious colleague opens everything, again and again.
    let mut pages = Vec::new();
    for url in urls.iter().chain(&urls) {
        let (status, _, page) = http(at, &format!("GET {}", path(url)), "").await;
        assert_eq!(status, 200);
        assert!(
            page.contains("&lt;b&gt;hi&lt;/b&gt;") && page.contains("<form"),
            "{page}"
        );
        pages.push(page);
    }
    let forged = path(&urls[0]).replace("t=", "t=A");
    let (status, _, page) = http(at, &format!("GET {forged}"), "").await;
    assert!(
        status == 404 && page.contains("请求不存在或已过期"),
        "{page}"
    );
    // A ticket of the page to deny does not allow.
    let crossed = form(&pages[2]).replace(
        path(&urls[2]).split("t=").nth(1).unwrap(),
        path(&urls[0]).split("t=").nth(1).unwrap(),
    );
    let (_, _, page) = http(at, "POST /allow", &crossed).await;
    assert!(page.contains("点击送达过晚"), "{page}");
    let (_, _, page) = http(at, "POST /allow", &form(&pages[0])).await;
    assert!(
        page.contains("已批准运行") && page.contains("Allowed once"),
        "{page}"
    );
    let decision = hook.decision().await.expect("a decision").to_string();
    assert!(decision.contains(r#""allow""#), "{decision}");
    // Back and again, a page opened before, and the link once more.
    for page in [&pages[0], &pages[4], &pages[5]] {
        let action = if page.contains("action=\"/allow\"") {
            "/allow"
        } else {
            "/deny"
        };
        let (_, _, page) = http(at, &format!("POST {action}"), &form(page)).await;
        assert!(page.contains("该请求已被处理，请勿重复操作"), "{page}");
    }
    let (_, _, page) = http(at, &format!("GET {}", path(&urls[3])), "").await;
    assert!(
        page.contains("该请求已被处理") && !page.contains("<form"),
        "{page}"
    );
    let decisions = machine.decisions();
    assert_eq!(decisions.get("req-allow"), Some(&1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_leaves_the_wider_rule_that_its_card_offered() {
    let feishu = feishu().await;
    let at = free([127, 0, 0, 1]);
    let machine = machine(&feishu, at, "300");
    let hook = Hook::ask(&machine, "req-wider", "git count-objects -v").await;
    let urls = links(&feishu, "req-wider").await;
    let wider = urls.iter().find(|url| path(url).starts_with("/wider?"));
    let wider = path(wider.expect("the card offers it"));
    let (status, _, page) = http(at, &format!("GET {wider}"), "").await;
    assert_eq!(status, 200, "{page}");
    let (_, _, said) = http(at, "POST /wider", &form(&page)).await;
    assert!(said.contains("已批准"), "{said}");
    let decision = hook.decision().await.expect("a decision").to_string();
    assert!(decision.contains(r#""allow""#), "{decision}");
    let rules = machine.dir.path().join(".claude/settings.local.json");
    let rules = std::fs::read_to_string(rules).unwrap();
    assert!(rules.contains("Bash(git count-objects *)"), "{rules}");
    let (_, _, again) = http(at, "POST /wider", &form(&page)).await;
    assert!(again.contains("该请求已被处理"), "{again}");
    assert_eq!(machine.decisions()["req-wider"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_ending_has_its_page() {
    let feishu = feishu().await;
    let at = free([127, 0, 0, 1]);
    let machine = machine(&feishu, at, "2");
    let denied = Hook::ask(&machine, "req-deny", "rm x").await;
    let urls = links(&feishu, "req-deny").await;
    let (_, _, page) = http(at, &format!("GET {}", path(&urls[1])), "").await;
    let filled = format!("{}&reason=not+on+Friday", form(&page));
    let (_, _, page) = http(at, "POST /deny", &filled).await;
    assert!(page.contains("已拒绝运行"), "{page}");
    let decision = denied.decision().await.expect("a decision").to_string();
    assert!(decision.contains("not on Friday"), "{decision}");

    let gone = Hook::ask(&machine, "req-gone", "ls").await;
    let urls = links(&feishu, "req-gone").await;
    let (_, _, page) = http(at, &format!("GET {}", path(&urls[0])), "").await;
    drop(gone);
    // The page was opened while the hook was there; its end is noticed soon.
    let outcome = super::rig::within(async {
        loop {
            let (_, _, now) = http(at, &format!("GET {}", path(&urls[0])), "").await;
            if !now.contains("<form") {
                break http(at, "POST /allow", &form(&page)).await.2;
            }
        }
    });
    let page = outcome.await;
    assert!(page.contains("请求已失效，请返回终端查看状态"), "{page}");

    let late = Hook::ask(&machine, "req-late", "ls").await;
    let urls = links(&feishu, "req-late").await;
    let (_, _, page) = http(at, &format!("GET {}", path(&urls[0])), "").await;
    late.decision().await;
    let (_, _, page) = http(at, "POST /allow", &form(&page)).await;
    assert!(page.contains("超时"), "{page}");
    let (_, _, state) = http(at, "GET /status", "").await;
    assert_eq!(state, r#"{"status":"ok","service":"nod"}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_others_can_reach_stays_shut_without_a_secret() {
    let feishu = feishu().await;
    let at = SocketAddr::from(([0, 0, 0, 0], free([127, 0, 0, 1]).port()));
    let mut machine = machine(&feishu, at, "2");
    let code = machine.ended();
    assert_eq!(code, Some(78));
    assert!(
        machine.log().contains("`CALLBACK_SECRET`"),
        "{}",
        machine.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_without_a_daemon_says_nothing_and_the_group_hears_of_it() {
    let feishu = feishu().await;
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join("own.env");
    let text = format!(
        "FEISHU_SEND_MODE=webhook\nFEISHU_WEBHOOK_URL={}\nFEISHU_WEBHOOK_SECRET={WEBHOOK_SECRET}\n\
         CALLBACK_LISTEN=127.0.0.1:8080\nCALLBACK_SERVER_URL=http://127.0.0.1:8080\n\
         NOD_STATE_DIR={}\n",
        feishu.webhook_url(),
        home.path().join("state").display(),
    );
    std::fs::write(&own, text).unwrap();
    // A repository must not choose who hears of it.
    let repository = home.path().join("repository");
    std::fs::create_dir(&repository).unwrap();
    let elsewhere = "FEISHU_WEBHOOK_URL=http://127.0.0.1:1/open-apis/bot/v2/hook/x\n";
    std::fs::write(repository.join(".env"), elsewhere).unwrap();
    let input = serde_json::json!({
        "hook_event_name": "PermissionRequest",
        "session_id": "s-1",
        "cwd": repository,
        "tool_name": "Bash",
        "tool_input": {"command": "make announced"},
    });
    let mut hook = std::process::Command::new(env!("CARGO_BIN_EXE_nod"))
        .args(["hook", "--config"])
        .arg(&own)
        .current_dir(&repository)
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let done = tokio::task::spawn_blocking(move || hook.wait_with_output());
    let done = super::rig::within(done).await.unwrap().unwrap();
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    let said = feishu.wait_for(LIMIT, |feishu| {
        let said = feishu.history(0);
        let said = said.iter().find(|entry| entry.kind == "webhook")?;
        Some(said.detail["said"].to_string())
    });
    let said = said.await.expect("a card from the custom bot");
    assert!(
        said.contains("make announced") && said.contains("请在终端处理"),
        "{said}"
    );
    assert!(!said.contains("open_url"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_codexs_is_named_and_left_to_the_terminal() {
    let feishu = feishu().await;
    let machine = machine(&feishu, free([127, 0, 0, 1]), "300");
    let home = machine.dir.path();
    let codex = Codex::start(&home.join(".codex"), home);
    codex.followed().await;
    let options = json!([{"label": "Half up", "description": ""}]);
    let question = json!({"id": "q", "header": "Cents", "question": "How to round?",
        "isOther": true, "isSecret": false, "options": options});
    let params = json!({"questions": [question], "isBlocking": true});
    codex.asks("item/tool/requestUserInput", params);
    let said = feishu.wait_for(LIMIT, |feishu| {
        let said = feishu.history(0);
        let mut said = said.iter().filter(|entry| entry.kind == "webhook");
        let said = said.find(|entry| entry.detail["said"].to_string().contains("How to round?"));
        said.map(|entry| entry.detail["said"].clone())
    });
    let said = said
        .await
        .expect("a notice from the custom bot")
        .to_string();
    assert!(said.contains("请在终端回答"), "{said}");
    assert!(codex.answers().is_empty(), "the terminal answers");
}
