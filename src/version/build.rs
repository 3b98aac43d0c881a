//! The build script: tells the program which commit it was built from. A
//! debug build stays `debug`, or every commit would build the crate anew.

use std::env;
use std::fs;
use std::process::Command;

fn main() {
    let commit = if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        packaged()
            .or_else(checked_out)
            .unwrap_or_else(|| "unknown".to_owned())
    } else {
        "debug".to_owned()
    };
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=NOD_COMMIT={commit}");
    println!("cargo::rustc-env=NOD_TARGET={target}");
}

/// What `cargo package` wrote beside the sources.
fn packaged() -> Option<String> {
    let told = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = told.split_once("\"sha1\": \"")?;
    after.get(..10).map(str::to_owned)
}

/// Only a repository of nod's own counts: the sources may lie inside another.
fn checked_out() -> Option<String> {
    fs::exists(".git").ok()?.then_some(())?;
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if dirty {
        format!("{commit}.dirty")
    } else {
        commit
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
