//! What a person has allowed for the rest of a session, folded from recorded facts (S8.6).
//!
//! **Invariants**: it only grows, and by recorded facts alone; a yes to a question about what may have happened already
//! allows nothing further.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use crate::{
    approval::{self, Covers, Decision, Question},
    event::{Answered, Fact},
    ids::ApprovalId,
};

/// The lasting yeses of one session, or of one tree of runs where there is no session.
#[derive(Debug, Default)]
pub(crate) struct Always(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Tool and digest of what is asked.
    asked: HashMap<ApprovalId, (String, String)>,
    tools: HashSet<String>,
    /// Tool and digest.
    calls: HashSet<(String, String)>,
}

impl Always {
    /// Takes in a fact that is recorded.
    pub(crate) fn take(&self, fact: &Fact) {
        match fact {
            Fact::ApprovalAsked(asked) if asked.question != Question::MayHaveRun => {
                let about = (asked.tool.clone(), asked.digest.clone());
                self.lock().asked.insert(asked.id.clone(), about);
            }
            Fact::ApprovalClosed { id, answer, .. } => self.close(id, answer),
            _ => {}
        }
    }

    /// Whether a call of this tool with these arguments needs no further question.
    pub(crate) fn covers(&self, tool: &str, args: &Value) -> bool {
        let held = self.lock();
        held.tools.contains(tool)
            || !held.calls.is_empty() && held.calls.contains(&(tool.to_owned(), approval::digest(args)))
    }

    fn close(&self, id: &ApprovalId, answer: &Answered) {
        let mut held = self.lock();
        let about = held.asked.remove(id);
        if let (Some((tool, digest)), Answered::Decided(Decision::ApproveAlways { covers })) = (about, answer)
        {
            match covers {
                Covers::Call => held.calls.insert((tool, digest)),
                Covers::Tool => held.tools.insert(tool),
            };
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
