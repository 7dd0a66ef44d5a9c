//! Hooks that keep a run from going on for nothing.

use safepoint_scope::{Actor, Code, Reason, SafePoints, StopRequest};
use serde_json::Value;

use crate::{
    contract::{
        hook::{CallVerdict, HookCall, HookResult, HookedResult, Hooks, ResultVerdict, ready},
        tool::Output,
    },
    value::{
        history::{History, Message},
        ids::CallId,
        message::{AssistantMessage, CallResult, ResultStatus, ToolCall},
        receipt::CallStatus,
    },
};

/// The longest cycle of calls that is looked for.
const LONGEST_CYCLE: usize = 4;
/// How the texts begin that this guard says to the model.
const NOTE: &str = "[loop guard: ";

/// Ends a run that goes in circles: the same call with the same arguments and the same result again and again, the same
/// two to four calls by turns, or calls that all fail.
///
/// First it warns the model: a repeated call is refused with a note, and a note follows the result of a failed one. If
/// that changes nothing, it stops the run at its next safe point, with the code `loop`. A call that is repeated with
/// another result each time, as one that looks whether something is done, is no loop.
///
/// It looks at the conversation alone, from the newest message of a person on: so runs of one agent share nothing, and a
/// run that is resumed is judged as it was before.
///
/// ```
/// use safepoint::guard::LoopGuard;
/// # fn with(builder: safepoint::AgentBuilder) {
/// builder.hooks(LoopGuard::new().repeats(3, 6).failures(6, 12));
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a guard does nothing until it is among an agent's hooks"]
pub struct LoopGuard {
    repeats: Thresholds,
    failures: Thresholds,
}

/// After how many the model is warned, and after how many the run is stopped.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    warn: usize,
    stop: usize,
}

impl Thresholds {
    fn new(warn: usize, stop: usize) -> Self {
        let warn = warn.max(2);
        Self { warn, stop: stop.max(warn) }
    }
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self { repeats: Thresholds::new(3, 5), failures: Thresholds::new(6, 12) }
    }
}

impl LoopGuard {
    /// A guard with the defaults: the third identical call in a row, or the third turn of a cycle, is refused, and the
    /// fifth stops the run; the model is warned of six failed calls in a row, and twelve stop the run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses the call that makes it `warn` identical calls (or turns of a cycle) in a row, and stops the run at `stop`.
    /// The lowest figure is 2; equal figures stop at once.
    pub fn repeats(mut self, warn: usize, stop: usize) -> Self {
        self.repeats = Thresholds::new(warn, stop);
        self
    }

    /// Warns the model after `warn` failed calls in a row, and stops the run before the call that follows `stop` of them.
    /// The lowest figure is 2.
    pub fn failures(mut self, warn: usize, stop: usize) -> Self {
        self.failures = Thresholds::new(warn, stop);
        self
    }

    fn judge(&self, call: &HookCall) -> CallVerdict {
        let most = self.repeats.stop.saturating_mul(LONGEST_CYCLE).max(self.failures.stop);
        let mut done = done(&call.history, most);
        let failed = done.iter().rev().take_while(|done| done.is_failure()).count();
        if failed >= self.failures.stop {
            return stop(format!("{failed} calls in a row have failed"));
        }
        done.extend(Done::begun(&call.message, &call.call_id));
        done.push(Done { name: call.name.clone(), args: call.args.clone(), result: None });
        let Some((cycle, times)) = cycle(&done, self.repeats.warn) else { return CallVerdict::Proceed };
        let what = match cycle {
            1 => format!("{} was called {times} times in a row with the same arguments", call.name),
            more => format!("the same {more} calls were made {times} times by turns"),
        };
        if times >= self.repeats.stop {
            return stop(what);
        }
        let left = self.repeats.stop - times;
        CallVerdict::Refuse(format!(
            "{NOTE}{what}, and nothing has changed. It is not run again. Do something else, or answer with what you know: \
             after {left} more the run is stopped.]"
        ))
    }

    /// The note behind the result of a failed call, if it is the one that makes them too many.
    fn note(&self, result: &HookedResult) -> Option<String> {
        let is_failure = matches!(
            result.status,
            CallStatus::Failed | CallStatus::TimedOut | CallStatus::Unreachable | CallStatus::Denied
        );
        let before = done(&result.call.history, self.failures.stop);
        let failed = before.iter().rev().take_while(|done| done.is_failure()).count() + 1;
        (is_failure && failed >= self.failures.warn).then(|| {
            format!(
                "{}\n{NOTE}{failed} calls in a row have failed. Try another way, or say what keeps you from going on.]",
                result.text
            )
        })
    }
}

impl Hooks for LoopGuard {
    fn before_call(&self, call: &HookCall) -> HookResult<CallVerdict> {
        match self.judge(call) {
            CallVerdict::Proceed => None,
            verdict => ready(verdict),
        }
    }

    fn on_result(&self, result: &HookedResult) -> HookResult<ResultVerdict> {
        let text = self.note(result)?;
        let (parts, structured) = (result.parts.clone(), result.structured.clone());
        ready(ResultVerdict::Change(Output { text, parts, structured, whole: None }))
    }
}

/// A call that was made, and what came of it.
struct Done {
    name: String,
    /// As a value, since a model writes the same arguments in more than one way.
    args: Value,
    /// The text of its result, without what this guard said, and its mark; none while it is not known.
    result: Option<(String, ResultStatus)>,
}

impl Done {
    fn new(call: &ToolCall, result: Option<&CallResult>) -> Self {
        let args = serde_json::from_str(&call.args).unwrap_or_else(|_| Value::String(call.args.clone()));
        let result = result.map(|result| (said(&result.text).to_owned(), result.verdict));
        Self { name: call.name.clone(), args, result }
    }

    /// The calls of a message that come before this one.
    fn begun<'a>(message: &'a AssistantMessage, id: &'a CallId) -> impl Iterator<Item = Self> + 'a {
        message.calls().take_while(move |call| call.id != *id).map(|call| Self::new(call, None))
    }

    fn is_failure(&self) -> bool {
        self.result.as_ref().is_some_and(|(_, verdict)| *verdict == ResultStatus::Error)
    }

    /// Whether the other is the same call, and nothing else came of it as far as that is known. What this guard said is
    /// no result.
    fn is_like(&self, other: &Self) -> bool {
        let known = |done: &'_ Self| done.result.as_ref().is_some_and(|(text, _)| !text.is_empty());
        let differs = known(self) && known(other) && self.result != other.result;
        self.name == other.name && self.args == other.args && !differs
    }
}

/// What a tool said, without what this guard said instead or behind it.
fn said(text: &str) -> &str {
    text.find(NOTE).map_or(text, |at| text[..at].trim_end())
}

/// The newest calls since a person's newest message, at most `most`, oldest first.
fn done(history: &History, most: usize) -> Vec<Done> {
    let mut found = Vec::new();
    let mut results: &[CallResult] = &[];
    for entry in history.entries().iter().rev() {
        match &**entry {
            Message::User(_) => break,
            Message::Results { results: of } => results = of,
            Message::Assistant(message) => {
                let calls: Vec<&ToolCall> = message.calls().collect();
                for call in calls.into_iter().rev() {
                    found.push(Done::new(call, results.iter().find(|result| result.call_id == call.id)));
                }
                results = &[];
            }
        }
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    found.reverse();
    found
}

/// The shortest cycle at the end of these calls that has come at least `least` times: its length, and how often.
fn cycle(done: &[Done], least: usize) -> Option<(usize, usize)> {
    (1..=LONGEST_CYCLE).find_map(|length| {
        let pairs = done.iter().rev().zip(done.iter().rev().skip(length));
        let same = pairs.take_while(|(newer, older)| newer.is_like(older)).count();
        let times = same / length + 1;
        (times >= least).then_some((length, times))
    })
}

fn stop(what: String) -> CallVerdict {
    let actor = Actor::Hook("LoopGuard".into());
    let reason = Reason::new(Code::LOOP).with_actor(actor).with_text(what);
    CallVerdict::Stop(StopRequest::at(SafePoints::ANY).with_reason(reason))
}
