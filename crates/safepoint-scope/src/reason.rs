//! Why something must end: structured, with who asked and what began a cascade (S1.10).

use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

use crate::clock;

/// Why a stop was asked. Cheap to clone.
///
/// ```
/// use safepoint_scope::{Actor, Code, Reason};
/// let quit = Reason::user("ctrl-c");
/// let child = Reason::new(Code::PARENT).with_actor(Actor::Parent).caused_by(&quit);
/// assert_eq!(child.root().text(), "ctrl-c");
/// ```
#[derive(Clone, PartialEq)]
pub struct Reason(Arc<Inner>);

#[derive(Clone, PartialEq)]
struct Inner {
    code: Code,
    actor: Actor,
    text: Cow<'static, str>,
    at: SystemTime,
    cause: Option<Reason>,
}

/// The code of a reason: an open set of short names; no two ends share one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Code(Cow<'static, str>);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        impl Code { $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text));)* }
    };
}

codes! {
    /// A person asked.
    USER = "user";
    /// A newer item takes the turn.
    PREEMPTED = "preempted";
    /// The enclosing run ended.
    PARENT = "parent";
    /// The process or the session is ending.
    SHUTDOWN = "shutdown";
    /// The right to continue a session was lost: another process has the right, or may have it.
    LEASE = "lease";
    /// The watcher went away.
    DISCONNECT = "disconnect";
    /// A tool asked.
    TOOL = "tool";
    /// A hook asked.
    HOOK = "hook";
    /// The limit of wall time.
    WALL_TIME = "wall_time";
    /// The limit of rounds.
    MAX_ROUNDS = "max_rounds";
    /// The limit of tokens.
    MAX_TOKENS = "max_tokens";
    /// The limit of cost.
    MAX_COST = "max_cost";
    /// The limit of model output.
    OUTPUT_BYTES = "output_bytes";
    /// The model goes round in circles.
    LOOP = "loop";
    /// One call's time limit.
    TIMEOUT = "timeout";
}

impl Code {
    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Code {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Actor {
    /// A person.
    Person,
    /// A person whose name is known.
    Named(String),
    /// The program that uses the library.
    Program,
    /// The runtime itself, for a limit.
    Engine,
    /// The enclosing run.
    Parent,
    /// A tool, by name.
    Tool(String),
    /// A hook, by name.
    Hook(String),
    /// An actor on another machine.
    Remote(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Named(name) => write!(f, "person {name}"),
            Self::Program => f.write_str("program"),
            Self::Engine => f.write_str("engine"),
            Self::Parent => f.write_str("parent"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Hook(name) => write!(f, "hook {name}"),
            Self::Remote(name) => write!(f, "remote {name}"),
        }
    }
}

/// From the text that [`Display`](fmt::Display) makes. An unknown actor is one on another machine.
impl From<&str> for Actor {
    fn from(text: &str) -> Self {
        match text.split_once(' ').unwrap_or((text, "")) {
            ("person", "") => Self::Person,
            ("program", "") => Self::Program,
            ("engine", "") => Self::Engine,
            ("parent", "") => Self::Parent,
            ("person", name) => Self::Named(name.to_owned()),
            ("tool", name) => Self::Tool(name.to_owned()),
            ("hook", name) => Self::Hook(name.to_owned()),
            ("remote", name) => Self::Remote(name.to_owned()),
            _ => Self::Remote(text.to_owned()),
        }
    }
}

impl Reason {
    /// A reason with this code, asked now by the program.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self(Arc::new(Inner {
            code,
            actor: Actor::Program,
            text: Cow::Borrowed(""),
            at: clock::time_of_day(),
            cause: None,
        }))
    }

    /// A person's reason, in their words.
    #[must_use]
    pub fn user(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::USER).with_actor(Actor::Person).with_text(text)
    }

    /// A person's Ctrl-C, which is SIGINT: a program that ends by it ends with 130.
    #[must_use]
    pub fn sigint() -> Self {
        Self::user("ctrl-c")
    }

    /// SIGTERM: a program that ends by it ends with 143.
    #[must_use]
    pub fn sigterm() -> Self {
        Self::user("SIGTERM")
    }

    /// Sets who asked.
    #[must_use]
    pub fn with_actor(mut self, actor: Actor) -> Self {
        Arc::make_mut(&mut self.0).actor = actor;
        self
    }

    /// Sets the words.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        Arc::make_mut(&mut self.0).text = text.into();
        self
    }

    /// Sets when it was asked, where that was before now: it was kept somewhere, or came from elsewhere.
    #[must_use]
    pub fn asked_at(mut self, at: SystemTime) -> Self {
        Arc::make_mut(&mut self.0).at = at;
        self
    }

    /// Says which reason led to this one.
    #[must_use]
    pub fn caused_by(mut self, cause: &Reason) -> Self {
        Arc::make_mut(&mut self.0).cause = Some(cause.clone());
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.0.code
    }

    /// Who asked.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.0.actor
    }

    /// In their words; may be empty.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// When it was asked.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        self.0.at
    }

    /// The reason that led to this one, if one did.
    #[must_use]
    pub fn cause(&self) -> Option<&Reason> {
        self.0.cause.as_ref()
    }

    /// The first reason of the cascade: itself if nothing led to it.
    #[must_use]
    pub fn root(&self) -> &Reason {
        let mut reason = self;
        while let Some(cause) = &reason.0.cause {
            reason = cause;
        }
        reason
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reason({} by {}: {:?})", self.code(), self.actor(), self.text())
    }
}
