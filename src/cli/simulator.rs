//! `nod simulator`: the local Feishu alone, for anybody's tests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::wording::Words;
use super::{CommandResult, Failure, output};
use crate::config::Sources;
use crate::simulator::{self, APP_ID, APP_SECRET, App, OWNER, Options};
use crate::text::system;

#[derive(clap::Args)]
pub(super) struct SimulatorArguments {
    /// Where discovery and the Open API listen; 0 picks a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where the control interface listens; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    control_port: u16,
    /// Let every user of this machine tap and write, without the token
    #[arg(long)]
    open: bool,
}

/// What nobody can guess.
pub(super) fn token() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>())
}

pub(super) fn run(arguments: &SimulatorArguments) -> CommandResult {
    let words = Words(Sources::for_person().lang());
    let token = (!arguments.open).then(token);
    let options = Options {
        apps: vec![App::scanned()],
        port: arguments.port,
        control_port: arguments.control_port,
        control_token: token.clone(),
        ..Options::default()
    };
    let runtime = super::runtime(2)?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move {
            super::stop_signal().await;
            stopping.cancel();
        });
        let ready = |at: simulator::Addresses| {
            let page = simulator::page_address(at.control, "", token.as_deref());
            output::line(
                &json!({
                    "feishu": format!("http://{}", at.feishu),
                    "socket": format!("ws://{}", at.socket),
                    "control": format!("http://{}", at.control),
                    "token": token,
                    "app_id": APP_ID,
                    "app_secret": APP_SECRET,
                    "owner": OWNER,
                })
                .to_string(),
            );
            let feishu = format!("http://{}", at.feishu);
            output::hint(words, &words.simulator_daemon(&format!(
                "FEISHU_DOMAIN={feishu} FEISHU_APP_ID={APP_ID} FEISHU_APP_SECRET={APP_SECRET} FEISHU_OWNER_ID={OWNER} nod daemon"
            )));
            output::hint(words, &words.simulator_page(&page));
        };
        simulator::run(options, stop, ready)
            .await
            .map_err(|why| Failure::told(system::cannot_listen(&why)))
    })
}
