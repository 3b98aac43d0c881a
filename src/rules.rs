//! Claude Code's permission rules: the exact one an "always" would leave, or
//! the reason why no rule is safe.

/// `Tool(content)`, or the bare tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    pub tool: String,
    pub content: Option<String>,
}
