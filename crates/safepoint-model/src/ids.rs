//! Names of things: every id is its own type, so that none can stand where another is meant.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

pub(crate) mod unique;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(inline))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);
        impl $name {
            /// A fresh id; ids sort by the time of their making.
            #[must_use]
            pub fn fresh() -> Self {
                Self(format!(concat!($word, "_{}"), unique::unique().simple()).into())
            }
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// One run: an agent's execution on one input, over all its attempts.
    RunId, "run"
}
impl CallId {
    /// The text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

id! {
    /// One tool call, unique within its history. A call whose model gave no id, or one that is taken, gets a fresh one.
    CallId, "call"
}
id! {
    /// One question to the approver: may this call run? One that is asked again gets a new id (S8.3).
    ApprovalId, "apr"
}
id! {
    /// One message that a run is steered with.
    SteerId, "str"
}

/// Where a run hangs in its tree: the calls that lead to it from the root, whose own path is empty.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Path(Arc<[CallId]>);

impl Path {
    /// The path of the run that is the work of `call`.
    #[must_use]
    pub fn of(&self, call: &CallId) -> Self {
        Self(self.0.iter().chain([call]).cloned().collect())
    }

    /// The calls, from the root on.
    #[must_use]
    pub fn calls(&self) -> &[CallId] {
        &self.0
    }

    /// Whether it is the root's.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it leads through `other`, or is it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("root")?;
        self.0.iter().try_for_each(|call| write!(f, "/{call}"))
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(inline))]
        #[serde(transparent)]
        pub struct $name(u64);
        impl $name {
            /// The id with this number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }
            /// The number alone.
            #[must_use]
            pub const fn number(self) -> u64 {
                self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, "-{}"), self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let number = text.strip_prefix(concat!($word, "-")).unwrap_or(text);
                number.parse().map(Self).map_err(|_not_a_number| NotAnId { text: text.to_owned(), word: $word })
            }
        }
    };
}

number! {
    /// One item of a session: its place in the order in which items were accepted.
    ItemId, "item"
}
number! {
    /// One turn of a session, counted from 1.
    TurnId, "turn"
}

/// A text that is not the id that it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no id; write it as `{word}-7` or `7`")]
pub struct NotAnId {
    text: String,
    word: &'static str,
}

id! {
    /// One session: a conversation with an inbox.
    SessionId, "ses"
}
id! {
    /// One node: a process, or a part of one, that may hold sessions.
    NodeId, "node"
}
