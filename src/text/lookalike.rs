//! Letters that look like other letters, text that runs from right to left,
//! wide operators, and marks piled on a letter: what a reader takes for
//! something else. Ordinary text of any language in its own words is not that.

/// More marks on one letter than any command needs.
pub(crate) const MAX_MARKS: usize = 2;

/// Letters of the scripts whose letters pass for Latin ones.
pub(crate) fn is_double(c: char) -> bool {
    matches!(c,
        '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{531}'..='\u{58f}'
        | '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' | '\u{a4d0}'..='\u{a4ff}'
        | '\u{1c80}'..='\u{1c8f}' | '\u{2c60}'..='\u{2c7f}' | '\u{2de0}'..='\u{2dff}' | '\u{a640}'..='\u{a69f}'
        | '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1dbf}' | '\u{2100}'..='\u{214f}' | '\u{2160}'..='\u{2188}'
        | '\u{2c80}'..='\u{2cff}' | '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}'
        | '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{10280}'..='\u{1029f}' | '\u{10400}'..='\u{1044f}')
        && !is_unit(c)
}

/// Greek letters and signs that stand beside Latin ones by custom.
fn is_unit(c: char) -> bool {
    "ΔδλμπσΣΩωθφεβγψξ℃℉№™℠".contains(c)
}

/// Letters that are written from right to left and take others with them.
pub(crate) const fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Marks that are drawn onto the letter before them.
pub(crate) const fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}' | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' | '\u{6e7}' | '\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{711}' | '\u{730}'..='\u{74a}'
        | '\u{7a6}'..='\u{7b0}' | '\u{7eb}'..='\u{7f3}' | '\u{816}'..='\u{819}' | '\u{81b}'..='\u{823}' | '\u{825}'..='\u{827}' | '\u{829}'..='\u{82d}'
        | '\u{859}'..='\u{85b}' | '\u{898}'..='\u{89f}' | '\u{8ca}'..='\u{8e1}' | '\u{8e3}'..='\u{902}' | '\u{93a}' | '\u{93c}' | '\u{941}'..='\u{948}' | '\u{94d}' | '\u{951}'..='\u{957}' | '\u{981}' | '\u{9bc}'
        | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{eb1}' | '\u{eb4}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}'
        | '\u{f18}' | '\u{f19}' | '\u{f35}' | '\u{f37}' | '\u{f39}' | '\u{f71}'..='\u{f7e}' | '\u{f80}'..='\u{f84}' | '\u{f86}' | '\u{f87}' | '\u{f8d}'..='\u{fbc}'
        | '\u{135d}'..='\u{135f}' | '\u{1a55}'..='\u{1a7f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1b34}' | '\u{1b6b}'..='\u{1b73}' | '\u{1cd0}'..='\u{1cd2}' | '\u{1cd4}'..='\u{1ce8}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{2cef}'..='\u{2cf1}' | '\u{2de0}'..='\u{2dff}'
        | '\u{302a}'..='\u{302f}' | '\u{3099}' | '\u{309a}' | '\u{a66f}'..='\u{a672}' | '\u{a674}'..='\u{a67d}' | '\u{a69e}' | '\u{a69f}' | '\u{a6f0}' | '\u{a6f1}' | '\u{a8e0}'..='\u{a8f1}' | '\u{fb1e}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{1e000}'..='\u{1e02a}' | '\u{1e8d0}'..='\u{1e8d6}' | '\u{1d165}'..='\u{1d169}' | '\u{1d16d}'..='\u{1d172}' | '\u{1d185}'..='\u{1d18b}')
}

/// Whether the letter at this place passes for one of its Latin neighbours:
/// it stands in one run of letters with ASCII ones.
pub(crate) fn is_mixed(text: &str, at: usize, c: char) -> bool {
    if !is_double(c) {
        return false;
    }
    let before = text[..at].chars().rev();
    let after = text[at + c.len_utf8()..].chars();
    let run = |letters: &mut dyn Iterator<Item = char>| {
        letters
            .take(64)
            .take_while(|&c| c.is_alphanumeric() || is_mark(c))
            .any(|c| c.is_ascii_alphabetic())
    };
    run(&mut before.into_iter()) || run(&mut after.into_iter())
}
