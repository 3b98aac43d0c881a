//! Discovery and the Open API over HTTP, with their faults.

use serde_json::{Value, json};

use super::client::{Http, Link, call, discover, token};
use super::{LIMIT, card, once, ready, start, start_with};
use crate::simulator::{APP_ID, APP_SECRET, App, Armed, ChatText, Fault, GROUP, OWNER, Options};
use base64::Engine as _;
use std::time::Duration;

const ENDPOINT: &str = "POST /callback/ws/endpoint";
const SEND: &str = "POST /open-apis/im/v1/messages?receive_id_type=open_id";

fn may_read(app: &mut App) {
    app.scopes.push("im:message:readonly".to_owned());
}

#[tokio::test]
async fn discovery_hands_out_a_url_and_the_configuration() {
    let simulator = start().await;
    let answer = discover(&simulator).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("x-tt-logid").is_some());
    let answer = answer.json();
    assert_eq!(answer["code"], 0);
    assert_eq!(
        answer["data"]["ClientConfig"],
        json!({"ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30, "PingInterval": 120})
    );
    let url = url::Url::parse(answer["data"]["URL"].as_str().unwrap()).unwrap();
    assert_eq!(url.path(), "/ws/v2");
    let keys: Vec<String> = url.query_pairs().map(|(key, _)| key.into_owned()).collect();
    assert_eq!(
        keys,
        [
            "fpid",
            "aid",
            "device_id",
            "access_key",
            "service_id",
            "ticket"
        ]
    );
}

#[tokio::test]
async fn discovery_is_strict_about_its_body() {
    let simulator = start().await;
    let address = simulator.addresses().feishu;
    for (body, status, code) in [
        (
            json!({"app_id": APP_ID, "app_secret": APP_SECRET}),
            400,
            9499,
        ),
        (json!({"AppID": APP_ID}), 400, 9499),
        (
            json!({"AppID": APP_ID, "AppSecret": APP_SECRET, "x": 1}),
            400,
            9499,
        ),
        (json!([]), 400, 9499),
        (
            json!({"AppID": APP_ID, "AppSecret": "wrong"}),
            200,
            1_000_040_345,
        ),
        (json!({"AppID": "", "AppSecret": ""}), 200, 1_000_040_344),
    ] {
        let answer = call(address, ENDPOINT, None, Some(&body.to_string())).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{body}");
    }
    let answer = call(address, "GET /callback/ws/endpoint", None, None).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn discovery_faults_strike_in_turn() {
    let simulator = start().await;
    let faults = [
        Fault::DiscoveryError {
            code: 1_000_040_343,
            msg: "busy".to_owned(),
            with_data: false,
        },
        Fault::DiscoveryError {
            code: 1,
            msg: String::new(),
            with_data: true,
        },
        Fault::DiscoveryHttp {
            status: 502,
            body: "<html>portal</html>".to_owned(),
        },
        Fault::DiscoveryBadUrl {
            url: "http://user@127.0.0.1/#x".to_owned(),
        },
        Fault::DiscoveryConfig {
            config: Value::Null,
        },
        Fault::DiscoveryConfig {
            config: json!({"PingInterval": "soon"}),
        },
        Fault::DiscoveryQuery {
            order: vec!["service_id".to_owned(), "ticket".to_owned()],
        },
    ];
    for fault in faults {
        simulator.set_fault(once(fault)).unwrap();
    }
    let busy = discover(&simulator).await.json();
    assert_eq!(busy, json!({"code": 1_000_040_343, "msg": "busy"}));
    assert!(discover(&simulator).await.json().get("data").is_some());
    let portal = discover(&simulator).await;
    assert_eq!(
        (portal.status, portal.body.as_slice()),
        (502, &b"<html>portal</html>"[..])
    );
    let url = discover(&simulator).await.json()["data"]["URL"].clone();
    assert_eq!(url, "http://user@127.0.0.1/#x");
    let bare = discover(&simulator).await.json();
    assert_eq!(bare["data"].get("ClientConfig"), None);
    let odd = discover(&simulator).await.json();
    assert_eq!(odd["data"]["ClientConfig"], json!({"PingInterval": "soon"}));
    let url = discover(&simulator).await.json()["data"]["URL"].clone();
    let url = url.as_str().unwrap();
    assert!(url.contains("/ws/v2?service_id=33554678&ticket="), "{url}");
    Link::dial(url)
        .await
        .expect("a reordered URL still connects");
    assert_eq!(discover(&simulator).await.code(), 0);
    assert_eq!(simulator.faults(), []);
}

#[tokio::test]
async fn a_hanging_call_ends_with_the_simulator() {
    let simulator = start().await;
    simulator.set_fault(once(Fault::DiscoveryHang)).unwrap();
    simulator
        .set_fault(once(Fault::RestHang {
            path: String::new(),
        }))
        .unwrap();
    let address = simulator.addresses().feishu;
    let body = json!({"AppID": APP_ID, "AppSecret": APP_SECRET}).to_string();
    let hanging = tokio::spawn(async move { call(address, ENDPOINT, None, Some(&body)).await });
    let rest = tokio::spawn(async move { call(address, SEND, None, Some("{}")).await });
    let struck = simulator.wait_for(LIMIT, |s| s.faults().is_empty().then_some(()));
    assert!(struck.await.is_some());
    simulator.shutdown().await;
    assert_eq!(hanging.await.unwrap().status, 0);
    assert_eq!(rest.await.unwrap().status, 0);
}

#[tokio::test]
async fn a_message_can_be_sent_read_replied_to_and_recalled() {
    let simulator = start_with(|options| may_read(&mut options.apps[0])).await;
    let http = Http::signed_in(&simulator).await;
    let id = http.send_card(&card("asked")).await;
    let path = format!("/open-apis/im/v1/messages/{id}");
    let read = http.call(&format!("GET {path}"), &Value::Null).await.json();
    let item = &read["data"]["items"][0];
    assert_eq!(item["message_id"], id.as_str());
    assert_eq!(item["sender"]["id"], APP_ID);
    assert_eq!(item["body"]["content"], card("asked").to_string());
    let reply = json!({"msg_type": "text", "content": json!({"text": "hi"}).to_string(), "reply_in_thread": true});
    let reply = http
        .call(&format!("POST {path}/reply"), &reply)
        .await
        .json();
    assert_eq!(reply["data"]["parent_id"], id.as_str());
    assert!(
        reply["data"]["thread_id"]
            .as_str()
            .unwrap()
            .starts_with("omt_")
    );
    assert_eq!(
        http.patch(&id, &card("edited")).await.json(),
        json!({"code": 0, "msg": "success", "data": {}})
    );
    let deleted = http.call(&format!("DELETE {path}"), &Value::Null).await;
    assert_eq!(deleted.code(), 0);
    let gone = http.call(&format!("GET {path}"), &Value::Null).await;
    assert_eq!((gone.status, gone.code()), (400, 230_011));
    assert!(gone.json()["error"]["log_id"].is_string());
}

#[tokio::test]
async fn a_repeated_uuid_sends_once() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    let id = |answer: Value| answer["data"]["message_id"].clone();
    let first = id(http.send(&card("a"), "perm-1").await.json());
    let second = id(http.send(&card("a"), "perm-1").await.json());
    assert_eq!(first, second);
    assert_eq!(simulator.messages().len(), 1);
    simulator.advance_clock(Duration::from_hours(1));
    let third = id(http.send(&card("a"), "perm-1").await.json());
    assert_ne!(first, third);
}

#[tokio::test]
async fn bad_requests_are_refused_with_feishus_codes() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    let text = json!({"text": "x"}).to_string();
    for (path, body, code) in [
        (
            SEND,
            json!({"msg_type": "text", "content": text}),
            99_992_402,
        ),
        (
            SEND,
            json!({"receive_id": OWNER, "msg_type": "text", "content": text, "extra": 1}),
            99_992_402,
        ),
        (
            SEND,
            json!({"receive_id": OWNER, "msg_type": "text", "content": "plain"}),
            230_001,
        ),
        (
            SEND,
            json!({"receive_id": OWNER, "msg_type": "nothing", "content": text}),
            230_001,
        ),
        (
            SEND,
            json!({"receive_id": "ou_x", "msg_type": "text", "content": text}),
            99_992_351,
        ),
        (SEND, json!(7), 9499),
        (
            "POST /open-apis/im/v1/messages",
            json!({"receive_id": OWNER, "msg_type": "text", "content": text}),
            99_992_402,
        ),
        (
            "POST /open-apis/im/v1/messages/om_x/reply",
            json!({"msg_type": "text", "content": text}),
            230_110,
        ),
        (
            "PATCH /open-apis/im/v1/messages/c-token",
            json!({"content": "{}"}),
            99_992_354,
        ),
        ("GET /open-apis/im/v9/nothing", Value::Null, 404),
    ] {
        assert_eq!(http.call(path, &body).await.code(), code, "{path} {body}");
    }
    for (token, code) in [
        (None, 99_991_661),
        (Some("x"), 99_991_671),
        (Some("t-x"), 99_991_663),
    ] {
        let answer = call(http.address, SEND, token, Some("{}")).await;
        assert_eq!((answer.status, answer.code()), (400, code));
    }
}

#[tokio::test]
async fn a_token_lives_as_long_as_it_says() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    assert_eq!(
        token(&simulator).await["tenant_access_token"],
        http.token.as_str()
    );
    simulator.advance_clock(Duration::from_mins(91));
    assert_ne!(
        token(&simulator).await["tenant_access_token"],
        http.token.as_str()
    );
    let info = "GET /open-apis/bot/v3/info";
    assert_eq!(http.call(info, &Value::Null).await.code(), 0);
    simulator.advance_clock(Duration::from_mins(30));
    assert_eq!(http.call(info, &Value::Null).await.code(), 99_991_663);
}

#[tokio::test]
async fn chats_and_the_gateway_have_their_limits() {
    let simulator = start_with(|options: &mut Options| options.api_per_second = Some(8)).await;
    let http = Http::signed_in(&simulator).await;
    let mut codes = Vec::new();
    for n in 0..9 {
        let answer = http.send(&card("a"), &format!("u{n}")).await;
        if answer.status == 429 {
            assert_eq!(answer.header("x-ogw-ratelimit-reset").as_deref(), Some("1"));
        }
        codes.push(answer.code());
    }
    assert_eq!(
        codes,
        [0, 0, 0, 0, 0, 230_020, 230_020, 230_020, 99_991_400]
    );
}

#[tokio::test]
async fn rest_faults_strike_their_calls() {
    let simulator = start().await;
    let (http, _link, id) = ready(&simulator).await;
    let rest_error = |path: &str, code, http| Fault::RestError {
        path: path.to_owned(),
        code,
        http,
        msg: "no".to_owned(),
    };
    simulator
        .set_fault(once(rest_error("PATCH ", 230_022, 400)))
        .unwrap();
    simulator
        .set_fault(once(rest_error("/messages", 230_028, 400)))
        .unwrap();
    assert_eq!(http.send(&card("b"), "b").await.code(), 230_028);
    assert_eq!(http.patch(&id, &card("b")).await.code(), 230_022);
    assert_eq!(http.patch(&id, &card("b")).await.code(), 0);
    simulator
        .set_fault(once(Fault::RateLimit {
            path: String::new(),
            reset: 3,
        }))
        .unwrap();
    let limited = http.patch(&id, &card("c")).await;
    assert_eq!((limited.status, limited.code()), (429, 99_991_400));
    assert_eq!(
        limited.header("x-ogw-ratelimit-reset").as_deref(),
        Some("3")
    );
    simulator
        .set_fault(once(Fault::RestHttp {
            path: String::new(),
            status: 503,
            body: String::new(),
        }))
        .unwrap();
    assert_eq!(http.patch(&id, &card("c")).await.status, 503);
    simulator
        .set_fault(once(Fault::SlowRest {
            ms: 1,
            path: "PATCH".to_owned(),
        }))
        .unwrap();
    assert_eq!(http.patch(&id, &card("c")).await.code(), 0);
    assert_eq!(simulator.faults(), []);
    simulator.set_fault(once(Fault::ExpiredToken)).unwrap();
    assert_eq!(http.patch(&id, &card("d")).await.code(), 99_991_663);
    assert_eq!(
        http.patch(&id, &card("d")).await.code(),
        99_991_663,
        "the token is really void"
    );
    let fresh = Http::signed_in(&simulator).await;
    assert_eq!(fresh.patch(&id, &card("d")).await.code(), 0);
}

#[tokio::test]
async fn a_message_can_be_created_and_its_answer_lost() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    simulator
        .set_fault(once(Fault::SendCreatedButReplyLost))
        .unwrap();
    let lost = http.send(&card("a"), "perm-1").await;
    assert_eq!(lost.json(), Value::Null);
    assert_eq!(simulator.messages().len(), 1);
    let again = http.send(&card("a"), "perm-1").await.json();
    assert_eq!(
        again["data"]["message_id"],
        simulator.messages()[0].message_id.as_str()
    );
    assert_eq!(simulator.messages().len(), 1);
}

#[tokio::test]
async fn the_self_checks_say_what_the_console_says() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    let get = |path: &'static str| http.call(path, &Value::Null);
    let bot = get("GET /open-apis/bot/v3/info").await.json();
    assert_eq!(bot["bot"]["activate_status"], 2);
    let online = "GET /open-apis/event/v1/connection";
    assert_eq!(get(online).await.json()["data"]["online_instance_cnt"], 0);
    let _link = Link::connect(&simulator).await;
    assert_eq!(get(online).await.json()["data"]["online_instance_cnt"], 1);
    let path = "GET /open-apis/application/v6/applications/me?lang=zh_cn";
    let app = get(path).await.json()["data"]["app"].clone();
    assert_eq!(app["callback_info"]["callback_type"], "websocket");
    assert_eq!(
        app["callback_info"]["subscribed_callbacks"],
        json!(["card.action.trigger"])
    );
    assert_eq!(app["event"], Value::Null, "most apps are not told");
    assert_eq!(app["owner"]["owner_id"], OWNER);
    let versions =
        get("GET /open-apis/application/v6/applications/cli_a1b2c3d4e5f60718/app_versions").await;
    assert_eq!(versions.json()["data"]["items"][0]["status"], 1);
    simulator.edit_app(APP_ID, |app| {
        app.scopes.clear();
        app.published = false;
    });
    assert_eq!(get(path).await.code(), 99_991_672);
    let bot = get("GET /open-apis/bot/v3/info").await.json();
    assert_eq!(bot["bot"]["activate_status"], 0);
}

#[tokio::test]
async fn an_unpublished_app_and_a_foreign_group_refuse_messages() {
    let simulator = start_with(|options: &mut Options| options.groups[0].has_bot = false).await;
    let http = Http::signed_in(&simulator).await;
    let body = json!({"receive_id": GROUP, "msg_type": "text", "content": json!({"text": "x"}).to_string()});
    let path = "POST /open-apis/im/v1/messages?receive_id_type=chat_id";
    assert_eq!(http.call(path, &body).await.code(), 230_002);
    simulator.edit_app(APP_ID, |app: &mut App| app.published = false);
    assert_eq!(http.send(&card("a"), "u").await.code(), 230_006);
}

#[tokio::test]
async fn pictures_and_reactions_belong_to_their_message() {
    let simulator = start_with(|options| may_read(&mut options.apps[0])).await;
    let http = Http::signed_in(&simulator).await;
    let image = ChatText {
        image: Some(base64::engine::general_purpose::STANDARD.encode(b"\x89PNG")),
        ..ChatText::default()
    };
    let pushed = simulator.push_text(&image).await.unwrap();
    let id = pushed.message_id.unwrap();
    let content: Value = serde_json::from_str(&simulator.message(&id).unwrap().content).unwrap();
    let key = content["image_key"].as_str().unwrap();
    let path = format!("GET /open-apis/im/v1/messages/{id}/resources/{key}");
    let got = http.call(&format!("{path}?type=image"), &Value::Null).await;
    assert_eq!((got.status, got.body.as_slice()), (200, &b"\x89PNG"[..]));
    assert_eq!(
        http.call(&format!("{path}?type=file"), &Value::Null)
            .await
            .code(),
        234_003
    );
    let reactions = format!("/open-apis/im/v1/messages/{id}/reactions");
    let emoji = json!({"reaction_type": {"emoji_type": "OnIt"}});
    let added = http.call(&format!("POST {reactions}"), &emoji).await.json();
    let reaction = added["data"]["reaction_id"].as_str().unwrap();
    assert_eq!(simulator.message(&id).unwrap().reactions.len(), 1);
    let removed = http
        .call(&format!("DELETE {reactions}/{reaction}"), &Value::Null)
        .await;
    assert_eq!(removed.code(), 0);
    let bad = json!({"reaction_type": {"emoji_type": "no such!"}});
    assert_eq!(
        http.call(&format!("POST {reactions}"), &bad).await.code(),
        231_001
    );
}

#[tokio::test]
async fn a_fault_can_last_until_cleared() {
    let simulator = start().await;
    let (http, _link, id) = ready(&simulator).await;
    let fault = Fault::RestError {
        path: String::new(),
        code: 230_025,
        http: 400,
        msg: String::new(),
    };
    simulator.set_fault(Armed::always(fault)).unwrap();
    for _ in 0..3 {
        assert_eq!(http.patch(&id, &card("b")).await.code(), 230_025);
    }
    simulator.clear_faults();
    assert_eq!(http.patch(&id, &card("b")).await.code(), 0);
}
