//! A response that is not kept: one run, which the client holds. It is stopped when the client is gone.

use axum::response::Response;

use super::request::{AnswerForm, unsupported};
use crate::{host::setup::EarlierMessage, problem::Answered, routes::Call};

pub(super) async fn create(
    _call: &Call,
    _agent: &str,
    (_earlier, _text): (Vec<EarlierMessage>, String),
    _answer: AnswerForm,
) -> Answered<Response> {
    Err(unsupported("store", "not yet"))
}
