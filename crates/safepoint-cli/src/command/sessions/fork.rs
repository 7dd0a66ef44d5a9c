//! `safepoint sessions fork`: a new session that continues a stored one from the end of a turn.

use std::process::ExitCode;

use safepoint::{
    ids::SessionId,
    session::{Fork, Forked},
    store::Error,
};
use serde_json::json;

use crate::{
    args::{names, sessions::ForkArgs},
    command::{
        sessions::rewound,
        store::{no_session, show_outcome},
    },
    control::list::meant,
    exit::code,
    settings::store::existing_store,
};

/// Runs the command.
pub(crate) async fn fork(args: ForkArgs) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.name {
        names::check(name)?;
    }
    let ForkArgs { session, at, name, place, .. } = args.clone();
    let store = existing_store(place.store.clone()).await?;
    let Some(one) = meant(store.as_ref(), &session).await? else {
        return no_session(&SessionId::from(session), &place);
    };
    let id = SessionId::from(one.id.as_str());
    let Some(store) = store.filter(|_store| one.is_kept()) else {
        let said = format!("{id} is not stored but running: only a stored session can be forked");
        let fields = json!({"code": code::CONFLICT, "said": said});
        return show_outcome(&place, ("forked", Some(id.as_str())), fields, (code::CONFLICT, &said));
    };
    if args.files || args.plan {
        return rewound::fork(args, store, id).await;
    }
    let fork = Fork::of(id.clone());
    let fork = if let Some(at) = at { fork.at(at) } else { fork };
    let fork = if let Some(name) = name { fork.named(name) } else { fork };
    let (number, forked) = match fork.create(store).await {
        Ok(forked) => (code::ACCEPTED, Ok(forked)),
        Err(Error::NoSession(_)) => return no_session(&id, &place),
        Err(error @ Error::NoTurn(..)) => {
            (code::NONE_SUCH, Err(format!("{error}; `safepoint trace {id}` shows its turns")))
        }
        Err(error @ Error::SessionExists(_)) => (code::CONFLICT, Err(error.to_string())),
        Err(error @ Error::DamagedAfter(.., turn)) => {
            let at = turn.number();
            anyhow::bail!("{error}: `safepoint sessions fork {id} --at {at}`")
        }
        Err(error) => return Err(error.into()),
    };
    let said = match &forked {
        Ok(forked) => in_words(&id, forked),
        Err(why) => why.clone(),
    };
    let fields = match &forked {
        Ok(Forked { session, turn, later, .. }) => {
            json!({"code": number, "said": said, "fork": session, "turn": turn.number(), "later": later})
        }
        Err(_) => json!({"code": number, "said": said}),
    };
    show_outcome(&place, ("forked", Some(id.as_str())), fields, (number, &said))
}

fn in_words(id: &SessionId, forked: &Forked) -> String {
    let Forked { session, turn, later, .. } = forked;
    let mut said =
        format!("{session} continues {id} after {turn}; `safepoint chat --session {session}` opens it");
    if !later.is_empty() {
        said.push_str("\ndone after that, and not undone:");
    }
    for call in later {
        said.push_str("\n  ");
        said.push_str(&crate::render::text::one_line(call));
    }
    said
}
