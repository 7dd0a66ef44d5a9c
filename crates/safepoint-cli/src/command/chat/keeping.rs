//! Where the first conversation of a chat is: stored, unless the person says otherwise; in memory, where it cannot be.

use std::{
    collections::HashMap,
    fs::{OpenOptions, create_dir_all},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use safepoint::{
    ids::SessionId,
    raw::store::NewSession,
    store::{MemoryStore, SessionRow, Store},
};

use super::{ChatPlace, choose};
use crate::{
    args::{chat::ChatArgs, place::StorePlace},
    control::list::{self, Listed},
    exit::{NoSession, Usage},
    settings::{
        config::Config,
        project,
        remembered::Setup,
        store::{beside, existing, existing_store, open_store, usual_place},
    },
};

/// Stands beside the usual store once a person has read that conversations are stored.
const NOTED: &str = "conversations-are-stored";

/// The first conversation, and what its person should know of where it is. None: the person chose none.
///
/// # Errors
/// If what was asked for is not there or cannot be used. A conversation that is stored only by default is in memory then.
pub(super) async fn first(
    args: &ChatArgs,
    can_draw: bool,
) -> anyhow::Result<Option<(ChatPlace, Vec<String>)>> {
    let path = args.store.as_ref();
    let project =
        || project::here(args.agent.root.as_deref()).context("the working directory cannot be used");
    let kept = |store, id| ChatPlace { store, id, is_kept: true, is_own: false };
    if let Some(named) = &args.keep.resume {
        let Some(store) = existing_store(path.cloned()).await? else { return none_stored(named.as_deref()) };
        let id = match named {
            Some(named) => stored(&store, named).await?,
            None if can_draw => match choose::choose(&store, &project()?).await? {
                Some(id) => id,
                None => return Ok(None),
            },
            None => return Err(Usage("--resume needs a terminal to choose on; name a session".into()).into()),
        };
        return Ok(Some((kept(store, id), Vec::new())));
    }
    if args.keep.continues {
        let store = open_store(path.cloned()).await?;
        let (last, open) = last_of(&store, &project()?).await?;
        let mut notes: Vec<String> = open.into_iter().collect();
        return Ok(Some(match last {
            Some(id) => (kept(store, id), notes),
            None => {
                notes.push("no stored conversation of this project: this is a new one".to_owned());
                (fresh(store).await?, notes)
            }
        }));
    }
    if let Some(session) = &args.session {
        return Ok(Some((
            kept(open_store(path.cloned()).await?, SessionId::from(session.as_str())),
            Vec::new(),
        )));
    }
    if path.is_some() {
        return Ok(Some((fresh(open_store(path.cloned()).await?).await?, Vec::new())));
    }
    let is_wanted = can_draw && !args.keep.no_keep;
    if !is_wanted || Config::load(args.agent.config.as_deref())?.keep == Some(false) {
        return Ok(Some((in_memory(), Vec::new())));
    }
    let tried = async { fresh(open_store(None).await?).await };
    Ok(Some(match tried.await {
        Ok(place) => (place, note_once(&usual_place()?)),
        Err(error) => (in_memory(), vec![format!("not stored, in memory only: {error:#}")]),
    }))
}

fn none_stored<T>(named: Option<&str>) -> anyhow::Result<T> {
    match named {
        Some(named) => Err(NoSession(SessionId::from(named)).into()),
        None => anyhow::bail!("no stored conversation yet"),
    }
}

fn in_memory() -> ChatPlace {
    let store = Arc::new(MemoryStore::default());
    ChatPlace { store, id: SessionId::fresh(), is_kept: false, is_own: false }
}

/// A new conversation in this store. It is made now, so that a store that takes nothing is known before anything is said.
async fn fresh(store: Arc<dyn Store>) -> anyhow::Result<ChatPlace> {
    let id = SessionId::fresh();
    store.create(NewSession::of(id.clone())).await?;
    Ok(ChatPlace { store, id, is_kept: true, is_own: true })
}

/// Says once in the life of a usual store that conversations are stored, where, and what turns that off.
fn note_once(place: &StorePlace) -> Vec<String> {
    let (noted, shown) = match place.file() {
        Some(path) => (Ok(path.with_file_name(NOTED)), from_home(path)),
        None => (beside(place, &format!(".{NOTED}")), place.to_string()),
    };
    let is_made = |noted: PathBuf| {
        noted.parent().is_none_or(|folder| create_dir_all(folder).is_ok())
            && OpenOptions::new().write(true).create_new(true).open(noted).is_ok()
    };
    let is_first = noted.is_ok_and(is_made);
    let note = format!(
        "conversations are stored in {shown}\n  --no-keep, or `keep = false` in the config file, turns that off"
    );
    is_first.then_some(note).into_iter().collect()
}

/// A path as people write it.
fn from_home(path: &Path) -> String {
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// The stored session that is meant.
async fn stored(store: &Arc<dyn Store>, named: &str) -> anyhow::Result<SessionId> {
    let Some(one) = list::meant(Some(store), named).await? else {
        return Err(NoSession(SessionId::from(named)).into());
    };
    if !one.is_kept() {
        anyhow::bail!("{} is not stored: only its own process can resume it", one.id);
    }
    Ok(SessionId::from(one.id.as_str()))
}

/// The session of a project that changed last, of those in which something was said and that no process has open; and which newer
/// one is open, for people.
async fn last_of(
    store: &Arc<dyn Store>,
    project: &Path,
) -> anyhow::Result<(Option<SessionId>, Option<String>)> {
    const PAGE: usize = 64;
    let (mut older, mut open) = (None, None);
    loop {
        let rows = store.list(PAGE, older.take()).await.context("cannot list the sessions")?;
        for row in &rows {
            if Setup::read(row).project().as_deref() != Some(project) || !is_used(&**store, row).await? {
                continue;
            }
            let one = Listed::kept(Some(store), row.clone(), &mut HashMap::new()).await?;
            match one.owner() {
                None => return Ok((Some(row.id.clone()), open)),
                Some(owner) => {
                    let said =
                        || format!("a newer conversation is open in {owner}; this is the one before it");
                    open.get_or_insert_with(said);
                }
            }
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => older = Some(last.older()),
            _ => return Ok((None, open)),
        }
    }
}

/// Whether anything was said in it, or waits in it.
pub(super) async fn is_used(store: &dyn Store, row: &SessionRow) -> anyhow::Result<bool> {
    Ok(row.head > 0 || !store.inbox(&row.id).await?.is_empty())
}

/// The stored conversations in which something was said, the newest first, but for this one.
pub(super) async fn offered(
    store: Option<&Arc<dyn Store>>,
    memory: Option<&Arc<dyn Store>>,
    but: Option<&SessionId>,
) -> anyhow::Result<Vec<(Listed, Arc<dyn Store>)>> {
    const MOST: usize = 1000;
    let mut all = Vec::new();
    if let Some(memory) = memory {
        for row in memory.list(MOST, None).await? {
            let one = Listed::kept(Some(memory), row, &mut HashMap::new()).await?;
            all.push((one, Arc::clone(memory)));
        }
    }
    if let Some(store) = store {
        let stored = list::recent(Some(store), MOST).await?;
        all.extend(stored.into_iter().map(|one| (one, Arc::clone(store))));
    }
    let mut offered = Vec::with_capacity(all.len());
    for (one, store) in all {
        let is_this = but.is_some_and(|but| but.as_str() == one.id);
        if let Some(row) = one.row.as_ref().filter(|_| !is_this)
            && is_used(&*store, row).await?
        {
            offered.push((one, store));
        }
    }
    Ok(offered)
}

/// Removes a new conversation in which nothing was said. What is said there by another process at this moment stays.
pub(super) async fn leave_nothing(path: Option<&StorePlace>, place: &ChatPlace) {
    if !place.is_own || !place.is_kept {
        return;
    }
    if let Ok(Some(store)) = existing(path.cloned()).await
        && store.remove_if_unused(&place.id).await.is_err()
    {
        // An empty session stays, which no list of conversations shows and `safepoint store prune` removes.
    }
}
