//! `safepoint steer`: sends a message to a turn that runs in another process.

use std::process::ExitCode;

use super::push::text;
use crate::{
    api::talk,
    args::control::{PolicyArg, SteerArgs},
    control::{Ask, PushAsk, Wait},
};

pub(crate) async fn steer(args: SteerArgs) -> anyhow::Result<ExitCode> {
    let ask = text(&args.text).map(|text| {
        Ask::Push(PushAsk {
            text,
            policy: PolicyArg::Steer,
            or: args.or,
            wait: if args.wait { Wait::Settled } else { Wait::No },
            ..PushAsk::default()
        })
    });
    talk(&args.common, ask).await
}
