//! What the model behind an agent says in each scenario. Each run has a unique mark, which separates its
//! facts from those of earlier runs.

use serde_json::{Value, json};

use super::super::super::{Reach, Wanted};

/// What is done with an agent. Exhaustive: each is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    Done,
    Stop(Phase),
    Kill,
    Cut,
    Again,
}

/// What it is in the middle of when it is stopped. Exhaustive: each has its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its model answers, word by word.
    Drips,
    /// Its model says nothing.
    Silent,
    /// Its model says nothing more.
    FallsSilent,
    /// A tool runs, which an interrupt ends.
    Tool,
    /// A running tool ignores interrupts.
    DeafTool,
}

/// A scenario in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) scenario: Scenario,
    pub(super) round: u32,
    /// No other of its round has this number.
    pub(super) run: u32,
}

const SCENARIOS: [(Scenario, Reach); 9] = [
    (Scenario::Done, Reach::Default),
    (Scenario::Stop(Phase::Drips), Reach::Default),
    (Scenario::Stop(Phase::Silent), Reach::All),
    (Scenario::Stop(Phase::FallsSilent), Reach::All),
    (Scenario::Stop(Phase::Tool), Reach::Default),
    (Scenario::Stop(Phase::DeafTool), Reach::All),
    (Scenario::Kill, Reach::Default),
    (Scenario::Cut, Reach::Default),
    (Scenario::Again, Reach::All),
];

/// Milliseconds before a word of the model's.
const PACE: u64 = 100;
/// Words of an answer in whose middle something happens, and of one that is waited for.
const LONG: u32 = 40;
const SHORT: u32 = 5;
/// Pieces of the model's stream before it falls silent.
const SEEN: u32 = 8;
/// How long a tool runs, in tenths of a second.
pub(super) const TICKS: usize = 40;

/// What is wanted of a round, in order.
pub(super) fn plan(wanted: &Wanted, round: u32) -> Vec<Planned> {
    let scenarios = SCENARIOS.into_iter().filter(|(_, reach)| wanted.reach.includes(*reach));
    scenarios.zip(1..).map(|((scenario, _), run)| Planned { scenario, round, run }).collect()
}

impl Scenario {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Stop(Phase::Drips) => "stopped while its model answers",
            Self::Stop(Phase::Silent) => "stopped while its model is silent",
            Self::Stop(Phase::FallsSilent) => "stopped when its model has fallen silent",
            Self::Stop(Phase::Tool) => "stopped while a tool runs",
            Self::Stop(Phase::DeafTool) => "stopped while a tool runs that is deaf to interrupts",
            Self::Kill => "our binary is killed while it works, and resumed",
            Self::Cut => "the line is cut while it works",
            Self::Again => "a second prompt",
        }
    }

    /// How many words its answer has.
    fn words(self) -> u32 {
        match self {
            Self::Done | Self::Again => SHORT,
            Self::Stop(_) | Self::Kill | Self::Cut => LONG,
        }
    }
}

impl Planned {
    /// What it is asked for.
    pub(super) fn prompt(&self) -> String {
        match self.scenario {
            Scenario::Stop(Phase::Tool | Phase::DeafTool) => format!("call the tool {}", self.mark()),
            _ => format!("say {}", self.mark()),
        }
    }

    /// What it is asked for after that, in the same session, and all that its model says to it.
    pub(super) fn then(&self) -> (String, String) {
        (format!("say {}", self.second_mark()), pieces(&self.second_mark(), SHORT).concat())
    }

    /// A mark that no other run uses; a second prompt has a different one.
    pub(super) fn mark(&self) -> String {
        format!("r{}.", self.run)
    }

    pub(super) fn second_mark(&self) -> String {
        format!("r{}b.", self.run)
    }

    /// All that its model says.
    pub(super) fn answer(&self) -> String {
        self.pieces().concat()
    }

    pub(super) fn pieces(&self) -> Vec<String> {
        pieces(&self.mark(), self.scenario.words())
    }

    fn replies(&self, tool: &str) -> Vec<Value> {
        let says = json!({"when": {"user": self.mark()}, "pieces": self.pieces(), "delay_ms": PACE});
        let calls = |deaf: bool| {
            let args = json!({"run": self.run, "ticks": TICKS, "deaf": deaf});
            let when = json!({"user": self.mark(), "results": 0});
            vec![json!({"when": when, "calls": [{"name": tool, "args": args}]}), says.clone()]
        };
        let fault = |fault: Value| {
            let mut reply = says.clone();
            reply["fault"] = fault;
            vec![reply]
        };
        match self.scenario {
            Scenario::Stop(Phase::Tool) => calls(false),
            Scenario::Stop(Phase::DeafTool) => calls(true),
            Scenario::Stop(Phase::Silent) => fault(json!("silence")),
            Scenario::Stop(Phase::FallsSilent) => fault(json!({"stall_after": SEEN})),
            Scenario::Again => {
                let second = pieces(&self.second_mark(), SHORT);
                let second =
                    json!({"when": {"user": self.second_mark()}, "pieces": second, "delay_ms": PACE});
                vec![says, second]
            }
            _ => vec![says],
        }
    }
}

/// `words` words, each with the mark and its number.
fn pieces(mark: &str, words: u32) -> Vec<String> {
    (1..=words).map(|word| format!("{mark}{word} ")).collect()
}

/// The script of all of them, as `safepoint practice` takes it.
pub(super) fn script(plan: &[Planned], tool: &str) -> Value {
    json!({"replies": plan.iter().flat_map(|planned| planned.replies(tool)).collect::<Vec<_>>()})
}
