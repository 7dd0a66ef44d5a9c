//! What a stop really did, as one word.
//!
//! ```
//! use safepoint_stop_test::Verdict;
//! assert!(Verdict::Ends < Verdict::Lies, "the better one is less");
//! assert_eq!(Verdict::LetsGo.to_string(), "lets go");
//! assert_eq!("says-so".parse(), Ok(Verdict::SaysSo));
//! ```

use std::fmt;

use serde::Serialize;

/// What a stop really did, from best to worst. Exhaustive: each stop is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The work had ended when the caller was told so.
    Ends,
    /// The caller was told first, and the work ended by itself soon after.
    EndsLate,
    /// Work continues, and the target names it.
    SaysSo,
    /// The caller has control back, work continues, and nothing says so.
    LetsGo,
    /// The stop had no effect.
    GoesOn,
    /// The target says that it ended, and it had not.
    Lies,
    /// The target hangs or crashes, or its conversation cannot be continued.
    Breaks,
}

impl Verdict {
    /// All of them, from best to worst.
    pub const ALL: [Self; 7] =
        [Self::Ends, Self::EndsLate, Self::SaysSo, Self::LetsGo, Self::GoesOn, Self::Lies, Self::Breaks];

    /// Its word, as the table has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ends => "ends",
            Self::EndsLate => "ends late",
            Self::SaysSo => "says so",
            Self::LetsGo => "lets go",
            Self::GoesOn => "goes on",
            Self::Lies => "lies",
            Self::Breaks => "breaks",
        }
    }

    /// What it means, for a reader who has never thought about stops.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ends => "the work had ended when the caller was told so",
            Self::EndsLate => "the caller was told first; the work ended by itself within two seconds",
            Self::SaysSo => "work continues, and the target names it",
            Self::LetsGo => "the caller has control back, work continues, and nothing says so",
            Self::GoesOn => "the stop had no effect",
            Self::Lies => "the target says that it ended, and it had not",
            Self::Breaks => "the target hangs or crashes, or its conversation cannot be continued",
        }
    }

    /// Whether whoever asked for the stop is worse off than they believe.
    #[must_use]
    pub fn is_bad(self) -> bool {
        self >= Self::LetsGo
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl std::str::FromStr for Verdict {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let spaced = word.replace('-', " ");
        let found = Self::ALL.into_iter().find(|verdict| verdict.word() == spaced);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|verdict| verdict.word().replace(' ', "-")).join(", ");
            format!("`{word}` is no verdict; these are: {all}")
        })
    }
}
