//! Every sentence a person in Feishu can see, in Chinese and English.

/// The language of cards, toasts and command output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    Zh,
    En,
}
