//! `safepoint stop`: stops a session or a run elsewhere. What is asked is judged before the session is looked for.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use safepoint::raw::store::Among;
use serde_json::json;

use super::{
    nodes::{no_node, present},
    push::millis,
    store::show_outcome,
};
use crate::{
    api::{ServerApi, talk},
    args::{
        control::{Common, StopArgs},
        duration::parse as duration,
        server::ServerArgs,
        store::StoreArgs,
    },
    control::{Afterwards, Ask, ModeArg, StopAsk, Wait},
    exit::{Usage, code},
    settings::store::existing_store,
};

pub(crate) async fn stop(args: StopArgs) -> anyhow::Result<ExitCode> {
    let ask = asked(&args).and_then(|stop| stop.check().map(|()| stop));
    let StopArgs { session, node, place, server, timeout, .. } = args;
    let Some(session) = session else { return all(ask?, node, place, &server).await };
    talk(&Common { session, place, server, timeout }, ask.map(Ask::Stop).map_err(Into::into)).await
}

/// Asks it of every session that a node holds, or that this one does.
async fn all(
    ask: StopAsk,
    node: Option<String>,
    place: StoreArgs,
    server: &ServerArgs,
) -> anyhow::Result<ExitCode> {
    if ServerApi::meant(server, place.store.as_ref())?.is_some() {
        return Err(
            Usage("--all is asked of the store, and not of a server: name it with --store".into()).into()
        );
    }
    let intent = ask.of_many()?;
    let said = |number: u8, status: &str, said: String, asked: u64| {
        let detail = json!({"asked": asked});
        let fields =
            json!({"code": number, "status": status, "message": said, "detail": detail, "last": true});
        show_outcome(&place, ("reply", None), fields, (number, &said))
    };
    let none = || said(code::ACCEPTED, "asked", "no process has a session open".to_owned(), 0);
    let Some(store) = existing_store(place.store.clone()).await? else {
        return if let Some(name) = node {
            said(code::NONE_SUCH, "no_such_node", no_node(&name), 0)
        } else {
            none()
        };
    };
    let among = match &node {
        None => Among::Held,
        Some(name) => match present(&*store, name).await? {
            Some(node) => Among::Node(node.node.id),
            None => return said(code::NONE_SUCH, "no_such_node", no_node(name), 0),
        },
    };
    match store.ask_stops(among, intent).await.context("the stop is not recorded")? {
        0 => none(),
        1 => said(code::ACCEPTED, "asked", "stop recorded for 1 session".to_owned(), 1),
        many => said(code::ACCEPTED, "asked", format!("stop recorded for {many} sessions"), many),
    }
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
