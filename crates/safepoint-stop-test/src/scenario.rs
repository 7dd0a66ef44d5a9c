//! The moments at which a stop is tried, as a table.

use serde::Serialize;

/// A moment at which a target is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Scenario {
    /// Its number in the table.
    pub number: u32,
    /// Its name, as `--only` takes it.
    pub name: &'static str,
    /// What is under way when the stop comes.
    pub moment: StopMoment,
    /// How many times it is asked to stop, one right after the other.
    pub stops: u32,
    /// What is tried, in a sentence.
    pub what: &'static str,
    /// Where field reports or a specification say that stops fail there.
    pub source: &'static str,
}

/// What is under way when a stop comes. Exhaustive: the stage plays each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StopMoment {
    /// It was asked something, and may not have asked its model yet.
    AtOnce,
    /// The model was asked and has answered nothing, not even a status.
    HeadersAwaited,
    /// The answer has begun, and nothing more comes.
    StreamSilent,
    /// The answer comes, a piece at a time.
    StreamDrips,
    /// The answer is in the middle of the arguments of a call.
    InArguments,
    /// A tool works that was given the target's way to cancel.
    Tool,
    /// A tool works that looks at nothing.
    ToolDeaf,
    /// A command runs.
    Command,
    /// A command runs, and a process of it that left its session and ignores signals.
    CommandApart,
    /// Two of three calls of one answer still work.
    OneOfThree,
    /// A person is asked whether a command may run.
    Question,
    /// The model was busy, and the target waits to ask it again.
    Retry,
    /// The answer has come, and the turn is over.
    AfterEnd,
}

impl StopMoment {
    /// Whether it is one of a model's answer.
    pub(crate) fn needs_a_model(self) -> bool {
        match self {
            Self::HeadersAwaited
            | Self::StreamSilent
            | Self::StreamDrips
            | Self::InArguments
            | Self::Retry => true,
            Self::AtOnce
            | Self::Tool
            | Self::ToolDeaf
            | Self::Command
            | Self::CommandApart
            | Self::OneOfThree
            | Self::Question
            | Self::AfterEnd => false,
        }
    }
}

/// The scenario without a stop.
pub const CONTROL: &str = "control";

const fn scenario(number: u32, name: &'static str, moment: StopMoment, words: [&'static str; 2]) -> Scenario {
    let [what, source] = words;
    Scenario { number, name, moment, stops: 1, what, source }
}

/// All scenarios that can be played, in the order of the table.
pub const SCENARIOS: [Scenario; 16] = [
    Scenario {
        stops: 0,
        ..scenario(
            0,
            CONTROL,
            StopMoment::AfterEnd,
            [
                "it is not stopped at all: a turn with a call, and the next message",
                "what breaks without a stop is no fault of one",
            ],
        )
    },
    scenario(
        1,
        "at-once",
        StopMoment::AtOnce,
        ["the stop comes right after the question", "FIELD T6: a stop that races the start is lost"],
    ),
    scenario(
        2,
        "headers-awaited",
        StopMoment::HeadersAwaited,
        ["the model was asked and has answered nothing", "spec S3.2"],
    ),
    scenario(
        3,
        "stream-silent",
        StopMoment::StreamSilent,
        ["the model's answer has begun, and nothing more comes", "Eino 0.9.21 leaves a silent stream open"],
    ),
    scenario(
        4,
        "stream-drips",
        StopMoment::StreamDrips,
        ["the model's answer comes a piece at a time", "Semantic Kernel for Java closes nothing"],
    ),
    scenario(
        5,
        "in-arguments",
        StopMoment::InArguments,
        ["the model is in the middle of the arguments of a call", "spec S4.1"],
    ),
    scenario(
        6,
        "tool",
        StopMoment::Tool,
        [
            "a tool works that was given the target's own way to cancel",
            "FIELD T3: LangChain4j leaves the tool",
        ],
    ),
    scenario(7, "tool-deaf", StopMoment::ToolDeaf, ["a tool works that looks at no stop", "spec S6.3"]),
    scenario(
        8,
        "command",
        StopMoment::Command,
        ["a command runs", "both Codex adapters say `cancelled` while it runs"],
    ),
    scenario(
        9,
        "command-apart",
        StopMoment::CommandApart,
        ["a command runs, with a process in a session of its own that ignores signals", "spec S9.4"],
    ),
    scenario(
        10,
        "one-of-three",
        StopMoment::OneOfThree,
        ["one of three calls is done, and two work", "burnside settles none of them"],
    ),
    scenario(
        11,
        "question",
        StopMoment::Question,
        ["a person is asked whether a command may run", "spec S8.1"],
    ),
    scenario(
        13,
        "retry",
        StopMoment::Retry,
        [
            "the model was busy (429), and the target waits to ask again",
            "FIELD T7: a stop waits for the next try",
        ],
    ),
    Scenario {
        stops: 2,
        ..scenario(
            15,
            "twice",
            StopMoment::StreamSilent,
            ["it is asked to stop twice, in a silent stream", "FIELD T4: a second stop kills too much"],
        )
    },
    Scenario {
        stops: 16,
        ..scenario(
            15,
            "sixteen",
            StopMoment::StreamDrips,
            ["it is asked to stop 16 times at once", "spec S5.1"],
        )
    },
    scenario(
        15,
        "after-end",
        StopMoment::AfterEnd,
        ["it is asked to stop when its turn is over", "FIELD T4: a late stop hits the next turn"],
    ),
];

/// What no door can bring about yet, with the reason: number, name, why.
pub const UNPLAYED: [(u32, &str, &str); 5] = [
    (12, "sub-agent", "each target asks for a sub-agent by a tool of its own, which no door knows"),
    (14, "summing-up", "when a history is summed up is each target's own limit, which no door knows"),
    (16, "safe-point", "a stop at a safe point is a way to stop, `--way`, where the target has one"),
    (17, "client-vanishes", "that the client vanishes is a way to stop, `--way`, where the door has one"),
    (18, "target-killed", "that the target is killed is the way `sigkill` of the door `program`"),
];

impl Scenario {
    /// The scenarios of this name or number.
    #[must_use]
    pub fn named(name: &str) -> Vec<Self> {
        let is_so = |scenario: &Self| scenario.name == name || scenario.number.to_string() == name;
        SCENARIOS.into_iter().filter(is_so).collect()
    }
}
