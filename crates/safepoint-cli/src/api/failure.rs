//! Why a server did not do what was asked, and what to do about it.

use std::time::Duration;

use safepoint_http::HttpError;
use serde_json::Value;

use crate::{
    control::Reply,
    exit::{Usage, code},
    visible::one_line,
};

/// Letters of a server's own words that are shown.
const SAID: usize = 400;

/// Why a request came to nothing. Exhaustive: each says how far it came.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The server refused it.
    Refused(Box<Problem>),
    /// There is no such session, or not for this token.
    NoSession(String),
    /// It cannot be asked.
    Unusable(Usage),
    /// Nothing was sent.
    Unreachable(HttpError),
    /// It was sent, and the connection broke before the answer.
    Broken(HttpError),
    /// It was sent, and nothing was answered within this time.
    Silent(Duration),
    /// The caller waits no longer. It may have been sent.
    Over,
    /// What answered is no server of ours.
    NotOurs(String),
}

/// The refusal of a server: RFC 9457.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) detail: String,
    /// Everything that it says.
    pub(super) fields: Value,
    /// Where the token is from.
    pub(super) token: String,
    /// When to try again, in seconds.
    pub(super) retry_after: Option<String>,
}

impl ApiError {
    /// The server's code; empty where it said none.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused(problem) => &problem.code,
            _ => "",
        }
    }

    /// Whether the server may have done it.
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Silent(_) | Self::Over)
    }

    /// As the last reply of a command: its exit code, a word for scripts, and what to do.
    pub(crate) fn reply(&self, server: &str) -> Reply {
        let (number, status, said) = match self {
            Self::Refused(problem) => return problem.reply(server),
            Self::NoSession(session) => {
                let said = format!(
                    "session {session} not found on {server}, or not one that this token sees; `safepoint sessions ls --server \
                     {server}` lists those"
                );
                (code::NONE_SUCH, "no_such_session", said)
            }
            Self::Unusable(why) => (code::USAGE, "refused", why.to_string()),
            Self::Unreachable(error) if error.is_untrusted() => {
                let why = one_line(&error.root_cause(), SAID);
                let said = format!(
                    "the certificate of {server} is not accepted: {why}. It must name this server, and be signed by an authority that \
                     this machine trusts: add that to the machine's, or on Linux name its file in SSL_CERT_FILE. One that is its own \
                     authority is not taken for a server's. Nothing was sent"
                );
                (code::OTHER, "unreachable", said)
            }
            Self::Unreachable(error) => {
                let why = one_line(&error.root_cause(), SAID);
                let said = format!(
                    "{server} cannot be reached: {why}. Is `safepoint serve` running there? Nothing was sent"
                );
                (code::OTHER, "unreachable", said)
            }
            Self::Broken(error) => {
                let why = one_line(&error.root_cause(), SAID);
                let said = format!(
                    "the connection to {server} broke before the answer ({why}): it is not known whether this was done"
                );
                (code::OTHER, "unknown", said)
            }
            Self::Silent(within) => {
                let said = format!(
                    "{server} did not answer within {} s: it is not known whether this was done",
                    within.as_secs()
                );
                (code::OTHER, "not_answering", said)
            }
            Self::Over => {
                let said = format!("{server} did not answer in time: it is not known whether this was done");
                (code::TIMED_OUT, "timed_out", said)
            }
            Self::NotOurs(what) => {
                let said = format!("{server} answered {what}: this is not the address of a Safepoint server");
                (code::OTHER, "failed", said)
            }
        };
        Reply::new(number, status, said)
    }
}

impl Problem {
    fn reply(&self, server: &str) -> Reply {
        let Self { status, code, detail, fields, token, retry_after } = self;
        let detail = one_line(detail, SAID);
        let again = retry_after
            .as_ref()
            .map_or(String::new(), |after| format!("; try again in {} s", one_line(after, SAID)));
        let (number, said) = match (status, &**code) {
            (401, _) => (
                code::OTHER,
                format!(
                    "{server} refuses the token of {token}: it is not one of this server, was revoked, or has expired. Make one with \
                     `safepoint token new` where the server is, and give its file with --token-file"
                ),
            ),
            (403, "scope_missing") => {
                let scope = one_line(fields["scope"].as_str().unwrap_or("that this needs"), SAID);
                let said = format!(
                    "the token of {token} may not do this: it lacks the scope `{scope}`. `safepoint token new --scope {scope}`, where the \
                     server is, makes one that may"
                );
                (code::OTHER, said)
            }
            (404, "no_such_route") => (
                code::OTHER,
                format!("{server} has no such route: its path is another, or it is of another version"),
            ),
            (404, _) => (code::NONE_SUCH, detail),
            (421, _) => (
                code::OTHER,
                format!("{detail}: give --server a name of it, or list this one in `hosts` of its [server]"),
            ),
            (429, "inbox_full") => (code::NO_ROOM, detail),
            (429 | 503, _) => (code::OTHER, format!("{detail}{again}")),
            (
                409,
                "other_content" | "session_open" | "turn_active" | "turn_suspended" | "turn_mismatch"
                | "other_arguments",
            ) => (code::CONFLICT, detail),
            (409, "closed") => (code::NO_ROOM, detail),
            (
                409,
                "too_late" | "no_active_turn" | "not_delivered" | "taken" | "decided_otherwise" | "withdrawn"
                | "expired",
            ) => (code::TOO_LATE, detail),
            (409, _) => (code::CONFLICT, detail),
            (400, "unknown_field") => {
                (code::OTHER, format!("{server} is of another version and does not know this: {detail}"))
            }
            (400 | 413 | 415, _) => (code::USAGE, detail),
            _ => (code::OTHER, format!("{server} answered {status}: {detail}")),
        };
        Reply::new(number, code, said).detail(fields.clone())
    }
}
