//! Decisions about the questions of a session on a server.

use std::process::ExitCode;

use jiff::Timestamp;
use safepoint::{approval::Decision, ids::SessionId};

use super::{Question, meant, show_result};
use crate::{
    api::{ServerApi, approvals::ServerApproval, sessions::failed},
    args::approvals::DecideArgs,
    command::store::none_such,
    exit::code,
};

/// Decides one approval; the first decision counts, from wherever it comes.
///
/// # Errors
/// If stdout does not take the outcome.
///
/// # Cancel safety
/// The decision may have been taken.
pub(super) async fn decide(
    server: &ServerApi,
    args: &DecideArgs,
    decision: &Decision,
) -> anyhow::Result<ExitCode> {
    let (session, rows) = match server.approvals(&args.session).await {
        Ok(read) => read,
        Err(error) => return failed(server, &error, &args.session, &args.place),
    };
    let id = SessionId::from(session.as_str());
    let row = match meant(rows, args.approval.as_deref(), &id) {
        Ok(row) => row,
        Err(why) => return none_such((&id, "no_such_approval"), why, &args.place),
    };
    let (is_open, name) = (row.is_open(), row.id.clone());
    let reply = match server.decide(&session, &row, decision).await {
        Ok(reply) => reply,
        Err(error) => return failed(server, &error, &session, &args.place),
    };
    let (mut code, mut said) = (reply.code, reply.message);
    if args.approval.is_none() && !is_open {
        // No id was given, so the answer was meant for an open approval, and none is open.
        code = code::TOO_LATE;
        said = format!("no question of {session} is open; the last one, {name}: {said}");
    }
    show_result(&id, Some(&name), (code, &said), &args.place)
}

impl Question for ServerApproval {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_open(&self) -> bool {
        self.is_open()
    }

    fn at(&self) -> Option<Timestamp> {
        self.asked_at()
    }
}
