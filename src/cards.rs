//! The cards a person in Feishu sees, as JSON 2.0. Text an agent wrote stands
//! in `plain_text` nodes only, with nothing hidden in it and nothing parsed.
//! Pure: what is true is an argument, what comes out is a value.

pub mod danger;
pub mod escape;
pub mod secrets;
