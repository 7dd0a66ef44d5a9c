//! What our end says of an answer that it could not read: kept apart from all that a server may say, so that our words
//! never stand among a stranger's.

use std::sync::LazyLock;

use rmcp::model::ErrorData;
use serde_json::json;

/// Where an error bears the seal.
const KEY: &str = "safepoint/unread";

/// No server knows it.
static SEAL: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().simple().to_string());

/// The end of a call whose answer could not be read.
pub(super) fn unread(why: String) -> ErrorData {
    ErrorData::internal_error(why, Some(json!({ KEY: *SEAL })))
}

/// Whether our end made this error.
pub(super) fn is_ours(error: &ErrorData) -> bool {
    error.data.as_ref().and_then(|data| data.get(KEY)).is_some_and(|seal| *seal == **SEAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.10: what a server says is never taken for our words.
    #[test]
    fn only_our_end_can_seal_an_error() {
        assert!(is_ours(&unread("too large".into())));
        for data in [None, Some(json!({ KEY: true })), Some(json!({ KEY: "seal" })), Some(json!("seal"))] {
            assert!(!is_ours(&ErrorData::internal_error("too large", data)));
        }
    }
}
