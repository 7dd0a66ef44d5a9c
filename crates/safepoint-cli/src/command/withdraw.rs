//! `safepoint withdraw`: removes a waiting item from a session.

use std::process::ExitCode;

use crate::{api::talk, args::control::WithdrawArgs, control::Ask};

pub(crate) async fn withdraw(args: WithdrawArgs) -> anyhow::Result<ExitCode> {
    talk(&args.common, Ok(Ask::Withdraw { item: args.item })).await
}
