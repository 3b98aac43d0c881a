use crate::approvals::request::Ending;
use crate::cards::sample::bash;
use crate::daemon::bench::WEBHOOK;
use crate::daemon::cards::bench::{Bench, config};
use crate::daemon::cards::courier::send_now;
use crate::feishu::fake::{Fake, Reply};
use serde_json::json;

/// A machine whose custom bot is this server.
async fn by(bot: &Fake) -> Bench {
    let url = bot.base("127.0.0.1").join("open-apis/bot/v2/hook/abc");
    let url = url.unwrap().to_string();
    let mut all = WEBHOOK;
    all[1].1 = &url;
    Bench::with(config(&all)).await
}

#[tokio::test]
async fn the_buttons_of_a_custom_bots_card_are_links_that_this_machine_knows_again() {
    let bot = Fake::start(|_, _| Reply::json(200, &json!({"code": 0}))).await;
    let bench = by(&bot).await;
    let (_waiting, request) = bench.asks(bash("npm test"));
    send_now(&bench.cards, &request);
    let gone = || bench.cards.courier.lock().post(&request.id).is_none();
    bench.until(|| bot.calls().len() == 1 && gone()).await;
    let said = bot.calls()[0].json();
    assert_eq!(said["msg_type"], "interactive");
    let card = said["card"].to_string();
    assert!(card.contains("npm test"));
    let links = bench.cards.courier.links().unwrap();
    for action in [crate::cards::Action::Allow, crate::cards::Action::Deny] {
        let link = links.link(&request.id, action);
        assert!(card.contains(&link), "{link}");
    }
    assert!(bench.cards.desk.find(&request.id).is_some(), "it waits");
}

#[tokio::test]
async fn the_terminal_decides_what_a_custom_bot_refuses() {
    let refused = json!({"code": 19_024, "msg": "Key Words Not Found"});
    let bot = Fake::start(move |_, _| Reply::json(200, &refused)).await;
    let bench = by(&bot).await;
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    let ended = bench.ended().await;
    let Ending::Undeliverable { why: Some(why) } = &ended.ending else {
        panic!("{:?}", ended.ending);
    };
    assert!(why.contains("19024"), "{why}");
    assert!(bench.cards.courier.lock().post(&request.id).is_none());
}
