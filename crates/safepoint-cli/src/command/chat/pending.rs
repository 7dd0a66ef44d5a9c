//! Requests to the session whose answers come later: keys come first.

use std::{sync::Arc, time::Instant};

use safepoint::{
    approval::Decision,
    ids::{ApprovalId, ItemId},
    store::Store,
};

use tokio::sync::mpsc::UnboundedSender;

use super::{driver::Driver, later::Later, reopen};
use crate::{
    render::{
        approval,
        chat::{
            events::ChatEvent,
            queue::{Origin, PushKind, Pushed},
            state::{Action, Tone},
        },
    },
    session::host::Host,
};

impl Driver {
    /// Withdraws items. The request is sent before this returns, so a later push comes after it.
    pub(crate) fn take_back(&mut self, items: Vec<ItemId>, came_as: fn(String) -> Later) {
        self.state.asked_back(&items);
        let asked: Vec<_> = items.iter().map(|id| self.host.session.withdraw(*id)).collect();
        let (host, later) = (Arc::clone(&self.host), self.later.0.clone());
        tokio::spawn(async move {
            let mut texts = Vec::new();
            for (id, asked) in items.into_iter().zip(asked) {
                // Another process may have taken the item first; the item is nowhere else then.
                texts.extend(asked.await.or_else(|| host.withdrawn(id)));
            }
            if !texts.is_empty() {
                post(&later, came_as(texts.join("\n")));
            }
        });
    }

    /// Has the session say what waits that was not pushed through this program.
    pub(crate) fn look_at_waiting(&self) {
        let (host, later) = (Arc::clone(&self.host), self.later.0.clone());
        tokio::spawn(async move {
            post(&later, Later::Waits(host.session.queued().await));
        });
    }

    /// What waited before the session was opened.
    pub(crate) fn take_left(&mut self, left: Vec<(ItemId, String)>) {
        self.state.tell_left(left.len());
        for (id, text) in left {
            let item = Pushed { text, how: PushKind::Queue, origin: Origin::Before };
            self.host.found(id, item.clone());
            drop(self.state.hear(ChatEvent::Accepted { id, item }, Instant::now()));
        }
    }

    /// What it says in full.
    pub(crate) fn take_waiting(&mut self, waiting: Vec<(ItemId, String)>) {
        for (id, text) in waiting {
            if self.host.pushed(id).is_none() {
                self.state.items.say(id, &text);
                self.host.found(id, Pushed { text, how: PushKind::Queue, origin: Origin::Elsewhere });
            }
        }
    }

    /// What the session answers is not waited for here: keys come first.
    pub(crate) fn perform_later(&self, act: Action) {
        let (host, crew, later) = (Arc::clone(&self.host), Arc::clone(&self.crew), self.later.0.clone());
        let (store, columns) = (self.store.clone(), self.state.columns);
        let snapshots = self.rewinds.snapshots.clone();
        tokio::spawn(async move {
            let answer = match act {
                Action::Resume => match host.session.resume().await {
                    true => None,
                    false => Some(Later::Pick),
                },
                Action::List => Some(list(store.as_ref(), &host, columns).await),
                Action::Decide(id, decision) => {
                    // It may resume a turn, which changes files at once.
                    if let Some(snapshots) = snapshots.filter(|_| host.session.current_turn().is_none()) {
                        snapshots.before_decision().await;
                    }
                    decide(&host, id, decision, &later).await
                }
                Action::WhoAnswered(id) => who(store.as_ref(), &host, &id).await,
                Action::LookAt(mut asked) => {
                    let open = host.session.approvals().await;
                    asked.retain(|id| open.iter().all(|open| open.id != *id));
                    Some(Later::Gone(asked))
                }
                Action::Model(name) => Some(match crew.take_model(&name).await {
                    Ok(()) => Later::Model(name, crew.figures()),
                    Err(error) => Later::Message(Tone::Bad, format!("{error:#}")),
                }),
                Action::Context => Some(match crew.is_external() {
                    true => Later::Message(Tone::Plain, "an external agent keeps its own context".to_owned()),
                    false => Later::Context(host.session.history().await, crew.fixed()),
                }),
                Action::OfferModels => Some(Later::Models(crew.offered_models().await)),
                Action::Push { .. }
                | Action::Withdraw(_)
                | Action::HandBack
                | Action::Stop(_)
                | Action::StopCall { .. }
                | Action::Background
                | Action::Quit(_)
                | Action::Rewind(_)
                | Action::Preview(_)
                | Action::Page(_)
                | Action::Typing(_)
                | Action::Mode(_)
                | Action::Kept(_)
                | Action::Tasks(_)
                | Action::Status
                | Action::Review(_)
                | Action::GoTo(_)
                | Action::Suspend => None,
            };
            answer.into_iter().for_each(|answer| post(&later, answer));
        });
    }
}

async fn decide(
    host: &Host,
    id: ApprovalId,
    decision: Decision,
    later: &UnboundedSender<Later>,
) -> Option<Later> {
    match host.session.decide(&id, decision).await {
        Ok(()) => {
            // A decision resumes a turn that was cut off while it waited.
            if host.session.current_turn().is_none() {
                host.session.resume().await;
            }
            None
        }
        Err(error) => {
            post(later, Later::Message(Tone::Aside, error.to_string()));
            // Of arguments that do not fit nothing was recorded: the question is open.
            let open = host.session.approvals().await.into_iter().find(|open| open.id == id);
            Some(open.map_or_else(|| Later::Gone(vec![id]), |open| Later::AskAgain(Box::new(open))))
        }
    }
}

fn post(to: &UnboundedSender<Later>, what: Later) {
    if to.send(what).is_err() {
        // The chat is over, and has shown it.
    }
}

/// Who has answered; nothing if that is not known.
async fn who(store: Option<&Arc<dyn Store>>, host: &Host, id: &ApprovalId) -> Option<Later> {
    let row = store?.approval(&host.id, id).await.ok()??;
    let said = approval::decided(&row)?;
    Some(Later::Message(Tone::Aside, format!("  answered elsewhere: {said}")))
}

async fn list(store: Option<&Arc<dyn Store>>, host: &Host, columns: usize) -> Later {
    match reopen::listed(store, &host.id, columns).await {
        Ok((ids, text)) => Later::Listed(ids, text),
        Err(error) => Later::Message(Tone::Bad, format!("{error:#}")),
    }
}
