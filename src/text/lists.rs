//! Lists of words, each written as one text with blanks between them: a list
//! is then read at a glance, however long it is.

/// Whether the word is one of the list.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Whether the text begins with a word of the list.
pub(crate) fn begins(list: &str, text: &str) -> bool {
    let mut known = list.split_ascii_whitespace();
    known.any(|known| text.starts_with(known))
}

/// Whether a word of the list stands anywhere in the text.
pub(crate) fn within(list: &str, text: &str) -> bool {
    let mut known = list.split_ascii_whitespace();
    known.any(|known| text.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_whole_words_only() {
        let list = "\
            git git-lfs \
            hg";
        for word in ["git", "git-lfs", "hg"] {
            assert!(has(list, word), "{word}");
        }
        for word in ["", " ", "gi", "lfs", "git git-lfs", "GIT"] {
            assert!(!has(list, word), "{word:?}");
        }
    }

    #[test]
    fn a_text_begins_with_a_word_or_holds_it() {
        assert!(begins("--force --mirror", "--force-with-lease"));
        assert!(!begins("--force --mirror", "-f --force"));
        assert!(within("token secret", "MY_token_2"));
        assert!(!within("token secret", "toke"));
        assert!(!begins("", "anything") && !within("", "anything"));
    }
}
