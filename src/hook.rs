//! The Unix socket between Claude Code's hooks and the daemon: its messages,
//! its two ends and where it lies. `proto/hook-socket.md` is the contract.

pub mod client;
pub mod connect;
pub mod listen;
pub mod paths;
pub mod server;
pub mod wire;

#[cfg(test)]
mod test_office;
