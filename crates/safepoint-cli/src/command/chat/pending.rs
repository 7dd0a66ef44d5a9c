//! Requests to the session whose answers come later: keys come first.

use std::{sync::Arc, time::Instant};

use safepoint::{
    ids::{ApprovalId, ItemId},
    store::Store,
};

use super::{
    driver::{Came, Driver},
    reopen,
};
use crate::{
    render::{
        approval,
        chat::{
            events::ChatEvent,
            queue::{How, Origin, Pushed},
            state::{Action, Tone},
        },
    },
    session::host::Host,
};

impl Driver {
    /// Withdraws items. The request is sent before this returns, so a later push comes after it.
    pub(crate) fn take_back(&mut self, items: Vec<ItemId>, came_as: fn(String) -> Came) {
        self.state.asked_back(&items);
        let asked: Vec<_> = items.iter().map(|id| self.host.session.withdraw(*id)).collect();
        let (host, came) = (Arc::clone(&self.host), self.came.0.clone());
        tokio::spawn(async move {
            let mut texts = Vec::new();
            for (id, asked) in items.into_iter().zip(asked) {
                // Another process may have taken the item first; the item is nowhere else then.
                texts.extend(asked.await.or_else(|| host.withdrawn(id)));
            }
            if !texts.is_empty() && came.send(came_as(texts.join("\n"))).is_err() {
                // The chat is over and has shown it.
            }
        });
    }

    /// Has the session say what waits that was not pushed through this program.
    pub(crate) fn look_at_waiting(&self) {
        let (host, came) = (Arc::clone(&self.host), self.came.0.clone());
        tokio::spawn(async move {
            if came.send(Came::Waits(host.session.queued().await)).is_err() {
                // The chat is over.
            }
        });
    }

    /// What waited before the session was opened.
    pub(crate) fn take_left(&mut self, left: Vec<(ItemId, String)>) {
        self.state.tell_left(left.len());
        for (id, text) in left {
            let item = Pushed { text, how: How::Queue, origin: Origin::Before };
            self.host.found(id, item.clone());
            drop(self.state.hear(ChatEvent::Accepted { id, item }, Instant::now()));
        }
    }

    /// What it says in full.
    pub(crate) fn take_waiting(&mut self, waiting: Vec<(ItemId, String)>) {
        for (id, text) in waiting {
            if self.host.pushed(id).is_none() {
                self.state.items.say(id, &text);
                self.host.found(id, Pushed { text, how: How::Queue, origin: Origin::Elsewhere });
            }
        }
    }

    /// What the session answers is not waited for here: keys come first.
    pub(crate) fn later(&self, act: Action) {
        let (host, crew, came) = (Arc::clone(&self.host), Arc::clone(&self.crew), self.came.0.clone());
        let (store, columns) = (self.store.clone(), self.state.columns());
        tokio::spawn(async move {
            let answer = match act {
                Action::Resume => match host.session.resume().await {
                    true => None,
                    false => Some(list(store.as_ref(), &host, columns).await),
                },
                Action::List => Some(list(store.as_ref(), &host, columns).await),
                Action::GoTo(named) => Some(match reopen::meant(store.as_ref(), &host.id, &named).await {
                    Ok(Ok(id)) => Came::Next(id),
                    Ok(Err(why)) => Came::Message(Tone::Plain, why),
                    Err(error) => Came::Message(Tone::Bad, format!("{error:#}")),
                }),
                Action::Decide(id, decision) => match host.session.decide(&id, decision).await {
                    Ok(()) => {
                        // A decision resumes a turn that was cut off while it waited.
                        if host.session.current_turn().is_none() {
                            host.session.resume().await;
                        }
                        None
                    }
                    Err(error) => {
                        if came.send(Came::Message(Tone::Aside, error.to_string())).is_err() {
                            // The chat is over.
                        }
                        Some(Came::Gone(vec![id]))
                    }
                },
                Action::WhoAnswered(id) => who(store.as_ref(), &host, &id).await,
                Action::LookAt(mut asked) => {
                    let open = host.session.approvals().await;
                    asked.retain(|id| open.iter().all(|open| open.id != *id));
                    Some(Came::Gone(asked))
                }
                Action::Model(name) => Some(match crew.take_model(&name).await {
                    Ok(()) => Came::Model(name),
                    Err(error) => Came::Message(Tone::Bad, format!("{error:#}")),
                }),
                Action::Push { .. }
                | Action::Withdraw(_)
                | Action::HandBack
                | Action::Stop(_)
                | Action::Quit(_)
                | Action::Suspend => None,
            };
            if let Some(answer) = answer
                && came.send(answer).is_err()
            {
                // The chat is over.
            }
        });
    }
}

/// Who has answered; nothing if that is not known.
async fn who(store: Option<&Arc<dyn Store>>, host: &Host, id: &ApprovalId) -> Option<Came> {
    let row = store?.approval(&host.id, id).await.ok()??;
    let said = approval::decided(&row)?;
    Some(Came::Message(Tone::Aside, format!("  answered elsewhere: {said}")))
}

async fn list(store: Option<&Arc<dyn Store>>, host: &Host, columns: usize) -> Came {
    match reopen::listed(store, &host.id, columns).await {
        Ok((ids, text)) => Came::Listed(ids, text),
        Err(error) => Came::Message(Tone::Bad, format!("{error:#}")),
    }
}
