//! See the oracle: this only hands it what libFuzzer makes up.
#![no_main]

#[path = "../oracles/asked.rs"]
mod asked;
#[path = "../oracles/matcher.rs"]
mod matcher;
#[path = "../oracles/rule.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::check(bytes));
