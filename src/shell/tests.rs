//! Readings compared with what a real shell makes of the same text.

use super::*;
use proptest::prelude::*;

fn commands(text: &str) -> (Vec<ShellCommand>, usize) {
    let mut found = Vec::new();
    let mut unreadable = 0;
    read(
        text,
        &TextPlace::At(0),
        &mut Variables::default(),
        &mut |seen, range| {
            assert!(text.get(range.clone()).is_some(), "{range:?} in {text:?}");
            match seen {
                ShellSeen::Command(command) => found.push(command.clone()),
                ShellSeen::Unreadable => unreadable += 1,
            }
        },
    );
    (found, unreadable)
}

fn words(text: &str) -> Vec<String> {
    let (found, unreadable) = commands(text);
    assert_eq!(unreadable, 0, "{text}");
    let line = |command: &ShellCommand| {
        let words: Vec<&str> = command.words.iter().map(|word| &*word.text).collect();
        words.join("|")
    };
    found.iter().map(line).collect()
}

#[test]
fn words_are_what_the_program_would_get() {
    for (text, expected) in [
        ("npm run build", vec!["npm|run|build"]),
        (r#"r"m" -r''f 'a b'"#, vec!["rm|-rf|a b"]),
        (r"\rm -rf x\ y", vec!["rm|-rf|x y"]),
        (r"$'\x72m' $'a\tb'", vec!["rm|a\tb"]),
        ("cu\\\nrl x", vec!["curl|x"]),
        ("c=rm; $c -rf x", vec!["", "rm|-rf|x"]),
        ("c='rm -rf x'; $c", vec!["", "rm|-rf|x"]),
        ("c='rm -rf x'; \"$c\"", vec!["", "rm -rf x"]),
        ("a=r b=m; ${a}$b x", vec!["", "rm|x"]),
        ("cat $HOME/.ssh/id", vec!["cat|~/.ssh/id"]),
        ("{rm,-rf,x}", vec!["rm|-rf|x"]),
        ("echo a{b,c}d {} x}", vec!["echo|abd|acd|{}|x}"]),
        ("a && b || c; d | e & f", vec!["a", "b", "c", "d", "e", "f"]),
        (
            "echo $(a $(b)) `c`",
            vec!["b", "a|$()", "c", "echo|$()|$()"],
        ),
        ("echo \"x $(a \"b c\") y\"", vec!["a|b c", "echo|x $() y"]),
        ("diff <(a) <(b)", vec!["a", "b", "diff|$()|$()"]),
        ("(cd x && ls)", vec!["cd|x", "ls"]),
        ("{ a; b; } > out", vec!["a", "b", ""]),
        ("if a; then b; else c; fi", vec!["a", "b", "c"]),
        ("for x in 1 $(y); do z \"$x\"; done", vec!["y", "z|$x"]),
        ("while read l; do a; done < f", vec!["read|l", "a", ""]),
        ("case $x in a|b) c;; *) d;; esac; e", vec!["c", "d", "e"]),
        ("f() { a; }; f", vec!["a", "f"]),
        ("[[ $a =~ ^(x|y)$ && -f b ]] && c", vec!["c"]),
        ("(( i > 3 )) && a", vec!["a"]),
        (
            "((a x); b) && echo $((c); d)",
            vec!["a|x", "b", "c", "d", "echo|$()"],
        ),
        ("a # b; c\nd", vec!["a", "d"]),
        ("cat <<EOF\n$(a) 'x\nEOF\nb", vec!["a", "cat", "b"]),
        ("cat <<'EOF' | c\n$(a) 'x\nEOF\nb", vec!["cat", "c", "b"]),
        (
            "git commit -m \"$(cat <<'EOF'\nit's (a) fix\nEOF\n)\"",
            vec!["cat", "git|commit|-m|$()"],
        ),
        ("a=(1 2 $(b)); c", vec!["b", "", "c"]),
        ("X=1 make -j$(nproc)", vec!["nproc", "make|-j$()"]),
        ("echo $((1 + (2)))x", vec!["echo|0x"]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn what_can_not_be_read_is_said_and_nothing_is_lost() {
    for text in [
        "echo 'a",
        "echo \"a",
        "$(a",
        "`a",
        "a ) b",
        "cat <<X\na",
        "${a",
    ] {
        assert_eq!(commands(text).1, 1, "{text}");
    }
    let (found, _) = commands("a ) rm -rf x");
    assert_eq!(found.last().unwrap().words[0].text, "rm");
}

#[test]
fn a_value_set_twice_settles_nothing() {
    let (found, _) = commands("c=ls; test x && c=rm; $c -rf x");
    let last = found.last().unwrap();
    assert!(last.words[0].marks.variable);
}

#[test]
fn pipes_reach_into_groups_and_redirections_keep_their_targets() {
    let (found, _) = commands("curl x | (cd y; sh) | { a; b; }");
    let piped: Vec<bool> = found.iter().map(|command| command.piped).collect();
    assert_eq!(piped, [false, true, true, true, true]);
    let (found, _) = commands("a >b 2>>c <d 2>&1 &>e <<< 'f g'");
    let flows: Vec<(Flow, &str)> = found[0]
        .redirects
        .iter()
        .map(|redirect| (redirect.flow, &*redirect.target.text))
        .collect();
    assert_eq!(
        flows,
        [
            (Flow::Write, "b"),
            (Flow::Append, "c"),
            (Flow::Read, "d"),
            (Flow::Write, "e"),
            (Flow::HereString, "f g"),
        ]
    );
}

#[test]
fn a_function_that_calls_itself_is_noticed() {
    let (found, _) = commands(":(){ :|:& };:");
    assert!(found.iter().any(|command| command.recursive));
}

#[test]
fn ranges_point_at_the_words() {
    let text = "echo \"é $(r'm' x)\"";
    let (found, _) = commands(text);
    assert_eq!(&text[found[0].words[0].range.clone()], "r'm'");
    let text = "sh -c 'a b'";
    let (found, _) = commands(text);
    assert_eq!(found[0].words[2].verbatim, Some(7));
}

#[test]
fn large_and_deep_texts_end_soon() {
    for unit in [
        "$(",
        "`",
        "((",
        "{",
        "a=$a$a; ",
        "<<x ",
        "x ",
        "'",
        "a|",
        "\\\n",
        "${a:-",
        "case x in ",
    ] {
        let text = unit.repeat((1 << 16) / unit.len());
        commands(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_breaks_it(text in "(\\PC|[ \n\t'\"$(){};|&<>`#*=\\\\]|EOF|<<|\\$\\(){0,200}") {
        commands(&text);
    }
}
