//! `/new`, `/resume`, `/rename` and `/fork`: the way from one conversation to another, and what is known of each.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use safepoint::{
    ids::{SessionId, TurnId},
    session::Fork,
    store::{Error, Store},
};
use tokio::sync::mpsc::UnboundedSender;

use super::{driver::Driver, exporting, keeping, later::Later, looking, reopen, rewinding::Next};
use crate::{
    args::place::StorePlace,
    control::list::{Listed, ago},
    render::{
        chat::{
            kept::KeptAsk,
            sessions::{Looked, Offer, SessionPicker},
            state::{State, Tone},
        },
        text::one_line,
    },
    settings::remembered::Setup,
};

/// What became of a request, once it is known.
pub(crate) enum KeptNews {
    /// The conversations to choose from.
    Offers(Box<SessionPicker>),
    /// Some of them were read.
    Looked(Vec<Looked>),
    /// Another one is to be opened.
    Open(Box<Next>),
    /// The file of an export is there already.
    Exists(PathBuf),
}

impl Driver {
    pub(crate) fn kept(&mut self, ask: KeptAsk) {
        let memory = (!self.state.about.is_kept).then(|| Arc::clone(&self.rewinds.store));
        let (own, store) = (Arc::clone(&self.rewinds.store), self.store.clone());
        let (host, later) = (Arc::clone(&self.host), self.later.0.clone());
        let (left, project) = (left(&self.state), self.state.kept.project.clone());
        tokio::spawn(async move {
            let id = &host.id;
            let done = match ask {
                KeptAsk::Pick => pick((store, memory), (id, &project), &later).await,
                KeptAsk::Open(named) => open((store, memory), id, &named).await,
                KeptAsk::New => {
                    let next = Next {
                        id: SessionId::fresh().as_str().to_owned(),
                        is_here: true,
                        is_new: true,
                        rows: vec![format!("A new conversation; {left}")],
                        ..Next::default()
                    };
                    Ok(Later::Kept(KeptNews::Open(Box::new(next))))
                }
                KeptAsk::Rename(title) => match host.session.rename(title.as_str()).await {
                    Ok(()) => Ok(Later::Message(Tone::Plain, format!("renamed to {}", one_line(&title)))),
                    Err(error) => Err(error.into()),
                },
                KeptAsk::Fork(turn) => fork(own, id, (turn, left)).await,
                KeptAsk::Export(file) => exporting::export(&*own, id, file).await,
                KeptAsk::Overwrite(path) => exporting::overwrite(&*own, id, path).await,
            };
            let answer = done.unwrap_or_else(|error| Later::Message(Tone::Bad, format!("{error:#}")));
            if later.send(answer).is_err() {
                // The chat is over, and has shown it.
            }
        });
    }

    pub(crate) fn kept_news(&mut self, news: KeptNews) {
        match news {
            KeptNews::Offers(list) => self.state.pick(*list),
            KeptNews::Looked(looked) => self.state.kept.looked(looked),
            KeptNews::Exists(path) => self.state.ask_overwrite(path, std::time::Instant::now()),
            // Meanwhile a turn has begun: what was pushed is not left for something else.
            KeptNews::Open(_) if self.host.session.current_turn().is_some() => {
                self.state
                    .tell(Tone::Aside, "a turn is running, so this conversation stays open; /stop first");
            }
            KeptNews::Open(next) => self.leave_for(*next),
        }
    }
}

/// How the conversation that is left can be come back to.
fn left(state: &State) -> String {
    let id = &state.about.session;
    let where_it_is = if state.about.is_kept { "stored" } else { "in memory until the chat ends" };
    format!("the one before is {where_it_is}: /resume {} returns to it", short(id))
}

/// The command that comes back to a stored session.
pub(super) fn returns(id: &SessionId, place: Option<&StorePlace>) -> String {
    let store = place.map(|place| format!(" --store {place}")).unwrap_or_default();
    format!("safepoint --resume {}{store}", short(id.as_str()))
}

/// As much of an id as a person types.
pub(super) fn short(id: &str) -> &str {
    const ENOUGH: usize = 8;
    let digits =
        id.strip_prefix("ses_").filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    digits.and_then(|digits| digits.get(digits.len().checked_sub(ENOUGH)?..)).unwrap_or(id)
}

type Stores = (Option<Arc<dyn Store>>, Option<Arc<dyn Store>>);

async fn pick(
    (store, memory): Stores,
    (here, project): (&SessionId, &Path),
    later: &UnboundedSender<Later>,
) -> anyhow::Result<Later> {
    let all = keeping::offered(store.as_ref(), memory.as_ref(), Some(here)).await?;
    let mut offers: Vec<Offer> = all.iter().map(|(one, _)| offer(one, project)).collect();
    for (offer, (_, at)) in offers.iter_mut().zip(&all) {
        let is_in_memory = memory.as_ref().is_some_and(|memory| Arc::ptr_eq(memory, at));
        offer.is_here |= is_in_memory;
    }
    let list = Box::new(SessionPicker::new(offers));
    let (tell, wanted) = (later.clone(), list.wanted());
    let looked =
        move |looked| wanted.strong_count() > 0 && tell.send(Later::Kept(KeptNews::Looked(looked))).is_ok();
    // Behind the list itself, in the order of the channel.
    if later.send(Later::Kept(KeptNews::Offers(list))).is_ok() {
        looking::look(all, looked).await;
    }
    Ok(Later::Left)
}

/// Leaves this session for the named one: in the memory of this chat, or in the store.
async fn open((store, memory): Stores, here: &SessionId, named: &str) -> anyhow::Result<Later> {
    if let Some(memory) = &memory {
        let fits = |id: &str| id == named || id != here.as_str() && short(id) == named;
        let rows = memory.list(usize::from(u16::MAX), None).await?;
        if let Some(row) = rows.iter().find(|row| fits(row.id.as_str())) {
            if row.id == *here {
                return Ok(Later::Message(Tone::Plain, "that is this one".to_owned()));
            }
            let next = Next { id: row.id.as_str().to_owned(), is_here: true, ..Next::default() };
            return Ok(Later::Kept(KeptNews::Open(Box::new(next))));
        }
    }
    Ok(match reopen::meant(store.as_ref(), here, named).await? {
        Ok(id) => Later::Next(id),
        Err(why) => Later::Message(Tone::Plain, why),
    })
}

/// Copies the conversation, and continues in the copy.
async fn fork(
    store: Arc<dyn Store>,
    id: &SessionId,
    (turn, left): (Option<TurnId>, String),
) -> anyhow::Result<Later> {
    let fork = Fork::of(id.clone());
    let fork = if let Some(turn) = turn { fork.at(turn) } else { fork };
    let forked = match fork.create(Arc::clone(&store)).await {
        Ok(forked) => forked,
        Err(error @ Error::NoTurn(..)) => {
            return Ok(Later::Message(Tone::Plain, format!("{error}; /rewind lists the turns")));
        }
        Err(error) => return Err(error.into()),
    };
    let mut rows = vec![format!("A copy of the conversation up to the end of {}; {left}", forked.turn)];
    if !forked.later.is_empty() {
        rows.push("done after that, and not undone:".to_owned());
        rows.extend(forked.later.iter().map(|call| format!("  {}", one_line(call))));
    }
    let id = forked.session.as_str().to_owned();
    Ok(Later::Kept(KeptNews::Open(Box::new(Next { id, is_here: true, rows, ..Next::default() }))))
}

/// A conversation of the list.
pub(super) fn offer(one: &Listed, here: &Path) -> Offer {
    let Some(row) = &one.row else { return Offer::default() };
    let project = Setup::read(row).project();
    let title = if row.title.is_empty() { "(nothing was said)".to_owned() } else { row.title.clone() };
    Offer {
        id: one.id.clone(),
        title,
        when: ago(row.updated),
        state: if one.owner().is_some() { "open elsewhere".to_owned() } else { one.state().shown() },
        spent: String::new(),
        is_here: project.as_deref() == Some(here),
        project: project.map(|project| shown(&project)).unwrap_or_default(),
    }
}

/// A path as people write it.
fn shown(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(|below| below.display().to_string()));
    match below.as_deref() {
        Some("") => "~".to_owned(),
        Some(below) => format!("~/{below}"),
        None => path.display().to_string(),
    }
}
