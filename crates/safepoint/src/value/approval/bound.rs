//! What an approval binds: the tool as declared, where it works, and its arguments, in one digest.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::ApprovalRequest;

/// The prefix of a digest of a whole question.
const OF_QUESTION: &str = "v2:sha256:";
/// The prefix of a digest by an older release, which covers the arguments alone.
const OF_ARGS: &str = "sha256:";

/// Why a stored question cannot be decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredApprovalError {
    /// This release cannot read the question.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The question shows something else than what would run.
    #[error("it is damaged: the tool or the arguments that it shows are not those that were asked about")]
    Damaged,
}

/// Reads a stored question, if the tool and the arguments that it shows match the stored digest: what would
/// run. A question of an older release has a digest of its arguments alone.
///
/// # Errors
/// If the bytes are no question, or were altered.
pub fn decode_approval(bytes: &[u8], asked: &str) -> Result<ApprovalRequest, StoredApprovalError> {
    #[derive(Deserialize)]
    struct Shown<'a> {
        #[serde(borrow)]
        args: &'a RawValue,
    }
    let request: ApprovalRequest = serde_json::from_slice(bytes)?;
    let shown: Shown<'_> = serde_json::from_slice(bytes)?;
    // As it was written: a parsed number may be rounded.
    let texts = [shown.args.get().to_owned(), sorted(&request.args)];
    let is_old = request.definition.is_empty() && asked.starts_with(OF_ARGS);
    let is_it = |args: &String| match is_old {
        true => hashed(OF_ARGS, &[args]) == asked,
        false => of_question(&request.tool, &request.definition, args) == asked,
    };
    if texts.iter().any(is_it) { Ok(request) } else { Err(StoredApprovalError::Damaged) }
}

/// A digest of a question: the tool's name, its [`ApprovalRequest::definition`] and the arguments. Equal
/// values give equal text, whatever the order of their keys.
#[must_use]
pub fn digest(tool: &str, definition: &str, args: &Value) -> String {
    of_question(tool, definition, &sorted(args))
}

fn of_question(tool: &str, definition: &str, args: &str) -> String {
    hashed(OF_QUESTION, &[tool, definition, args])
}

/// As text, with the keys of all objects in order.
pub(crate) fn sorted(value: &Value) -> String {
    // A map is sorted by key already, unless some crate of the program turned `preserve_order` on.
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// A single part is hashed as it is; several with their lengths, so that no two lists of parts give the same
/// text.
pub(crate) fn hashed(prefix: &str, parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        if parts.len() > 1 {
            hasher.update((part.len() as u64).to_le_bytes());
        }
        hasher.update(part.as_bytes());
    }
    let digits: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{digits}")
}
