//! May this call run? Rules, questions and decisions (S8, in process).

pub use crate::{
    contract::approver::{ApprovalMode, Approver, Rule, RuleAction, ToolApproval, WithoutApprover},
    value::approval::{
        AllowScope, ApprovalKind, ApprovalRequest, Decision, Holds, OnUnknownEffect, Ruled,
        StoredApprovalError, decode_approval, digest,
    },
};
