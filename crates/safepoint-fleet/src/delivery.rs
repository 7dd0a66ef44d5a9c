//! One message to the store, and the one back.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use safepoint::store::Error;
use tokio::sync::oneshot;

use super::{link::NodeLink, site::StoreSite};
use crate::sync::lock;

type Does<T> = Box<dyn FnOnce(&StoreSite, &NodeLink) -> BoxFuture<'static, Result<T, Error>> + Send>;

/// A request that is done once, however often it arrives.
#[derive(Clone)]
pub(super) struct Once<T>(
    /// Held to take the request or to copy its answer.
    Arc<Mutex<OnceState<T>>>,
);

enum OnceState<T> {
    New(Does<T>),
    Running,
    Done(Result<T, Error>),
}

impl<T: Clone + Send + 'static> Once<T> {
    pub(super) fn new(
        does: impl FnOnce(&StoreSite, &NodeLink) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> Self {
        Self(Arc::new(Mutex::new(OnceState::New(Box::new(does)))))
    }

    /// The answer; does the request if no message of it has arrived before.
    async fn answer(
        &self,
        site: &StoreSite,
        link: &NodeLink,
        name: &'static str,
    ) -> Option<Result<T, Error>> {
        let does = {
            let mut state = lock(&self.0);
            match &*state {
                OnceState::Done(answer) => return Some(answer.clone()),
                // The store in memory answers at its first poll.
                OnceState::Running => return None,
                OnceState::New(_) => {}
            }
            match std::mem::replace(&mut *state, OnceState::Running) {
                OnceState::New(does) => does,
                OnceState::Running | OnceState::Done(_) => return None,
            }
        };
        let answer = does(site, link).await;
        site.judge().saw(name, Outcome(link.number, answer.as_ref().err()));
        *lock(&self.0) = OnceState::Done(answer.clone());
        Some(answer)
    }
}

/// What a node was answered, in a word.
struct Outcome<'e>(usize, Option<&'e Error>);

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            None => write!(f, "{}", self.0),
            Some(error) => write!(f, "{}: {error}", self.0),
        }
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

/// A message on its way.
pub(super) struct Delivery<T> {
    pub(super) site: Arc<StoreSite>,
    pub(super) link: Arc<NodeLink>,
    pub(super) name: &'static str,
    pub(super) once: Once<T>,
    pub(super) answers: oneshot::Sender<Result<T, Error>>,
}

impl<T: Clone + Send + 'static> Delivery<T> {
    /// It travels by itself: what becomes of the one that sent it changes nothing.
    pub(super) fn send(self) {
        let machine = self.site.machine().clone();
        drop(tokio::spawn(async move { machine.run(self.travel()).await }));
    }

    async fn travel(self) {
        if !self.link.delivers().await || self.site.is_away() {
            return;
        }
        let Some(answer) = self.once.answer(&self.site, &self.link, self.name).await else { return };
        if self.link.carries().await && !self.site.is_away() {
            // The one that asked may have stopped waiting.
            drop(self.answers.send(answer));
        }
    }
}
