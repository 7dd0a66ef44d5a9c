//! Checks whether a call may run: rules, and who is asked (S8, in process).

use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use serde_json::Value;

use crate::{
    sync::callback::{self, Panicked},
    value::approval::{ApprovalRequest, Decision},
};

/// What a rule decides about a call. Exhaustive: the call runs, waits for a person, or does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleAction {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run; the model gets this reason.
    Deny(String),
}

/// What a tool says about its own calls, where no rule applies. Exhaustive: they run, or a person is asked.
///
/// ```
/// use safepoint::{approval::ToolApproval, tool};
/// let pay = tool::from_fn("pay", "Pays the rent", |_cx, (): ()| async { Ok("paid") })
///     .with(|spec| spec.approval(ToolApproval::Required));
/// # let _tool = tool::Tools::new().tool(pay);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolApproval {
    /// The default: its calls run without a question, whatever their [effect](crate::tool::EffectClass) is.
    #[default]
    NotNeeded,
    /// A person must approve each call.
    Required,
}

/// The arguments that a rule applies to.
type Matches = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// One rule on a tool and its arguments; the first that matches decides.
///
/// ```
/// use safepoint::{AgentBuilder, approval::{Rule, RuleAction}};
/// fn careful(builder: AgentBuilder) -> AgentBuilder {
///     let is_small = |args: &serde_json::Value| args["amount"].as_u64().is_some_and(|amount| amount < 100);
///     builder
///         .rule(Rule::on("pay", RuleAction::Allow).when(is_small))
///         .rule(Rule::on("pay", RuleAction::Ask))
///         .rule(Rule::on("git__*", RuleAction::Deny("this repository is read only".into())))
/// }
/// ```
#[derive(Clone)]
pub struct Rule {
    tool: String,
    matches: Option<Matches>,
    ruling: RuleAction,
}

impl Rule {
    /// A rule for every call of `tool`. A `*` in the name stands for any text: `*` is every tool, `git__*`
    /// every tool whose name begins with `git__`.
    #[must_use]
    pub fn on(tool: impl Into<String>, ruling: RuleAction) -> Self {
        Self { tool: tool.into(), matches: None, ruling }
    }

    /// Narrows the rule to arguments that `matches` accepts.
    #[must_use]
    pub fn when(mut self, matches: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Some(Arc::new(matches));
        self
    }

    fn fits(&self, tool: &str, args: &Value) -> bool {
        is_named(&self.tool, tool) && self.matches.as_ref().is_none_or(|matches| matches(args))
    }
}

/// Whether a name matches the pattern. Each star but the last takes as little as it needs, which misses
/// nothing.
fn is_named(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("tool", &self.tool).field("ruling", &self.ruling).finish_non_exhaustive()
    }
}

/// Who decides when a call needs approval. Exhaustive: the three modes of `--approve`.
///
/// An agent that sets none has `Ask(None, WithoutApprover::Deny)`: no one can be asked, so that a call that needs approval
/// is denied, and the model learns why. A program that answers questions itself chooses `Wait` for a run that it keeps, and
/// `Suspend` for one that may outlive the program:
///
/// ```no_run
/// # use safepoint::{Agent, Model, approval::{ApprovalMode, Decision, WithoutApprover}};
/// # async fn ask(model: impl Model) -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(model).approvals(ApprovalMode::Ask(None, WithoutApprover::Wait)).build();
/// let run = agent.run("Pay the rent.").detach();
/// let mut events = run.events();
/// while let Some(event) = events.next().await {
///     if let Some(asked) = event.approval_asked() {
///         println!("may {} run with {}?", asked.tool, asked.args);
///         run.decide(&asked.id, Decision::Approve.by("the landlord")).await?;
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub enum ApprovalMode {
    /// Ask the approver; without one, do as `WithoutApprover` says. The mode of an agent that sets none, without an
    /// approver.
    Ask(Option<Arc<dyn Approver>>, WithoutApprover),
    /// Every call that needs approval may run. What a rule denies stays denied.
    Auto,
    /// No call that needs approval may run.
    #[default]
    Deny,
}

/// What happens to a question without an approver. Exhaustive: it is denied, or stays open in a run that is suspended or
/// live; it is never allowed (S8.2).
///
/// An example is at [`ApprovalMode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutApprover {
    /// The default: the call is denied.
    #[default]
    Deny,
    /// The run suspends, once nothing else of it runs, until a decision arrives from outside: with
    /// [`Agent::resume_with`](crate::Agent::resume_with), or through its session.
    Suspend,
    /// The question stays open in the live run until [`RunHandle::decide`](crate::RunHandle::decide) or
    /// [`SessionHandle::decide`](crate::SessionHandle::decide) answers it, or it expires: the program shows it, as it shows
    /// other events (S8.13). A stop withdraws it.
    Wait,
}

impl fmt::Debug for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(approver, unanswered) => {
                f.debug_tuple("Ask").field(&approver.is_some()).field(unanswered).finish()
            }
            Self::Auto => f.write_str("Auto"),
            Self::Deny => f.write_str("Deny"),
        }
    }
}

/// Answers questions about calls while the run waits.
///
/// ```
/// use futures_util::future::BoxFuture;
/// use safepoint::approval::{ApprovalRequest, Approver, Decision};
///
/// /// Allows whatever reads, and nothing else.
/// struct OnlyLook;
///
/// impl Approver for OnlyLook {
///     fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision> {
///         Box::pin(async move {
///             match question.tool.starts_with("read_") {
///                 true => Decision::Approve,
///                 false => Decision::Deny { message: format!("{} may not run here", question.tool) },
///             }
///         })
///     }
/// }
/// ```
pub trait Approver: Send + Sync + 'static {
    /// Answers the question, however long that takes.
    ///
    /// # Cancel safety
    /// Dropped when the run is stopped, the approval expires, or another decision comes first.
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision>;

    /// Like [`ask`](Self::ask), for an approver that may leave without an answer. `None`: this approver can
    /// no longer be asked, and the question is handled as [`WithoutApprover`] says: denied, or left open, so
    /// that the run suspends.
    ///
    /// # Cancel safety
    /// As [`Approver::ask`].
    fn try_ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Option<Decision>> {
        let asked = self.ask(question);
        Box::pin(async move { Some(asked.await) })
    }
}

/// What the rules, the tool's declaration and the mode together decide about one call. An error if a rule
/// panics.
pub(crate) fn rule(
    rules: &[Rule],
    own: ToolApproval,
    tool: &str,
    args: &Value,
) -> Result<RuleAction, Panicked> {
    let spoken = callback::call(|| rules.iter().find(|rule| rule.fits(tool, args)))?;
    Ok(match (spoken, own) {
        (Some(rule), _) => rule.ruling.clone(),
        (None, ToolApproval::NotNeeded) => RuleAction::Allow,
        (None, ToolApproval::Required) => RuleAction::Ask,
    })
}

/// Whether the same rule applies to both.
pub(crate) fn is_one_rule(
    rules: &[Rule],
    tool: &str,
    (one, other): (&Value, &Value),
) -> Result<bool, Panicked> {
    let place = |args| rules.iter().position(|rule| rule.fits(tool, args));
    callback::call(|| place(one) == place(other))
}

/// The decision of a rule that names this and nothing else; `None` if there is no such rule.
pub(crate) fn rule_of_its_own(
    rules: &[Rule],
    tool: &str,
    args: &Value,
) -> Result<Option<RuleAction>, Panicked> {
    let spoken = callback::call(|| rules.iter().find(|rule| rule.tool == tool && rule.fits(tool, args)))?;
    Ok(spoken.map(|rule| rule.ruling.clone()))
}
