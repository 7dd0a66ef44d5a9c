//! `safepoint doctor`: what is found, what is missing, and how to correct it.

mod checks;

use std::{fmt, process::ExitCode};

use crate::{
    args::config::DoctorArgs,
    exit::{self, code},
    output,
};

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    state: Health,
    found: String,
    /// What to do about it.
    remedy: Option<String>,
}

/// How it stands. Exhaustive: well, of use to know, or broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Ok,
    Note,
    Broken,
}

impl Finding {
    fn ok(what: &'static str, found: impl fmt::Display) -> Self {
        Self { what, state: Health::Ok, found: found.to_string(), remedy: None }
    }

    fn note(what: &'static str, found: impl fmt::Display, remedy: impl Into<String>) -> Self {
        Self { what, state: Health::Note, found: found.to_string(), remedy: Some(remedy.into()) }
    }

    fn broken(what: &'static str, found: impl fmt::Display, remedy: impl Into<String>) -> Self {
        Self { what, state: Health::Broken, found: found.to_string(), remedy: Some(remedy.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            Health::Ok => "ok",
            Health::Note => "note",
            Health::Broken => "broken",
        };
        write!(f, "{state:<7} {:<10} {}", self.what, self.found)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n{:>18} {remedy}", "→"),
            None => Ok(()),
        }
    }
}

/// Looks at everything, and says what it found.
///
/// # Errors
/// If stdout does not take it.
pub(crate) async fn doctor(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = checks::all(&args.place).await;
    let mut count = 0;
    for finding in &findings {
        count += usize::from(finding.state == Health::Broken);
        output::say(finding)?;
    }
    output::say(match count {
        0 => "nothing is broken".to_owned(),
        1 => "1 thing is broken".to_owned(),
        many => format!("{many} things are broken"),
    })?;
    Ok(exit::with(if count == 0 { code::ACCEPTED } else { code::OTHER }))
}
