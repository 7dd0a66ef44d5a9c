//! Why something must end: structured, with who asked and what began a cascade (S1.10).

use std::{borrow::Cow, fmt, sync::Arc, time::SystemTime};

/// Why a stop was asked. Cheap to clone.
///
/// ```
/// use safepoint_scope::{Actor, Code, Reason};
/// let quit = Reason::user("ctrl-c");
/// let child = Reason::new(Code::PARENT).by(Actor::Parent).caused_by(&quit);
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
    /// Whoever watched went away.
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
    /// Somebody on another machine.
    Remote(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Program => f.write_str("program"),
            Self::Engine => f.write_str("engine"),
            Self::Parent => f.write_str("parent"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Hook(name) => write!(f, "hook {name}"),
            Self::Remote(name) => write!(f, "remote {name}"),
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
            at: SystemTime::now(),
            cause: None,
        }))
    }

    /// A person's reason, in their words.
    #[must_use]
    pub fn user(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::USER).by(Actor::Person).saying(text)
    }

    /// Sets who asked.
    #[must_use]
    pub fn by(mut self, actor: Actor) -> Self {
        Arc::make_mut(&mut self.0).actor = actor;
        self
    }

    /// Sets the words.
    #[must_use]
    pub fn saying(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        Arc::make_mut(&mut self.0).text = text.into();
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
