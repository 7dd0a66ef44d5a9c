//! `safepoint withdraw`: removes a waiting item from a session.

use std::process::ExitCode;

use crate::{
    args::control::WithdrawArgs,
    control::{Ask, talk},
};

pub(crate) async fn withdraw(args: WithdrawArgs) -> anyhow::Result<ExitCode> {
    talk(&args.common, Ok(Ask::Withdraw { item: args.item })).await
}
