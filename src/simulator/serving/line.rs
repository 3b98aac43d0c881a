//! The live connections: who is on them and the orders sent down to them.

use std::collections::BTreeMap;

use prost::bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::simulator::control::faults::Fault;
use crate::simulator::world::mint::Mint;

/// What a connection's task is told to do.
#[derive(Debug)]
pub(in crate::simulator) enum LineOrder {
    /// Writes these binary messages; then a fault may strike.
    Write(Vec<Bytes>, Option<Fault>),
    Cut(Fault),
    Inject(Fault),
}

/// One live connection, as `connections` shows it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Connection {
    pub id: u64,
    pub app_id: String,
    pub device_id: String,
    /// Milliseconds since 1970.
    pub since: u64,
    pub app_pings: u64,
    pub websocket_pings: u64,
    pub pushed: u64,
    pub replies: u64,
    /// Half-open by a fault.
    pub frozen: bool,
}

#[derive(Debug)]
struct OpenLine {
    app: usize,
    shown: Connection,
    orders: mpsc::Sender<LineOrder>,
}

#[derive(Debug, Default)]
pub(in crate::simulator) struct OpenLines {
    open: BTreeMap<u64, OpenLine>,
    last: u64,
    chosen: u64,
}

impl OpenLines {
    pub(super) fn add(
        &mut self,
        app: usize,
        app_id: &str,
        device_id: &str,
        since: u64,
        orders: mpsc::Sender<LineOrder>,
    ) -> u64 {
        self.last += 1;
        let id = self.last;
        let shown = Connection {
            id,
            app_id: app_id.to_owned(),
            device_id: device_id.to_owned(),
            since,
            ..Connection::default()
        };
        self.open.insert(id, OpenLine { app, shown, orders });
        id
    }

    pub(in crate::simulator) fn remove(&mut self, id: u64) {
        self.open.remove(&id);
    }

    pub(in crate::simulator) fn update(&mut self, id: u64, change: impl FnOnce(&mut Connection)) {
        if let Some(line) = self.open.get_mut(&id) {
            change(&mut line.shown);
        }
    }

    pub(in crate::simulator) fn count(&self, app: usize) -> usize {
        self.open.values().filter(|line| line.app == app).count()
    }

    /// Whether the app of this connection has opened another one since.
    pub(super) fn has_newer(&self, id: u64) -> bool {
        let app = self.app_of(id);
        let mut newer = self.open.range(id + 1..);
        newer.any(|(_, line)| Some(line.app) == app)
    }

    pub(in crate::simulator) fn all(&self) -> Vec<Connection> {
        self.open.values().map(|line| line.shown.clone()).collect()
    }

    pub(super) fn app_of(&self, id: u64) -> Option<usize> {
        self.open.get(&id).map(|line| line.app)
    }

    /// One connection of the app: by chance, as Feishu chooses, or each in turn.
    pub(in crate::simulator) fn choose(
        &mut self,
        app: usize,
        in_turn: bool,
        mint: &mut Mint,
    ) -> Option<(u64, mpsc::Sender<LineOrder>)> {
        let own = self.open.iter().filter(|(_, line)| line.app == app);
        let own: Vec<u64> = own.map(|(id, _)| *id).collect();
        let id = match own.len() {
            0 | 1 => own.first(),
            _ if in_turn => own.iter().find(|id| **id > self.chosen).or(own.first()),
            count => own.get(mint.below(count)),
        };
        self.chosen = *id?;
        let line = self.open.get_mut(&self.chosen)?;
        line.shown.pushed += 1;
        Some((self.chosen, line.orders.clone()))
    }

    /// Sends an order to one connection or all; how many took it.
    pub(in crate::simulator) fn order_all(
        &self,
        only: Option<u64>,
        order: impl Fn() -> LineOrder,
    ) -> usize {
        self.open
            .iter()
            .filter(|(id, _)| only.is_none() || only == Some(**id))
            .filter(|(_, line)| line.orders.try_send(order()).is_ok())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_where_they_are_told_to() {
        let (mut lines, mut mint) = (OpenLines::default(), Mint::new(1));
        let (orders, _taken) = mpsc::channel(1);
        let add = |lines: &mut OpenLines, app| lines.add(app, "a", "d", 0, orders.clone());
        let [first, second, other] = [0, 0, 1].map(|app| add(&mut lines, app));
        let mut chosen = |lines: &mut OpenLines, app| Some(lines.choose(app, true, &mut mint)?.0);
        for id in [first, second, first] {
            assert_eq!(chosen(&mut lines, 0), Some(id));
        }
        assert_eq!(chosen(&mut lines, 1), Some(other));
        lines.remove(first);
        assert_eq!(chosen(&mut lines, 0), Some(second));
        lines.remove(second);
        assert_eq!(chosen(&mut lines, 0), None);
    }
}
