//! What happens, as people and programs read it: text, lines of JSON, the chat screen, a trace.

pub(crate) mod activity;
pub(crate) mod approval;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod hints;
pub(crate) mod keyboard;
pub(crate) mod lines;
pub(crate) mod outcome_word;
pub(crate) mod prompt;
pub(crate) mod provider;
pub(crate) mod reply_json;
pub(crate) mod screen;
pub(crate) mod text;
pub(crate) mod trace;
pub(crate) mod turn;
