//! Asking the person at the terminal: exactly what would run, and a plain answer.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{
    AgentBuilder, Tool,
    approval::{ApprovalRequest, Approvals, Approver, Decision, Rule, Ruling, Unanswered},
    tool::EffectClass,
};
use tokio::sync::Mutex;

use crate::{
    args::{AgentArgs, Approve, Usage},
    keyboard::Keyboard,
    screen::Screen,
};

/// Puts every tool that changes something under the mode.
pub(crate) fn under(
    builder: AgentBuilder,
    (args, unanswered): (&AgentArgs, Unanswered),
    tools: &[Arc<dyn Tool>],
    screen: &Arc<Screen>,
) -> Result<AgentBuilder, Usage> {
    let changing = changing(tools);
    let builder = ruled(builder, args, tools)?;
    Ok(builder.approvals(match args.approve.unwrap_or(Approve::Ask) {
        Approve::Auto => Approvals::Auto,
        Approve::Deny => Approvals::Deny,
        Approve::Ask if Keyboard::is_there() => {
            let terminal = Terminal { screen: Arc::clone(screen), one_at_a_time: Arc::default() };
            Approvals::Ask(Some(Arc::new(terminal)), Unanswered::Deny)
        }
        Approve::Ask if unanswered == Unanswered::Suspend => Approvals::Ask(None, Unanswered::Suspend),
        Approve::Ask => {
            if !changing.is_empty() {
                let names = changing.join(", ");
                let but = if args.rules.is_empty() { "" } else { ", but for what a rule allows" };
                screen.note(&format!(
                    "safepoint: nobody can be asked here, so calls of {names} are denied{but} (--approve auto lets them run)"
                ));
            }
            Approvals::Ask(None, Unanswered::Deny)
        }
    }))
}

/// The rules of the config file, and after them: what changes something is asked about.
pub(crate) fn ruled(
    builder: AgentBuilder,
    args: &AgentArgs,
    tools: &[Arc<dyn Tool>],
) -> Result<AgentBuilder, Usage> {
    let mut builder = args.rules.over(builder, tools)?;
    for name in changing(tools) {
        builder = builder.rule(Rule::on(name, Ruling::Ask));
    }
    Ok(builder)
}

/// The names of the tools that change something: they are asked about, where no rule says otherwise.
pub(crate) fn changing(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let specs = tools.iter().map(|tool| tool.spec());
    specs.filter(|spec| spec.effect != EffectClass::ReadOnly).map(|spec| spec.name.clone()).collect()
}

/// The person at the terminal.
struct Terminal {
    screen: Arc<Screen>,
    one_at_a_time: Arc<Mutex<()>>,
}

impl Approver for Terminal {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let (screen, turn) = (Arc::clone(&self.screen), Arc::clone(&self.one_at_a_time));
        async move {
            let _mine = turn.lock().await;
            put(&question, &screen).await
        }
        .boxed()
    }
}

const ANSWERS: &str = "  [y]es, [n]o, or say why not: ";

/// Dropped while it waits, it has taken nothing from the keyboard, and says that the question is withdrawn.
async fn put(question: &ApprovalRequest, screen: &Arc<Screen>) -> Decision {
    let no = || Decision::Deny { message: String::new() };
    // What was typed before the question could be read answers nothing.
    let Some(mut keyboard) = Keyboard::open_empty() else { return no() };
    let asking =
        screen.ask(&format!("? {} wants to run with\n{}\n{ANSWERS}", question.tool, exactly(question)));
    let decision = loop {
        let Some(line) = keyboard.line().await else { break no() };
        match line.trim() {
            "y" | "yes" => break Decision::Approve,
            "n" | "no" => break no(),
            "" => asking.again(ANSWERS),
            why => break Decision::Deny { message: format!("[denied by the user: {why}]") },
        }
    };
    asking.answered();
    decision
}

/// All of the arguments. Whatever could disguise them is shown as what it is.
fn exactly(question: &ApprovalRequest) -> String {
    let text = format!("{:#}", question.args);
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
