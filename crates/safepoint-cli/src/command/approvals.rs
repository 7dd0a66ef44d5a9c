//! `safepoint approvals`, `approve`, `deny`, `respond`: the approvals of a stored session, from any process.
//!
//! **Invariants**: the first decision counts, and a later one gets an error that says why it does not; no
//! command of a run decides.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use jiff::Timestamp;
use safepoint::{
    approval::{AllowScope, ApprovalKind, ApprovalRequest, Decision},
    ids::SessionId,
    raw::{
        decode_approval,
        store::{ApprovalRow, ApprovalState, DecisionUse},
    },
    store::Store,
};
use safepoint_tools::process::enclosing_run;
use serde_json::{Value, json};

mod decide;
mod served;

use crate::{
    api::{self, ServerApi, approvals::NOT_ALWAYS},
    args::{
        approvals::{ApprovalsArgs, DecideArgs, Reach},
        store::StoreArgs,
    },
    command::store::{found, no_session, none_such, show_outcome},
    exit::{Usage, code},
    output,
    render::{
        approval::{is_open, verb},
        edit,
        reply_json::ReplyLines,
        text::moment,
    },
    settings::remembered::Setup,
    visible::one_line,
};
use decide::judged;

/// Letters of a call that was decided about.
const DECIDED: usize = 400;

/// What a decision is. Exhaustive: the three commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Approve,
    Deny,
    Respond,
}

/// Lists the approvals of a session, the open ones first.
pub(crate) async fn approvals(args: ApprovalsArgs) -> anyhow::Result<ExitCode> {
    if let Some(server) = ServerApi::meant(&args.server, args.place.store.as_ref())? {
        return api::approvals::list(&server, &args.session, &args.place).await;
    }
    let session = SessionId::from(args.session);
    let read = found(&args.place, async |store| store.approvals(&session).await);
    let Some((store, mut rows)) = read.await? else { return no_session(&session, &args.place) };
    let root = root_of(&store, &session).await;
    rows.sort_by_key(|row| !is_open(row));
    let mut lines = ReplyLines::default();
    for row in &rows {
        if args.place.json {
            lines.say("approval", Some(session.as_str()), fields(row))?;
        } else {
            output::say(shown(row, root.clone()).await)?;
        }
    }
    let open = rows.iter().filter(|row| is_open(row)).count();
    if args.place.json {
        return Ok(ExitCode::SUCCESS);
    }
    match (rows.len(), open) {
        (0, _) => output::tell(format_args!("session {session} has no approvals")),
        (_, 0) => output::tell(format_args!("no question of {session} is open")),
        (_, open) => {
            let id = if open == 1 { "" } else { " ID" };
            output::tell(format_args!(
                "`safepoint approve {session}{id}` runs it (--args JSON, --always); `deny` and `respond --message RESULT` do not"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The question, if it shows what would run.
fn asked(row: &ApprovalRow) -> Option<ApprovalRequest> {
    decode_approval(&row.asked.bytes, &row.asked.digest).ok()
}

/// One approval: what exactly would run while it is open, and what became of it after that.
async fn shown(row: &ApprovalRow, root: Option<PathBuf>) -> String {
    let id = &row.asked.id;
    let Some(asked) = asked(row) else {
        return format!("{id}  {}  (damaged: cannot be decided)", state(row));
    };
    if is_open(row) {
        let until = moment(row.asked.expires);
        let view = edit::looked(root, &asked).await;
        return format!("{id}  open until {until}\n{}", edit::put(&asked, view.as_ref()));
    }
    let (tool, args) = (&asked.tool, asked.args.to_string());
    format!("{id}  {}: {}", state(row), one_line(&format!("{tool} {args}"), DECIDED))
}

/// The directory that the session's tools work in.
async fn root_of(store: &Arc<dyn Store>, session: &SessionId) -> Option<PathBuf> {
    Setup::read(&store.open(session).await.ok()?).root()
}

/// The decision, where it approves an edit: bound to the file as it is now, which is shown.
async fn bound(
    decision: Decision,
    asked: &ApprovalRequest,
    root: Option<PathBuf>,
    place: &StoreArgs,
) -> Decision {
    let (asked, said) = match &decision {
        Decision::Approve => (asked.clone(), None),
        Decision::ApproveWith { args, message } => {
            let said = if message.is_empty() { edit::changed(args) } else { message.clone() };
            (edit::with_args(asked, args), Some(said))
        }
        _ => return decision,
    };
    match (edit::looked(root, &asked).await, decision) {
        (Some(view), _) => {
            if !place.json {
                output::tell(edit::put(&asked, Some(&view)));
            }
            view.approve(said)
        }
        (None, Decision::ApproveWith { args, .. }) => {
            Decision::ApproveWith { args, message: said.unwrap_or_default() }
        }
        (None, decision) => decision,
    }
}

fn state(row: &ApprovalRow) -> String {
    match &row.state {
        ApprovalState::Open if row.asked.expires <= Timestamp::now() => "expired".to_owned(),
        ApprovalState::Open => "open".to_owned(),
        ApprovalState::Decided { principal, bytes, used, .. } => {
            let used = if *used == DecisionUse::Used { "" } else { ", not yet acted on" };
            format!("{} by {principal}{used}", verb(bytes))
        }
        ApprovalState::Withdrawn => "taken back".to_owned(),
        ApprovalState::Expired => "expired".to_owned(),
    }
}

fn fields(row: &ApprovalRow) -> Value {
    let asked = asked(row);
    let question = asked.as_ref().map(|asked| asked.question);
    let (tool, arguments) = asked.map_or((String::new(), Value::Null), |asked| (asked.tool, asked.args));
    let decision: Option<Value> = match &row.state {
        ApprovalState::Decided { bytes, .. } => serde_json::from_slice(bytes).ok(),
        _ => None,
    };
    json!({"approval_id": row.asked.id, "state": state(row), "open": is_open(row), "question": question, "tool": tool, "args": arguments, "digest": row.asked.digest,
        "decision": decision, "asked_at": row.at, "expires_at": row.asked.expires})
}

/// Decides one approval; the first decision counts, from whichever process.
pub(crate) async fn decide(verb: Verb, args: DecideArgs) -> anyhow::Result<ExitCode> {
    let decision = decision(verb, &args)?;
    let session = SessionId::from(args.session.as_str());
    // A run must not decide about its own calls.
    if let Some(within) = enclosing_run() {
        let said = format!(
            "refused: this process belongs to a command of a run ({within}); a run cannot decide about its own calls. \
             Decide in your own terminal"
        );
        return show_result(&session, args.approval.as_deref(), (code::CONFLICT, &said), &args.place);
    }
    if let Some(server) = ServerApi::meant(&args.server, args.place.store.as_ref())? {
        return served::decide(&server, &args, &decision).await;
    }
    let read = found(&args.place, async |store| store.approvals(&session).await);
    let Some((store, rows)) = read.await? else { return no_session(&session, &args.place) };
    let row = match meant(rows, args.approval.as_deref(), &session) {
        Ok(row) => row,
        Err(why) => return none_such((&session, "no_such_approval"), why.to_string(), &args.place),
    };
    let id = &row.asked.id;
    let asked = match decode_approval(&row.asked.bytes, &row.asked.digest) {
        Ok(asked) => asked,
        Err(why) => {
            let said = format!(
                "{id} cannot be decided, {why}; `safepoint stop {session}` withdraws it, and a resume asks again"
            );
            return show_result(&session, Some(id.as_str()), (code::CONFLICT, &said), &args.place);
        }
    };
    if let (Decision::ApproveAlways { .. }, ApprovalKind::AfterUnknownEnd) = (&decision, asked.question) {
        return Err(Usage(NOT_ALWAYS.into()).into());
    }
    let is_open = is_open(&row);
    let decision = match is_open {
        true => bound(decision, &asked, root_of(&store, &session).await, &args.place).await,
        false => decision,
    };
    let (mut code, mut said) = judged(&store, &session, &row, decision).await?;
    if args.approval.is_none() && !is_open {
        // No id was given, so the answer was meant for an open approval, and none is open.
        code = code::TOO_LATE;
        said = format!("no question of {session} is open; the last one, {id}: {said}");
    }
    show_result(&session, Some(id.as_str()), (code, &said), &args.place)
}

fn show_result(
    session: &SessionId,
    approval: Option<&str>,
    (code, said): (u8, &str),
    place: &StoreArgs,
) -> anyhow::Result<ExitCode> {
    let fields = json!({"approval_id": approval, "code": code, "said": said});
    show_outcome(place, ("decided", Some(session.as_str())), fields, (code, said))
}

/// The approval that is named, by an end of its id too; the only open one where none is, and the last one where none is open.
fn meant<T: Question>(mut rows: Vec<T>, named: Option<&str>, session: &SessionId) -> Result<T, String> {
    let lists = format!("`safepoint approvals {session}` lists them");
    match named {
        None if rows.iter().any(T::is_open) => rows.retain(T::is_open),
        None => {
            rows.sort_by_key(T::at);
            rows.drain(..rows.len().saturating_sub(1));
        }
        Some(id) if rows.iter().any(|row| row.id() == id) => rows.retain(|row| row.id() == id),
        Some(end) => rows.retain(|row| row.id().ends_with(end)),
    }
    match (rows.pop(), rows.len(), named) {
        (Some(row), 0, _) => Ok(row),
        (None, _, None) => Err(format!("no question of {session} is open; {lists}")),
        (Some(_), _, None) => Err(format!("more than one question of {session} is open: name one; {lists}")),
        (None, _, Some(id)) => Err(format!("no approval {id} in {session}; {lists}")),
        (Some(_), _, Some(id)) => Err(format!("more than one approval of {session} ends in {id}; {lists}")),
    }
}

/// A question as it is named and chosen, wherever it is kept.
trait Question {
    fn id(&self) -> &str;
    fn is_open(&self) -> bool;
    /// When it was asked.
    fn at(&self) -> Option<Timestamp>;
}

impl Question for ApprovalRow {
    fn id(&self) -> &str {
        self.asked.id.as_str()
    }

    fn is_open(&self) -> bool {
        is_open(self)
    }

    fn at(&self) -> Option<Timestamp> {
        Some(self.at)
    }
}

fn decision(verb: Verb, args: &DecideArgs) -> anyhow::Result<Decision> {
    let message = args.message.clone();
    let refused = |why: &str| Err(Usage(why.into()).into());
    if verb != Verb::Approve && args.always.is_some() {
        return refused("--always belongs to approve; a rule with then = \"deny\" denies every time");
    }
    Ok(match (verb, &args.args) {
        (Verb::Approve, None) if message.is_some() => {
            return refused("--message belongs to deny and respond, and to approve with --args");
        }
        (Verb::Approve, None) => match args.always {
            None => Decision::Approve,
            Some(Reach::Call) => Decision::ApproveAlways { covers: AllowScope::Call },
            Some(Reach::Tool) => Decision::ApproveAlways { covers: AllowScope::Tool },
        },
        (Verb::Approve, Some(text)) => {
            let args =
                serde_json::from_str(text).map_err(|error| Usage(format!("--args is not JSON: {error}")))?;
            if !matches!(args, Value::Object(_)) {
                return refused("--args is not a JSON object: write {\"name\": value, ...}");
            }
            Decision::ApproveWith { args, message: message.unwrap_or_default() }
        }
        (_, Some(_)) => return refused("--args belongs to approve"),
        (Verb::Deny, None) => Decision::Deny { message: message.unwrap_or_default() },
        (Verb::Respond, None) => Decision::Respond {
            result: message.ok_or_else(|| Usage("respond needs --message: the result of the call".into()))?,
        },
    })
}
