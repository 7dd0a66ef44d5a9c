//! `safepoint stop`: stops a session or a run elsewhere. What is asked is judged before the session is looked for.

use std::{process::ExitCode, time::Duration};

use super::push::millis;
use crate::{
    api::talk,
    args::{control::StopArgs, duration::parse as duration},
    control::{Afterwards, Ask, ModeArg, StopAsk, Wait},
    exit::Usage,
};

pub(crate) async fn stop(args: StopArgs) -> anyhow::Result<ExitCode> {
    let ask = asked(&args).and_then(|stop| stop.check().map(|()| Ask::Stop(stop)));
    talk(&args.common, ask.map_err(Into::into)).await
}

const USUAL_GRACE: Duration = Duration::from_secs(5);

/// The stop that is asked.
fn asked(args: &StopArgs) -> Result<StopAsk, Usage> {
    let mode = mode(args);
    let within_ms = match (args.within.as_deref(), &mode) {
        (Some("never"), _) => None,
        (Some(text), _) => Some(millis(duration(text).map_err(|why| Usage(format!("--within: {why}")))?)),
        (None, ModeArg::Points(_)) if args.at.is_none() => Some(millis(USUAL_GRACE)),
        (None, _) => None,
    };
    Ok(StopAsk {
        mode,
        within_ms,
        scope: args.scope,
        run: args.run.clone(),
        call: args.call.clone(),
        cleanup_cap_ms: args.cleanup_cap.map(millis),
        afterwards: if args.abandon { Afterwards::Abandoned } else { Afterwards::Resumable },
        because: args.because.clone(),
        wait: match args.wait.as_deref() {
            None => Wait::No,
            Some("quiet") => Wait::Quiet,
            Some(_settled) => Wait::Settled,
        },
    })
}

fn mode(args: &StopArgs) -> ModeArg {
    match (args.now, args.when_idle, args.at.as_deref()) {
        (true, ..) => ModeArg::Now,
        (false, Some(idle), _) => ModeArg::WhenIdle { ms: millis(idle) },
        (false, None, None) => ModeArg::Points("any".to_owned()),
        (false, None, Some(at)) => {
            // A session that ends at a safe point ends at its turn's end in any case.
            let points: Vec<&str> =
                at.split(',').map(str::trim).filter(|name| *name != "turn-end" && !name.is_empty()).collect();
            if points.is_empty() { ModeArg::TurnEnd } else { ModeArg::Points(points.join(",")) }
        }
    }
}
