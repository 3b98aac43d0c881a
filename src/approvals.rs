//! Requests that wait for a person: register, decide, withdraw, expire.
//! Pure: time is an argument, and every call returns what there is to do.

pub mod request;
