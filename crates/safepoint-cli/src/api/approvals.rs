//! The questions of a session on a server: listed, and answered.
//!
//! **Invariants**: an answer is to the question as it was read, by its digest; who answers is the token's name.

use std::process::ExitCode;

use jiff::Timestamp;
use safepoint::approval::{ApprovalKind, ApprovalRequest, Decision};
use serde_json::{Value, json};

use super::{
    client::{ApiRequest, ServerApi},
    failure::{ApiError, Problem},
    items::text,
    sessions::failed,
};
use crate::{
    args::store::StoreArgs,
    control::Reply,
    exit::{Usage, code},
    output,
    render::{approval, reply_json::ReplyLines, text::moment},
    visible::one_line,
};

/// Letters of a call that was decided about.
const DECIDED: usize = 400;
/// Why a call that may have happened is not allowed for good.
pub(crate) const NOT_ALWAYS: &str =
    "this call may have happened already: --always is for calls that have not; approve alone runs it again";
/// Letters of a name that is shown.
const NAME: usize = 120;

/// One question, as a server says it.
pub(crate) struct ServerApproval {
    pub(crate) id: String,
    /// The question; none: this release cannot read it.
    asked: Option<ApprovalRequest>,
    said: Value,
}

impl ServerApproval {
    fn read(said: Value) -> Self {
        let mut fields = said.clone();
        // Which call of which run asks is not said.
        fields["call_id"] = json!("");
        Self { id: text(&said["id"]), asked: serde_json::from_value(fields).ok(), said }
    }

    /// Whether it can still be answered.
    pub(crate) fn is_open(&self) -> bool {
        let is_over = |asked: &ApprovalRequest| asked.expires_at <= Timestamp::now();
        self.said["state"] == "open" && !self.asked.as_ref().is_some_and(is_over)
    }

    /// When it was asked.
    pub(crate) fn asked_at(&self) -> Option<Timestamp> {
        self.said["asked_at"].as_str()?.parse().ok()
    }

    fn state(&self) -> String {
        match self.said["state"].as_str().unwrap_or_default() {
            "open" if !self.is_open() => "expired".to_owned(),
            "decided" => match self.said["by"].as_str() {
                Some(by) => format!("decided by {}", one_line(by, NAME)),
                None => "decided".to_owned(),
            },
            "withdrawn" => "taken back".to_owned(),
            other => one_line(other, NAME),
        }
    }

    fn shown(&self) -> String {
        let id = one_line(&self.id, NAME);
        let Some(asked) = &self.asked else {
            return format!("{id}  {}  (of another version: cannot be decided here)", self.state());
        };
        if self.is_open() {
            return format!("{id}  open until {}\n{}", moment(asked.expires_at), approval::put(asked));
        }
        format!("{id}  {}: {}", self.state(), one_line(&format!("{} {}", asked.tool, asked.args), DECIDED))
    }

    fn fields(&self) -> Value {
        let said = &self.said;
        json!({
            "approval_id": self.id, "state": self.state(), "open": self.is_open(), "question": said["question"],
            "tool": text(&said["tool"]), "args": said["args"], "digest": said["digest"], "decision": null,
            "asked_at": said["asked_at"], "expires_at": said["expires_at"],
        })
    }
}

/// `approvals --server`: the open ones first.
///
/// # Errors
/// If stdout does not take it.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn list(server: &ServerApi, named: &str, place: &StoreArgs) -> anyhow::Result<ExitCode> {
    let (session, mut rows) = match server.approvals(named).await {
        Ok(read) => read,
        Err(error) => return failed(server, &error, named, place),
    };
    rows.sort_by_key(|row| !row.is_open());
    let mut lines = ReplyLines::default();
    for row in &rows {
        if place.json {
            lines.say("approval", Some(&session), row.fields())?;
        } else {
            output::say(row.shown())?;
        }
    }
    if place.json {
        return Ok(ExitCode::SUCCESS);
    }
    let session = one_line(&session, NAME);
    match (rows.len(), rows.iter().filter(|row| row.is_open()).count()) {
        (0, _) => output::tell(format_args!("session {session} has no approvals")),
        (_, 0) => output::tell(format_args!("no question of {session} is open")),
        (_, open) => {
            let id = if open == 1 { "" } else { " ID" };
            output::tell(format_args!(
                "`safepoint approve {session}{id} --server {}` runs it (--args JSON, --always); `deny` and `respond --message \
                 RESULT` do not",
                server.name()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl ServerApi {
    /// The questions of the session that is meant, and its id.
    ///
    /// # Errors
    /// If they cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn approvals(&self, named: &str) -> Result<(String, Vec<ServerApproval>), ApiError> {
        let read = async |session: &str| self.all(&["sessions", session, "approvals"]).await;
        let (session, rows) = self.of_session(named, read).await?;
        Ok((session, rows.into_iter().map(ServerApproval::read).collect()))
    }

    /// Sends a decision; its exit code, and what it came to.
    ///
    /// # Errors
    /// If it was not answered.
    ///
    /// # Cancel safety
    /// The decision may have been taken.
    pub(crate) async fn decide(
        &self,
        session: &str,
        approval: &ServerApproval,
        decision: &Decision,
    ) -> Result<Reply, ApiError> {
        let Some(asked) = &approval.asked else {
            let why =
                format!("{} is of another version and cannot be decided here", one_line(&approval.id, NAME));
            return Ok(Reply::new(code::CONFLICT, "refused", why));
        };
        if let (Decision::ApproveAlways { .. }, ApprovalKind::AfterUnknownEnd) = (decision, asked.question) {
            return Err(ApiError::Unusable(Usage(NOT_ALWAYS.to_owned())));
        }
        let path = ["sessions", session, "approvals", &approval.id, "decision"];
        let body = body(decision, &asked.digest);
        let send = async || self.send(ApiRequest::post(&path, body.clone())).await;
        let answer = match send().await {
            // The same decision again is no error.
            Err(ApiError::Broken(_)) => send().await,
            answer => answer,
        };
        match answer {
            Ok(answer) if answer.body["already"] == true => {
                Ok(Reply::new(code::ACCEPTED, "already", "already so: this was decided before"))
            }
            Ok(_) => {
                let what = approval::taken(asked, decision);
                Ok(Reply::new(code::ACCEPTED, "taken", format!("{what}. Recorded; the server resumes it")))
            }
            Err(ApiError::Refused(problem)) => match refused(&problem, session, &self.name()) {
                Some((number, said)) => Ok(Reply::new(number, &problem.code, said)),
                None => Err(ApiError::Refused(problem)),
            },
            Err(error) => Err(error),
        }
    }
}

fn body(decision: &Decision, digest: &str) -> Value {
    match decision {
        Decision::Approve => json!({"digest": digest, "decision": "approve"}),
        Decision::ApproveAlways { covers } => {
            json!({"digest": digest, "decision": "approve_always", "covers": covers})
        }
        Decision::ApproveWith { args, message } => {
            json!({"digest": digest, "decision": "approve_with", "args": args, "message": message})
        }
        Decision::Deny { message } => json!({"digest": digest, "decision": "deny", "message": message}),
        Decision::Respond { result } => json!({"digest": digest, "decision": "respond", "result": result}),
    }
}

/// Why the decision does not count; none for any other refusal.
fn refused(problem: &Problem, session: &str, server: &str) -> Option<(u8, String)> {
    let fields = &problem.fields;
    Some(match &*problem.code {
        "decided_otherwise" => {
            let by = one_line(fields["by"].as_str().unwrap_or("another"), NAME);
            let at = fields["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            let at = at.map_or(String::new(), |at| format!(" at {}", moment(at)));
            let decided = fields["decision"].as_str().map_or("decided", past);
            (code::TOO_LATE, format!("already {decided} by {by}{at}; the first answer counts"))
        }
        "withdrawn" => (
            code::TOO_LATE,
            "too late: a stop took this question back, and the call did not begin; a resume asks again, under a new id".into(),
        ),
        "expired" => (code::TOO_LATE, "expired: the call was denied without an answer".into()),
        "other_arguments" => (
            code::CONFLICT,
            format!("the question is about other arguments now; look again: safepoint approvals {session} --server {server}"),
        ),
        "no_such_approval" => (code::NONE_SUCH, "there is no such question".into()),
        _ => return None,
    })
}

/// What a decision was, by its name.
fn past(decision: &str) -> &'static str {
    match decision {
        "approve" => "approved",
        "approve_always" => "approved, always,",
        "approve_with" => "approved with other arguments",
        "deny" => "denied",
        "respond" => "answered instead",
        _ => "decided",
    }
}
