//! `safepoint push`: says something to a session that runs elsewhere, or that a store keeps. What is asked is judged before the
//! session is looked for.

use std::{io::Read as _, process::ExitCode, time::Duration};

use crate::{
    api::talk,
    args::control::{OrArg, PushArgs},
    control::{Ask, PushAsk, Wait},
    exit::Usage,
};

pub(crate) async fn push(args: PushArgs) -> anyhow::Result<ExitCode> {
    let common = args.common.clone();
    talk(&common, pushed(args)).await
}

/// The item to push, checked before any process gets it.
fn pushed(args: PushArgs) -> anyhow::Result<Ask> {
    let push = PushAsk {
        text: text(&args.text)?,
        policy: args.policy,
        at: args.at,
        within_ms: args.within.map(millis),
        delay_ms: args.delay.map(millis),
        turn: args.turn,
        client_id: args.id,
        or: OrArg::Queue,
        wait: if args.wait { Wait::Settled } else { Wait::No },
    };
    push.policy()?;
    Ok(Ask::Push(push))
}

/// The text to push.
pub(crate) fn text(given: &str) -> anyhow::Result<String> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text)?;
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    if text.trim().is_empty() {
        return Err(Usage("there is nothing in it: say something".into()).into());
    }
    Ok(text)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
