//! May this call run? Rules, questions and decisions (S8, in process).

pub use crate::{
    contract::approver::{Approval, Approvals, Approver, Rule, Ruling, Unanswered},
    value::approval::{
        ApprovalRequest, Covers, Decision, Holds, OnUnknown, Question, Ruled, Undecidable, digest,
        read_stored,
    },
};
