//! The connections that wait for another request.
//!
//! **Invariants**: a connection is used in the runtime that it was made in, which has its socket; while connections of a
//! runtime wait here, one task of that runtime watches them: it closes those that their servers have ended and those that
//! were not used for long, and if the runtime ends, all of them; the task ends when none is left.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use hyper::client::conn::http2;
use tokio::{
    runtime::{self, Handle},
    time::{Instant, sleep},
};

use super::{Http1, Way};
use crate::{body::Body, target::Server};

/// How long a connection that is not used is kept.
const MOST_IDLE: Duration = Duration::from_secs(90);

/// The connections of a pool that wait.
#[derive(Default)]
pub(super) struct Shelf {
    /// Held to take, put or look at connections. Some are polled under it, which runs no code but that of hyper, TLS and the
    /// runtime; what is over is dropped after it. No other lock of ours is taken under it.
    places: Mutex<HashMap<runtime::Id, RuntimeShelf>>,
}

/// The connections of one runtime. Where there is one, a task watches it.
#[derive(Default)]
struct RuntimeShelf {
    servers: HashMap<Server, Kept>,
    /// The watching task's, once it has run.
    watcher: Option<Waker>,
}

/// The connections to one server.
#[derive(Default)]
struct Kept {
    /// Those of HTTP/1.1, and since when each waits: the latest last.
    single: Vec<(Box<Http1>, Instant)>,
    /// That of HTTP/2, and when it was used last.
    shared: Option<(http2::SendRequest<Body>, Instant)>,
}

impl Shelf {
    /// A connection to this server that takes a request, as far as is known here.
    pub(super) fn take(&self, server: &Server) -> Option<Way> {
        let runtime = Handle::try_current().ok()?.id();
        loop {
            match self.next(runtime, server)? {
                // Its user drives it from here on, so this look wakes no task.
                Way::Http1(mut single) => {
                    if single.is_free(&mut Context::from_waker(Waker::noop())) {
                        return Some(Way::Http1(single));
                    }
                }
                shared @ Way::Http2(_) => return Some(shared),
            }
        }
    }

    fn next(&self, runtime: runtime::Id, server: &Server) -> Option<Way> {
        let mut places = self.lock();
        let kept = places.get_mut(&runtime)?.servers.get_mut(server)?;
        if let Some((ask, used)) = kept.shared.as_mut().filter(|(ask, _)| !ask.is_closed()) {
            *used = Instant::now();
            return Some(Way::Http2(ask.clone()));
        }
        kept.single.pop().map(|(single, _)| Way::Http1(single))
    }

    /// Keeps a connection, or closes it if it takes no other request.
    pub(super) fn put(self: &Arc<Self>, server: &Server, mut connection: Box<Http1>) {
        // Looked at before the lock too: what is not free may still send the caller's body, which is not polled under the lock.
        if !connection.is_free(&mut Context::from_waker(Waker::noop())) {
            return;
        }
        let places = self.lock();
        let home = connection.home.id();
        let watcher = places.get(&home).and_then(|place| place.watcher.as_ref());
        // From here on the watching task is woken for it; if that has not run yet, it will look at all there are.
        if connection.is_free(&mut Context::from_waker(watcher.unwrap_or(Waker::noop()))) {
            let home = connection.home.clone();
            let put = |kept: &mut Kept| kept.single.push((connection, Instant::now()));
            self.change(places, (&home, server), put);
        }
    }

    /// Keeps a connection of HTTP/2, and gives back the one to use: another may have been made at the same time.
    pub(super) fn share(
        self: &Arc<Self>,
        (home, server): (&Handle, &Server),
        ask: http2::SendRequest<Body>,
    ) -> http2::SendRequest<Body> {
        let share = |kept: &mut Kept| {
            let known = kept.shared.take().filter(|(known, _)| !known.is_closed());
            let (ask, _) = known.unwrap_or((ask, Instant::now()));
            kept.shared = Some((ask.clone(), Instant::now()));
            ask
        };
        self.change(self.lock(), (home, server), share)
    }

    /// Changes what is kept of a server. The first connection of a runtime begins the watching.
    fn change<T>(
        self: &Arc<Self>,
        mut places: MutexGuard<'_, HashMap<runtime::Id, RuntimeShelf>>,
        (home, server): (&Handle, &Server),
        change: impl FnOnce(&mut Kept) -> T,
    ) -> T {
        let is_watched = places.contains_key(&home.id());
        let servers = &mut places.entry(home.id()).or_default().servers;
        let changed = change(servers.entry(server.clone()).or_default());
        // A runtime that is at its end drops the task here, and with it what was kept.
        drop(places);
        if !is_watched {
            home.spawn(watch(WatchedShelf { shelf: Arc::downgrade(self), runtime: home.id() }));
        }
        changed
    }

    /// Closes what is over. When to look next, at the latest; none if nothing is left.
    fn look(&self, runtime: runtime::Id, cx: &mut Context<'_>) -> Option<Instant> {
        // Dropped after the lock.
        let (mut closed, mut unshared, mut next) = (Vec::new(), Vec::new(), None);
        let mut places = self.lock();
        let place = places.get_mut(&runtime)?;
        place.watcher = Some(cx.waker().clone());
        let oldest = Instant::now().checked_sub(MOST_IDLE);
        let is_old = |since: Instant| oldest.is_some_and(|oldest| since <= oldest);
        place.servers.retain(|_, kept| {
            let is_over = |(single, since): &mut (Box<Http1>, Instant)| is_old(*since) || !single.is_free(cx);
            closed.extend(kept.single.extract_if(.., is_over));
            unshared.extend(kept.shared.take_if(|(ask, used)| is_old(*used) || ask.is_closed()));
            // The first of the single ones waits longest.
            let since = kept.single.first().map(|(_, since)| *since);
            let used = kept.shared.as_ref().map(|(_, used)| *used);
            next = [next, since, used].into_iter().flatten().min();
            since.is_some() || used.is_some()
        });
        if next.is_none() {
            places.remove(&runtime);
        }
        next.map(|since| since + MOST_IDLE)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<runtime::Id, RuntimeShelf>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shelf {
    /// Nothing is left to watch.
    fn drop(&mut self) {
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        places.values_mut().filter_map(|place| place.watcher.take()).for_each(Waker::wake);
    }
}

/// What a task watches. Dropped with its runtime, it closes the connections, whose sockets that had.
struct WatchedShelf {
    shelf: Weak<Shelf>,
    runtime: runtime::Id,
}

impl Drop for WatchedShelf {
    fn drop(&mut self) {
        let Some(shelf) = self.shelf.upgrade() else { return };
        let closed = shelf.lock().remove(&self.runtime);
        drop(closed);
    }
}

async fn watch(mut watched: WatchedShelf) {
    let mut old = pin!(sleep(MOST_IDLE));
    poll_fn(|cx| {
        loop {
            let next = watched.shelf.upgrade().and_then(|shelf| shelf.look(watched.runtime, cx));
            let Some(next) = next else { return Poll::Ready(()) };
            old.as_mut().reset(next);
            if old.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    // The place is gone already; there may be another one, which is watched by another task.
    watched.shelf = Weak::new();
}
