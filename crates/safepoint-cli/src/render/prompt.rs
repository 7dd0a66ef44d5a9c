//! The question at the terminal: exactly what would run, and a plain answer, line by line.

use std::{path::PathBuf, sync::Arc};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::approval::{
    AllowScope, ApprovalKind, ApprovalRequest, Approver, Decision, Holds, WithoutApprover,
};
use tokio::sync::Mutex;

use super::{approval, edit, keyboard::Keyboard, screen::Screen};

/// An approver that asks at the terminal, one question at a time.
pub(crate) struct Prompt {
    screen: Arc<Screen>,
    /// What the engine does with an approval that is left open.
    unanswered: WithoutApprover,
    /// Where the tools edit files.
    root: Option<PathBuf>,
    /// Held while a question is on the screen, across the wait for its answer: it is asynchronous and fair, so
    /// questions are put in the order in which they came. A question that is withdrawn while it waits is dropped with
    /// its place.
    one_at_a_time: Arc<Mutex<()>>,
}

impl Prompt {
    pub(crate) fn approver(
        screen: Arc<Screen>,
        unanswered: WithoutApprover,
        root: Option<PathBuf>,
    ) -> Arc<dyn Approver> {
        Arc::new(Self { screen, unanswered, root, one_at_a_time: Arc::default() })
    }
}

impl Approver for Prompt {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let asked = self.try_ask(question);
        async move { asked.await.unwrap_or(Decision::Deny { message: String::new() }) }.boxed()
    }

    fn try_ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Option<Decision>> {
        let (screen, turn) = (Arc::clone(&self.screen), Arc::clone(&self.one_at_a_time));
        let (unanswered, root) = (self.unanswered, self.root.clone());
        async move {
            let _mine = turn.lock().await;
            put(&question, unanswered, (&screen, root)).await
        }
        .boxed()
    }
}

/// What the person typed. Exhaustive: an answer, a request to leave it open, or nothing that says anything.
enum Typed {
    Decided(Decision),
    Later,
    Again,
}

/// Dropped while it waits, it has taken nothing from the keyboard, and says that the question is withdrawn. None: the
/// person leaves it open.
async fn put(
    question: &ApprovalRequest,
    unanswered: WithoutApprover,
    (screen, root): (&Arc<Screen>, Option<PathBuf>),
) -> Option<Decision> {
    let view = edit::looked(root, question).await;
    // What was typed before the question could be read answers nothing.
    let mut keyboard = Keyboard::open_empty()?;
    let answers = answers(question, unanswered);
    let asking =
        screen.ask(question.id.as_str(), &format!("{}\n{answers}", edit::put(question, view.as_ref())));
    let decision = loop {
        let Some(line) = keyboard.line().await else { break None };
        match read(question, unanswered, line.trim()) {
            Typed::Decided(decision) => break Some(decision),
            Typed::Later => break None,
            Typed::Again => asking.again(answers.lines().last().unwrap_or(&answers)),
        }
    };
    // After a lasting yes, what it allows.
    if let Some(Decision::ApproveAlways { covers }) = &decision {
        asking.again(&format!("  allowed from now on: {}\n", approval::always(*covers, &question.tool)));
    }
    asking.answered();
    match (decision, view) {
        (Some(Decision::Approve), Some(view)) => Some(view.approve(None)),
        (decision, _) => decision,
    }
}

fn answers(question: &ApprovalRequest, unanswered: WithoutApprover) -> String {
    let (until, later) = match unanswered {
        WithoutApprover::Suspend => ("in this session", ", [l]ater"),
        WithoutApprover::Deny | WithoutApprover::Wait => ("in this turn", ""),
    };
    if question.question == ApprovalKind::AfterUnknownEnd {
        return format!(
            "  [r]un it again, [g]ive up (the model learns that the result is unknown){later},\n  \
             or, if it is done, [d]one and what it came to: "
        );
    }
    let (word, always) = match question.holds {
        Holds::Session => ("yes:   ", ""),
        Holds::Once => ("always:", ", [a]lways"),
    };
    let allowed = |covers| approval::always(covers, &question.tool);
    format!(
        "  {word} allow {until} without asking: {}\n  tool:   allow {until} without asking: {}\n  \
         [y]es, [n]o{always}, [t]ool{later}, or no and why: ",
        allowed(AllowScope::Call),
        allowed(AllowScope::Tool),
    )
}

/// What was typed, by its first word. Only what cannot be meant otherwise is an answer: a yes has nothing behind it, a no may
/// have its reason there, and what fits neither is asked about again.
fn read(question: &ApprovalRequest, unanswered: WithoutApprover, typed: &str) -> Typed {
    let end = typed.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(typed.len());
    let (word, rest) = typed.split_at(end);
    let word = word.to_lowercase();
    let rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || ",:;.-".contains(letter));
    let always = |covers| Typed::Decided(Decision::ApproveAlways { covers });
    let deny = |message| Typed::Decided(Decision::Deny { message });
    let may_have_run = question.question == ApprovalKind::AfterUnknownEnd;
    match (may_have_run, word.as_str(), rest) {
        (_, "l" | "later", "") if unanswered == WithoutApprover::Suspend => Typed::Later,
        (false, "y" | "yes", "") | (true, "r" | "run", "") => Typed::Decided(Decision::Approve),
        (false, "a" | "always", "") => always(AllowScope::Call),
        (false, "t" | "tool", "") => always(AllowScope::Tool),
        (false, "n" | "no", "") | (true, "g" | "give", "" | "up") => deny(String::new()),
        (false, "n" | "no", why) => deny(format!("[denied by the user: {why}]")),
        (true, "d" | "done", result) if !result.is_empty() => {
            Typed::Decided(Decision::Respond { result: result.to_owned() })
        }
        _ => Typed::Again,
    }
}

#[cfg(test)]
mod tests;
