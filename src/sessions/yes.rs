//! Words that mean yes and nothing else, in any dress people write them. They
//! decide nothing: only a tap on the card that shows the request allows it.

/// Whether nothing but yes is said: at least one word for it, and else only
/// words that go with it.
pub fn means_yes(text: &str) -> bool {
    says(text).is_some_and(|says| says != Says::Nothing)
}

/// Whether it only agrees. To go on is also work for an agent that waits for
/// nothing.
pub fn only_agrees(text: &str) -> bool {
    says(text) == Some(Says::Agrees)
}

/// What known words say; of several the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    /// Goes with either.
    Nothing,
    Agrees,
    GoesOn,
}

fn says(text: &str) -> Option<Says> {
    let text = narrow(text).to_lowercase().replace("+1", "👍");
    let mut said = Says::Nothing;
    for word in words(&text) {
        said = said.max(of_run(&word)?);
    }
    Some(said)
}

/// Letters and digits of double width as the keyboard's other mode types them.
pub(super) fn narrow(text: &str) -> String {
    let narrow = |c: char| match c {
        '！'..='～' => u32::from(c)
            .checked_sub(0xfee0)
            .and_then(char::from_u32)
            .unwrap_or(c),
        _ => c,
    };
    text.chars().map(narrow).collect()
}

/// The words of a text without what stands between them. Latin letters make a
/// word; of everything else, which knows no blanks, each run does. What only
/// colours an emoji is dropped, and what is not seen. Feishu writes its own as `[赞]` or `[THUMBSUP]`.
fn words(text: &str) -> Vec<String> {
    let is_between = |c: char| {
        c.is_whitespace() || c.is_ascii_punctuation() || "。，！、～…；：“”‘’（）【】".contains(c)
    };
    let colours = |c: &char| matches!(c, '\u{1f3fb}'..='\u{1f3ff}' | '\u{fe0f}' | '\u{200d}');
    let unseen = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<bool> = None;
    for c in text.chars().filter(|c| !colours(c) && !unseen(c)) {
        if is_between(c) {
            last = None;
            continue;
        }
        let is_latin = c.is_ascii_alphanumeric();
        match words.last_mut() {
            Some(word) if last == Some(is_latin) => word.push(c),
            _ => words.push(c.to_string()),
        }
        last = Some(is_latin);
    }
    words
}

/// What a run of text says; `None` for anything that is not known. A run
/// without blanks is taken apart into known words.
fn of_run(run: &str) -> Option<Says> {
    if run.is_ascii() {
        return known(run);
    }
    let chars: Vec<char> = run.chars().take(MAX_RUN + 1).collect();
    if chars.len() > MAX_RUN {
        return None;
    }
    // What the first so many characters say, if they are known words.
    let mut said: Vec<Option<Says>> = vec![None; chars.len() + 1];
    said[0] = Some(Says::Nothing);
    for end in 1..=chars.len() {
        for start in end.saturating_sub(LONGEST)..end {
            let word: String = chars[start..end].iter().collect();
            if let (Some(before), Some(says)) = (said[start], known(&word)) {
                said[end] = said[end].max(Some(before.max(says)));
            }
        }
    }
    said[chars.len()]
}

fn known(word: &str) -> Option<Says> {
    let lists = [
        (YES, Says::Agrees),
        (GO, Says::GoesOn),
        (BESIDE, Says::Nothing),
    ];
    let mut lists = lists.iter();
    lists.find_map(|(list, says)| list.contains(&word).then_some(*says))
}

/// Longer runs are a sentence.
const MAX_RUN: usize = 24;
/// The longest word below, in characters.
const LONGEST: usize = 4;

const YES: &[&str] = &[
    // As the terminal's own dialog numbers them.
    "1",
    "2",
    "ok",
    "okay",
    "okey",
    "okk",
    "okok",
    "k",
    "kk",
    "yes",
    "y",
    "yep",
    "yeah",
    "yup",
    "ya",
    "sure",
    "fine",
    "good",
    "great",
    "nice",
    "perfect",
    "lgtm",
    "approve",
    "approved",
    "allow",
    "allowed",
    "accept",
    "accepted",
    "agree",
    "agreed",
    "confirm",
    "confirmed",
    "thumbsup",
    "alright",
    "absolutely",
    "definitely",
    "course",
    "correct",
    "是",
    "是的",
    "好",
    "好的",
    "行",
    "可以",
    "同意",
    "批准",
    "允许",
    "准",
    "通过",
    "没问题",
    "没毛病",
    "确认",
    "确定",
    "嗯",
    "对",
    "赞",
    "点赞",
    "强",
    "收到",
    "当然",
    "放行",
    "没意见",
    "加一",
    "始终允许",
    "👍",
    "👌",
    "🆗",
    "✅",
    "✔",
    "✓",
    "🫡",
    "🙌",
    "👏",
    "☑",
    "💯",
    "🙆",
];

const GO: &[&str] = &[
    "go", "goahead", "do", "doit", "run", "runit", "ship", "shipit", "continue", "proceed", "运行",
    "执行", "继续", "冲", "搞", "开始", "来吧", "干吧", "跑",
];

/// Says neither yes nor no; the labels of the buttons that allow are whole with
/// these.
const BESIDE: &[&str] = &[
    "please", "thanks", "thank", "you", "thx", "it", "ahead", "on", "i", "me", "to", "that",
    "this", "looks", "sounds", "is", "the", "and", "once", "always", "session", "plan", "edits",
    "auto", "edit", "kind", "for", "all", "of", "let", "lets", "s", "then", "now", "始终", "本次",
    "本轮", "内", "turn", "这次", "会话", "计划", "修改", "编辑", "自动", "这", "一类", "并",
    "接受", "请", "我", "就", "直接", "谢谢", "多谢", "感谢", "辛苦", "吧", "的", "了", "啦", "哦",
    "噢", "呀", "啊", "哈", "嘞", "滴", "哒", "嘛", "🙏", "😊", "🎉",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_mean_yes_are_known_in_any_dress() {
        for yes in [
            "ok",
            "OK!",
            "Okay.",
            "yes",
            "Y",
            "同意",
            "同意。",
            "可以！",
            "好",
            "好的~",
            "👍",
            "👍🏽",
            "✅",
            "ＯＫ",
            "批准",
            " 没问题 ",
            "go ahead",
            "Do it",
            "lgtm 👍",
            "ok 👍",
            "👍👍",
            "[赞]",
            "[THUMBSUP]",
            "[OK]",
            "+1",
            "Allow once",
            "Always allow",
            "Allow this session",
            "Approve the plan",
            "Approve and accept edits",
            "Approve, accept edits",
            "yes, go for it",
            "of course",
            "all good 👏",
            "ship it",
            "[加一]",
            "好滴",
            "放行吧",
            "当然可以",
            "没意见",
            "1",
            "2",
            "\u{200b}ok\u{feff}",
            "始终允许",
            "本次会话允许",
            "批准运行",
            "批准计划",
            "ok thanks",
            "好的谢谢",
            "嗯嗯",
            "OK OK",
            "okok",
            "yes, run it",
            "可以，运行吧",
            "运行吧",
            "run it",
            "I approve",
            "继续",
            "continue",
            "好啊好啊",
            "行吧",
            "looks good to me",
            "开始吧",
        ] {
            assert!(means_yes(yes), "{yes}");
        }
    }

    #[test]
    fn whoever_says_more_than_yes_is_taken_by_the_word() {
        for no in [
            "",
            " ",
            "…",
            "no",
            "不同意",
            "不可以",
            "ok but not in prod",
            "好像不对",
            "yes, but use pnpm",
            "don't",
            "do not",
            "not ok",
            "可以吗？先看看",
            "stop",
            "❌",
            "不要继续",
            "先别运行",
            "运行 pnpm test",
            "run pnpm instead",
            "谢谢",
            "thanks",
            "it",
            "this session",
            "👎",
            "👍👎",
            "行不行",
            "ok?? why",
            "3",
        ] {
            assert!(!means_yes(no), "{no}");
        }
        assert!(!means_yes(&"好".repeat(MAX_RUN + 1)));
        let longest = YES
            .iter()
            .chain(GO)
            .chain(BESIDE)
            .filter(|word| !word.is_ascii());
        assert!(longest.map(|word| word.chars().count()).max() <= Some(LONGEST));
    }

    #[test]
    fn to_go_on_is_more_than_to_agree() {
        for agrees in ["ok", "好的谢谢", "👍", "Allow once"] {
            assert!(only_agrees(agrees), "{agrees}");
        }
        for goes_on in [
            "go on",
            "ok, continue",
            "继续",
            "好的，继续吧",
            "thanks",
            "no",
        ] {
            assert!(!only_agrees(goes_on), "{goes_on}");
        }
    }
}
