//! What is asked of the session and answered later: keys come first.

use std::sync::Arc;

use safepoint::{ids::ApprovalId, store::Store};

use super::{
    driver::Driver,
    host::Host,
    kept,
    state::{Act, Tone},
};

/// What acts come to, once it is known.
pub(super) enum Came {
    Back(String),
    Told(Tone, String),
    /// Questions that nobody asks any more.
    Gone(Vec<ApprovalId>),
    Model(String),
    Listed(Vec<String>, String),
    Next(String),
}

impl Driver {
    /// What the session answers is not waited for here: keys come first.
    pub(super) fn later(&self, act: Act) {
        let (host, crew, came) = (Arc::clone(&self.host), Arc::clone(&self.crew), self.came.0.clone());
        let (store, columns) = (self.store.clone(), self.state.columns());
        tokio::spawn(async move {
            let answer = match act {
                Act::Withdraw(items) => {
                    let mut texts = Vec::new();
                    for item in items {
                        texts.extend(host.session.withdraw(item).await);
                    }
                    (!texts.is_empty()).then(|| Came::Back(texts.join("\n")))
                }
                Act::Resume => match host.session.resume().await {
                    true => None,
                    false => Some(list(store.as_ref(), &host, columns).await),
                },
                Act::List => Some(list(store.as_ref(), &host, columns).await),
                Act::GoTo(named) => Some(match kept::meant(store.as_ref(), &host.id, &named).await {
                    Ok(Ok(id)) => Came::Next(id),
                    Ok(Err(why)) => Came::Told(Tone::Plain, why),
                    Err(error) => Came::Told(Tone::Bad, format!("{error:#}")),
                }),
                Act::Decide(id, decision) => match host.session.decide(&id, decision).await {
                    Ok(()) => {
                        // One that was cut while it waited is taken up by whoever answers.
                        if host.session.turn().is_none() {
                            host.session.resume().await;
                        }
                        None
                    }
                    Err(error) => {
                        if came.send(Came::Told(Tone::Aside, error.to_string())).is_err() {
                            // The chat is over.
                        }
                        Some(Came::Gone(vec![id]))
                    }
                },
                Act::LookAt(mut asked) => {
                    let open = host.session.approvals().await;
                    asked.retain(|id| open.iter().all(|open| open.id != *id));
                    Some(Came::Gone(asked))
                }
                Act::Model(name) => Some(match crew.take_model(&name).await {
                    Ok(()) => Came::Model(name),
                    Err(error) => Came::Told(Tone::Bad, format!("{error:#}")),
                }),
                Act::Push { .. } | Act::Stop(_) | Act::Quit(_) => None,
            };
            if let Some(answer) = answer
                && came.send(answer).is_err()
            {
                // The chat is over.
            }
        });
    }
}

async fn list(store: Option<&Arc<dyn Store>>, host: &Host, columns: usize) -> Came {
    match kept::listed(store, &host.id, columns).await {
        Ok((ids, text)) => Came::Listed(ids, text),
        Err(error) => Came::Told(Tone::Bad, format!("{error:#}")),
    }
}
