//! What Feishu refuses of a card besides its components: the weight of the
//! request, and a layout somebody armed a fault against.

use serde_json::Value;

use crate::simulator::control::bend;
use crate::simulator::control::faults::{At, Fault};
use crate::simulator::world::card;
use crate::simulator::world::core::Core;
use crate::simulator::world::state::messages::too_long;
use crate::simulator::world::state::{Decline, decline};

/// What counts is the body as it was sent, with all its escapes.
pub(in crate::simulator) fn card_fits(body: &[u8]) -> Result<(), Decline> {
    if body.len() > card::MAX_BYTES {
        return Err(too_long());
    }
    Ok(())
}

/// Refuses a card that holds the component of an armed fault.
pub(super) fn layout(core: &Core, msg_type: &str, content: &str) -> Result<(), Decline> {
    if msg_type != "interactive" {
        return Ok(());
    }
    let card: Value = serde_json::from_str(content).unwrap_or_default();
    let refuses = |fault: &Fault| matches!(fault, Fault::LayoutRefused { component } if bend::holds(&card, component));
    match core.take_fault(None, At::Now, refuses) {
        Some(Fault::LayoutRefused { component }) => decline(
            230_099,
            format!(
                "Failed to create card content, ext=ErrCode: 200861; ErrMsg: unsupported tag; ErrPath: ROOT -> body -> elements -> [0](tag: {component}); ErrorValue: {component}; "
            ),
        ),
        _ => Ok(()),
    }
}
