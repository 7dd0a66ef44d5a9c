//! Asking the person at the terminal: exactly what would run, and a plain answer.

use std::{
    io::{BufRead as _, BufReader, IsTerminal as _, Write as _},
    sync::Arc,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{
    AgentBuilder, Tool,
    approval::{ApprovalRequest, Approvals, Approver, Decision, Rule, Ruling, Unanswered},
    tool::EffectClass,
};

use crate::args::Approve;

/// Puts every tool that changes something under the mode.
pub(crate) fn under(mut builder: AgentBuilder, mode: Approve, tools: &[Arc<dyn Tool>]) -> AgentBuilder {
    for tool in tools {
        if tool.spec().effect != EffectClass::ReadOnly {
            builder = builder.rule(Rule::on(tool.spec().name.clone(), Ruling::Ask));
        }
    }
    builder.approvals(match mode {
        Approve::Auto => Approvals::Auto,
        Approve::Deny => Approvals::Deny,
        Approve::Ask if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            Approvals::Ask(Some(Arc::new(Terminal)), Unanswered::Deny)
        }
        Approve::Ask => Approvals::Ask(None, Unanswered::Deny),
    })
}

/// The person at the terminal.
struct Terminal;

impl Approver for Terminal {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        async move {
            tokio::task::spawn_blocking(move || put(&question))
                .await
                .unwrap_or_else(|_shut_down| Decision::Deny { message: String::new() })
        }
        .boxed()
    }
}

/// Reads from the terminal itself: stdin may be the prompt.
fn put(question: &ApprovalRequest) -> Decision {
    let deny = || Decision::Deny { message: String::new() };
    let Ok(terminal) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return deny();
    };
    let mut out = &terminal;
    let text =
        format!("\n? may it run  {} {}\n  [y]es, [n]o, or say why not: ", question.tool, question.args);
    let mut answer = String::new();
    if out.write_all(text.as_bytes()).is_err() || BufReader::new(&terminal).read_line(&mut answer).is_err() {
        return deny();
    }
    match answer.trim() {
        "y" | "yes" => Decision::Approve,
        "n" | "no" | "" => deny(),
        why => Decision::Deny { message: format!("[denied by the user: {why}]") },
    }
}
