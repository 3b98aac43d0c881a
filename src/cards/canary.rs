//! No secret of a command stands on any card: a list of commands with a canary
//! in the place of a password or a token, and every state a card can be in.

use serde_json::{Value, json};
use std::sync::Arc;

use super::ending::{Confirmation, ended, kept_title, running, without_input};
use super::gathered::{GatheredCard, Tally, gathered};
use super::linked;
use super::locked::locked;
use super::permission::minimal;
use super::plainest;
use super::sample::{endings, request, values, waiting_again};
use super::sure::once_more;
use super::{Action, gist, whole};
use crate::approvals::request::Request;
use crate::rules::offer;
use crate::text::Lang;

/// Of letters and digits, and long enough for a token.
const CANARY: &str = "Zq7Canary9Vx2Lm4Kp8Rt6Wn";

/// One command a line, with `{}` for the secret.
fn commands() -> Vec<String> {
    let list = include_str!("../../tests/data/commands-with-secrets.txt");
    let commands: Vec<_> = list
        .lines()
        .map(|line| line.replace("{}", CANARY))
        .collect();
    assert!(commands.len() >= 60);
    commands
}

/// The card in every layout, and the cards it leads to.
fn layouts(card: Value, lang: Lang) -> Vec<Value> {
    let plain = plainest::plainest(&card, &Value::clone, lang);
    let mut all = vec![plain, json!(plainest::text(&card, lang))];
    for action in Action::ALL {
        let value = values(action);
        all.extend(once_more(&card, &value, value.clone(), lang));
    }
    all.push(locked(card.clone(), lang));
    all.push(card);
    all
}

/// What stands on the card is the same in every ending, so for most commands a
/// few of them are enough.
fn states(request: &Request, few: bool, lang: Lang) -> Vec<Value> {
    let mut all = layouts(waiting_again(request, 2, lang), lang);
    all.push(minimal(request, &values, lang));
    let link = |action: Action| format!("https://x.example/{}", action.as_str());
    all.push(linked::waiting(request, &offer(request), 1, &link, lang));
    all.push(linked::announced(request, lang));
    let shown = linked::whole(request, &offer(request), lang);
    all.extend(shown.into_iter().map(|part| json!(part.text)));
    let text = whole::text(request, lang).unwrap();
    all.extend(whole::cards(request, &text, 3, lang).unwrap());
    all.push(json!(text));
    all.push(gathered(
        &GatheredCard {
            requests: &[Arc::new(request.clone())],
            own_cards: 10,
            place: "shop",
            tally: Tally::default(),
            open: &|_| values(Action::Allow),
            deny_all: &values(Action::Deny),
        },
        lang,
    ));
    let at = request.asked_at + 61_000;
    all.extend(layouts(
        running(request, at, Some(&values(Action::Deny)), lang),
        lang,
    ));
    let title = kept_title(request, lang);
    let undo = values(Action::Undo);
    let endings = endings().into_iter();
    for ending in endings.step_by(if few { 11 } else { 1 }) {
        for delivery in [Confirmation::Confirmed, Confirmation::Unconfirmed] {
            all.push(ended(request, &ending, at, delivery, Some(&undo), lang));
            let kept = without_input(request, &title, &ending, at, delivery, Some(&undo), lang);
            all.push(kept);
        }
    }
    all.push(json!(gist::gist(request)));
    all
}

#[test]
fn no_card_in_any_state_holds_the_secret_of_a_command() {
    let mut shown = Vec::new();
    for (n, command) in commands().into_iter().enumerate() {
        // Behind a remark, above the fold and below it; and as an MCP server's.
        let long = format!(
            "# look\n{}\n{command}\n",
            "echo one line of many\n".repeat(40)
        );
        let inputs = [
            ("Bash", json!({"command": command, "description": command})),
            ("Bash", json!({"command": format!("sudo {command}")})),
            (
                "Bash",
                json!({"command": format!("cd /tmp && {command} && rm -rf /srv")}),
            ),
            ("Bash", json!({"command": long})),
            ("mcp__box__run", json!({"command": command})),
        ];
        for (tool, input) in inputs {
            let request = request(tool, input);
            let leaks = [Lang::Zh, Lang::En]
                .into_iter()
                .flat_map(|lang| states(&request, n % 10 != 0, lang))
                .find(|card| card.to_string().contains(CANARY));
            if let Some(card) = leaks {
                shown.push(format!("{tool} {}\n    {card}", request.input));
            }
        }
    }
    assert!(
        shown.is_empty(),
        "{} leak:\n{}",
        shown.len(),
        shown.join("\n")
    );
}
