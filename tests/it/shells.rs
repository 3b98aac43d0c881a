//! What a shell offers after `nod`, and the manual page: nothing that exists
//! is missing, and a real bash takes it.

use tokio::process::Command;

use super::support::{Home, within};

async fn printed(arguments: &[&str]) -> String {
    let (code, out, err) = Home::new().run(arguments, &[]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

/// The commands `nod --help` shows.
async fn commands() -> Vec<String> {
    let help = printed(&["--help"]).await;
    // Groups of commands, each under a heading of its own, up to the flags.
    let listed = help.lines().skip_while(|line| *line != "To begin:");
    let listed = listed.take_while(|line| *line != "Options:");
    let words = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words: Vec<String> = words
        .filter_map(|line| line.trim().split("  ").next())
        .flat_map(|names| names.split(", "))
        .map(str::to_owned)
        .collect();
    assert!(words.len() > 10, "{help}");
    words
}

#[tokio::test]
async fn bash_completes_commands_subcommands_and_flags() {
    let script = printed(&["completions", "bash"]).await;
    let ask = async |line: &[&str]| {
        let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _nod nod {} {}; echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            line.len() - 1,
            words[line.len() - 1],
            words[line.len() - 2]
        );
        let run = Command::new("bash").args(["-uc", &script]).output();
        let output = within("bash", run).await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && err.is_empty(), "{err}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let all = ask(&["nod", ""]).await;
    for command in commands().await {
        assert!(
            all.split(' ').any(|word| word == command),
            "{command}: {all}"
        );
    }
    // What help does not show is offered to nobody.
    assert_eq!(ask(&["nod", "gua"]).await, "");
    assert_eq!(ask(&["nod", "doc"]).await, "doctor");
    assert_eq!(ask(&["nod", "service", "ins"]).await, "install");
    assert_eq!(ask(&["nod", "doctor", "--cl"]).await, "--click");
    assert_eq!(ask(&["nod", "ask", "--json", "cho"]).await, "choice");
    assert_eq!(ask(&["nod", "completions", "z"]).await, "zsh");
    assert_eq!(
        ask(&["nod", "service", "install", "--sandbox", "st"]).await,
        "strict"
    );
    assert_eq!(ask(&["nod", "settings", "s"]).await, "set");
    assert_eq!(ask(&["nod", "settings", "set", "NOD_LA"]).await, "NOD_LANG");
}

#[tokio::test]
async fn zsh_fish_and_the_manual_know_every_command() {
    let [zsh, fish, man] = [
        printed(&["completions", "zsh"]).await,
        printed(&["completions", "fish"]).await,
        printed(&["man"]).await,
    ];
    assert!(zsh.starts_with("#compdef nod\n"), "{zsh}");
    assert!(man.starts_with(".TH NOD 1 "), "{man}");
    for command in commands().await {
        if command == "help" {
            continue;
        }
        assert!(zsh.contains(&format!("'{command}:")), "{command}: {zsh}");
        assert!(
            fish.contains(&format!(" -a \"{command}\" ")),
            "{command}: {fish}"
        );
        assert!(
            man.contains(&format!(".SS nod {command}\n")),
            "{command}: {man}"
        );
    }
    assert!(man.contains(".B FEISHU_APP_ID\n"), "{man}");
    for line in man.lines().filter(|line| line.starts_with('.')) {
        let request = line.split(' ').next().unwrap();
        let known = [".TH", ".SH", ".SS", ".TP", ".B", ".I", ".PP", ".br"];
        assert!(known.contains(&request), "{line}");
    }
}
