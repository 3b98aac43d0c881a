//! What comes in: pushes on Feishu's line, letters on the bus, calls at the door.

#[cfg(feature = "team")]
pub(crate) mod bus;
pub(crate) mod calls;
pub(crate) mod dispatch;
pub(crate) mod inbox;
pub(crate) mod whose;
