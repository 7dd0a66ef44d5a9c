//! `safepoint sessions`: one list of what the store keeps and of what runs.

use std::process::ExitCode;

use safepoint::{ids::SessionId, store::Error};
use serde_json::json;

mod fork;
mod rewound;
mod show;

use crate::{
    api::{self, ServerApi},
    args::{
        place::StorePlace,
        sessions::{LsArgs, OneArgs, SessionsCommand},
    },
    command::store::{no_session, show_outcome},
    control::list::{Listed, meant, recent},
    exit::code,
    output::{self, Stream},
    render::{reply_json::ReplyLines, text::cut},
    session::snapshots,
    settings::{remembered::Setup, store::existing_store},
};

/// Runs the command.
pub(crate) async fn sessions(command: SessionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        SessionsCommand::Ls(args) => list(args).await,
        SessionsCommand::Show(args) => match ServerApi::meant(&args.server, args.place.store.as_ref())? {
            Some(server) => api::sessions::show(&server, &args.session, &args.place).await,
            None => show::show(args).await,
        },
        SessionsCommand::Fork(args) => fork::fork(args).await,
        SessionsCommand::Rm(args) => remove(args).await,
    }
}

async fn list(args: LsArgs) -> anyhow::Result<ExitCode> {
    if let Some(server) = ServerApi::meant(&args.server, args.place.store.as_ref())? {
        return api::sessions::list(&server, args.most, &args.place).await;
    }
    let store = existing_store(args.place.store.clone()).await?;
    let listed = recent(store.as_ref(), args.most).await?;
    let mut lines = ReplyLines::default();
    for one in &listed {
        if args.place.json {
            output::say_json(one.json(&mut lines))?;
        } else {
            output::say(cut(&one.line(), width()))?;
        }
    }
    if args.place.json {
        return Ok(ExitCode::SUCCESS);
    }
    match listed.iter().filter(|one| one.is_kept()).count() {
        _ if listed.is_empty() => output::tell("no sessions"),
        count if count >= args.most => output::tell(format_args!("the newest {count}; -n N lists more")),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(args: OneArgs) -> anyhow::Result<ExitCode> {
    if let Some(server) = ServerApi::meant(&args.server, args.place.store.as_ref())? {
        return api::sessions::remove(&server, &args.session, &args.place).await;
    }
    let store = existing_store(args.place.store.clone()).await?;
    let Some(one) = meant(store.as_ref(), &args.session).await? else {
        return no_session(&SessionId::from(args.session), &args.place);
    };
    let id = SessionId::from(one.id.as_str());
    let (number, said) = match (&store, one.is_kept()) {
        (Some(store), true) => match store.remove(&id).await {
            Ok(()) => {
                forget_snapshots(&one, args.place.store.clone()).await;
                (0, format!("removed {id}"))
            }
            Err(Error::NoSession(_)) => return no_session(&id, &args.place),
            Err(error @ Error::Held(..)) => {
                (code::CONFLICT, format!("{error}; stop it with `safepoint stop {id}`"))
            }
            Err(error) => return Err(error.into()),
        },
        _ => (code::CONFLICT, format!("{id} is not stored but running; stop it with `safepoint stop {id}`")),
    };
    let fields = json!({"code": number, "said": said});
    show_outcome(&args.place, ("removed", Some(id.as_str())), fields, (number, &said))
}

/// The snapshots of files go with their session; what cannot be removed now goes by its age.
async fn forget_snapshots(one: &Listed, store: Option<StorePlace>) {
    let Some(root) = one.row.as_ref().and_then(|row| Setup::read(row).root()) else { return };
    let id = SessionId::from(one.id.as_str());
    let forgotten = tokio::task::spawn_blocking(move || snapshots::forget(&root, store.as_ref(), &[id]));
    if let Ok(Err(error)) = forgotten.await {
        output::tell(format_args!(
            "safepoint: its snapshots of files stay until they are too old: {error:#}"
        ));
    }
}

/// The columns of stdout, where it is a terminal.
fn width() -> usize {
    const LEAST: usize = 40;
    Stream::Out.columns().map_or(usize::MAX, |columns| columns.max(LEAST))
}
