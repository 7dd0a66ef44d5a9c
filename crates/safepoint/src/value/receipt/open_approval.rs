//! An open question in a receipt.

use serde::{Deserialize, Serialize};

use crate::value::{
    approval::ApprovalRequest,
    ids::{ApprovalId, CallId},
};

/// The most characters of the arguments.
const SHOWN_CHARS: usize = 200;

/// A question that waits for its answer, for people; [`Suspended::approvals`](crate::outcome::Suspended::approvals) has all
/// of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OpenApproval {
    /// Names the question: it is answered by this.
    pub id: ApprovalId,
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that it would get, as JSON; of long ones, the beginning.
    pub args: String,
}

impl From<&ApprovalRequest> for OpenApproval {
    fn from(asked: &ApprovalRequest) -> Self {
        let all = asked.args.to_string();
        let args = match all.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}…", &all[..end]),
            None => all,
        };
        Self { id: asked.id.clone(), call_id: asked.call_id.clone(), tool: asked.tool.clone(), args }
    }
}
