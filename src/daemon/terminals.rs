//! The terminals beside nod: what they settled meanwhile, and the sessions there that
//! take words.

pub(crate) mod endings;
pub(crate) mod mailboxes;
mod tail;
pub(crate) mod watching;
