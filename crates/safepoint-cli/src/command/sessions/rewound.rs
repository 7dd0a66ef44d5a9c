//! `safepoint sessions fork --files` and `--plan`: the files go back too, and what cannot be undone is shown first.

use std::{process::ExitCode, sync::Arc};

use safepoint::{
    ids::{SessionId, TurnId},
    store::{Error, Store},
};
use safepoint_snapshot::{KeptBack, Snapshots};
use serde_json::{Value, json};

use crate::{
    args::{place::StorePlace, sessions::ForkArgs},
    command::store::show_outcome,
    exit::{Usage, code},
    render::chat::rewind::Extent,
    session::rewind::{self, Files, Rewind, WentBack},
    settings::{self, remembered::Setup, store::row_of},
};

/// Forks and restores, or shows what that would do.
pub(super) async fn fork(args: ForkArgs, store: Arc<dyn Store>, id: SessionId) -> anyhow::Result<ExitCode> {
    let ForkArgs { at, name, files, also, plan: is_plan, place, .. } = args;
    let at =
        at.ok_or_else(|| Usage("--files and --plan need the turn to go back to: name it with --at".into()))?;
    let shown = |fields: Value, number: u8, said: &str| {
        show_outcome(&place, ("forked", Some(id.as_str())), fields, (number, said))
    };
    let refused = |number: u8, said: &str| shown(json!({"code": number, "said": said}), number, said);
    let name = name.map(SessionId::from);
    if let Some(name) = &name
        && row_of(&*store, name).await?.is_some()
    {
        return refused(code::CONFLICT, &Error::SessionExists(name.clone()).to_string());
    }
    let next = match next_turn(&*store, &id, at).await? {
        Ok(next) => next,
        Err(said) => return refused(code::NONE_SUCH, &said),
    };
    let snapshots = match files {
        true => match snapshots_of(&*store, &id, place.store.clone()).await? {
            Some(snapshots) => Some(snapshots),
            None => {
                return refused(
                    code::CONFLICT,
                    &format!("{id} works in no directory: no file can be restored"),
                );
            }
        },
        false => None,
    };
    let looked = match rewind::look(&*store, &id, next, (snapshots.clone(), also)).await? {
        Ok(looked) => looked,
        Err(said) => return refused(code::NONE_SUCH, &said),
    };
    if let (Files::None(why), true) = (&looked.files, files) {
        return refused(code::CONFLICT, &format!("files cannot be restored: {why}"));
    }
    if is_plan {
        let said = looked.rows().join("\n");
        return shown(fields((code::ACCEPTED, &said), at, &looked), code::ACCEPTED, &said);
    }
    let extent = if files { Extent::Both } else { Extent::Conversation };
    let (fields, number, said) = go((looked, extent), (store, snapshots), (&id, at, name)).await?;
    shown(fields, number, &said)
}

/// Goes back: the fields of the reply, the exit code, and what is said.
async fn go(
    (looked, extent): (Rewind, Extent),
    (store, snapshots): (Arc<dyn Store>, Option<Arc<Snapshots>>),
    (id, at, name): (&SessionId, TurnId, Option<SessionId>),
) -> anyhow::Result<(Value, u8, String)> {
    let mut fields = fields((code::ACCEPTED, ""), at, &looked);
    let not_undone = looked.not_undone();
    let WentBack { session, restored } = looked.go(extent, (store, snapshots), name).await?;
    let mut rows = Vec::new();
    let mut number = code::ACCEPTED;
    match session {
        Some(Ok(session)) => {
            rows.push(format!(
                "{session} continues {id} after {at}; `safepoint chat --session {session}` opens it"
            ));
            fields["fork"] = json!(session);
        }
        Some(Err(error)) => {
            number = code::OTHER;
            rows.push(format!("the session could not be forked: {error}"));
        }
        None => {}
    }
    if let Some(restored) = restored {
        rows.extend(rewind::restored_rows(&restored, ""));
        fields["left"] = left(&restored.kept_back);
    }
    if !not_undone.is_empty() {
        rows.push("done after that, and not undone:".to_owned());
    }
    rows.extend(not_undone.iter().map(|call| format!("  {}", crate::render::text::one_line(call))));
    let said = rows.join("\n");
    (fields["said"], fields["code"]) = (json!(said), json!(number));
    Ok((fields, number, said))
}

/// The turn after this one.
async fn next_turn(store: &dyn Store, id: &SessionId, at: TurnId) -> anyhow::Result<Result<TurnId, String>> {
    let (turns, _) = rewind::turns(store, id).await?;
    let Some(place) = turns.iter().position(|line| line.turn == at) else {
        return Ok(Err(format!("session {id} has no {at}; `safepoint trace {id}` shows its turns")));
    };
    let next = turns.get(place + 1).map(|line| line.turn);
    Ok(next.ok_or_else(|| format!("{at} is the last turn of {id}: nothing was done after it")))
}

/// The snapshots of the directory that the session works in; none if it works in none.
async fn snapshots_of(
    store: &dyn Store,
    id: &SessionId,
    path: Option<StorePlace>,
) -> anyhow::Result<Option<Arc<Snapshots>>> {
    let Some(root) = row_of(store, id).await?.and_then(|row| Setup::read(&row).root()) else {
        return Ok(None);
    };
    let open = move || settings::snapshots::open(Some(&root), path.as_ref(), None);
    Ok(Some(Arc::new(tokio::task::spawn_blocking(open).await??)))
}

fn fields((number, said): (u8, &str), at: TurnId, looked: &Rewind) -> Value {
    let mut fields = json!({"code": number, "said": said, "turn": at.number(), "later": looked.later, "not_undone": looked.not_undone()});
    if let Files::Plan(plan) = &looked.files {
        let changes = plan.changes();
        fields["restored"] = changes.iter().map(|one| json!(one.path.to_string_lossy())).collect();
        fields["left"] = left(&plan.kept_back());
    }
    fields
}

fn left(kept: &[KeptBack]) -> Value {
    kept.iter()
        .map(|kept| json!({"path": kept.path.to_string_lossy(), "why": kept.why.to_string()}))
        .collect()
}
