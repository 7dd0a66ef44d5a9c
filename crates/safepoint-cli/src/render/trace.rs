//! A stored session as a timeline: as text, as JSON, as a page.

pub(crate) mod calls;
pub(crate) mod facts;
pub(crate) mod fold;
pub(crate) mod holder;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod page;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod timeline;
