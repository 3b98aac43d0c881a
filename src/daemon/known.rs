//! What the daemon knows and writes down. Knows no card, no terminal and nobody who
//! asks.

pub(crate) mod answered;
pub(crate) mod buttons;
pub(crate) mod figures;
pub(crate) mod freshness;
pub(crate) mod gathered;
pub(crate) mod inbox;
pub(crate) mod journal;
pub(crate) mod links;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod offers;
pub(crate) mod people;
pub(crate) mod proof;
pub(crate) mod reach;
pub(crate) mod refused;
pub(crate) mod turns;
