//! From a choice to its effect, whoever made it and wherever it came from.

pub(crate) mod answers;
pub(crate) mod decision;
pub(crate) mod ruling;
pub(crate) mod undo;
pub(crate) mod verdict;
