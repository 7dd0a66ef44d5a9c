//! Foreign code is called, polled and dropped here: a panic in it is a value, and never ends the task that
//! called it (S2.16).
//!
//! **Invariants**: an object in [`Foreign`] is reached only through its methods; a future that is [run](run)
//! here is dropped here too, at its end or before.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::future::BoxFuture;

/// What a panic said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked(pub(crate) String);

/// Calls it, and gives its panic back as a value.
pub(crate) fn call<T>(code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Panicked(message(&*panic)))
}

/// Drops it, and gives the panic of its drop back as a value.
pub(crate) fn drop_caught<T>(it: T) -> Result<(), Panicked> {
    call(move || drop(it))
}

/// Awaits it, and gives its panic back as a value: that of a poll, or of the drop at its end.
pub(crate) fn run<F: Future>(work: F) -> Guarded<F> {
    Guarded(Some(Box::pin(work)))
}

/// Like [`run`], for a future that is boxed already.
pub(crate) fn guard<T>(work: BoxFuture<'static, T>) -> Guarded<dyn Future<Output = T> + Send> {
    Guarded(Some(work))
}

/// Like [`run`], for what is called to get a future that is boxed already. A panic of the call is a value too.
pub(crate) async fn run_boxed<'a, T>(ask: impl FnOnce() -> BoxFuture<'a, T>) -> Result<T, Panicked> {
    Guarded(Some(call(ask)?)).await
}

/// A future of foreign code. If it is dropped early, a panic in its drop is ignored: nothing waits for it any
/// more.
#[must_use = "a future does nothing before it is awaited"]
pub(crate) struct Guarded<F: Future + ?Sized>(Option<Pin<Box<F>>>);

impl<F: Future + ?Sized> Future for Guarded<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = self.0.as_mut() else { return Poll::Pending };
        let ended = match call(|| work.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        let gone = drop_caught(self.0.take());
        Poll::Ready(ended.and_then(|output| gone.map(|()| output)))
    }
}

impl<F: Future + ?Sized> Drop for Guarded<F> {
    fn drop(&mut self) {
        if drop_caught(self.0.take()).is_err() {
            // Dropped before its end, so its result is not needed.
        }
    }
}

/// An object of foreign code. Its methods here are the only access to it.
pub(crate) struct Foreign<T: ?Sized>(Option<Arc<T>>);

impl<T: ?Sized> Foreign<T> {
    pub(crate) fn new(it: Arc<T>) -> Self {
        Self(Some(it))
    }

    /// Calls a synchronous method of it.
    pub(crate) fn call<'s, R>(&'s self, ask: impl FnOnce(&'s T) -> R) -> Result<R, Panicked> {
        call(|| ask(self.it()))
    }

    /// Calls an asynchronous method of it. The call is made inside the future, so that a panic before the
    /// first await is caught too.
    pub(crate) async fn run<'s, R: Send>(
        &'s self,
        ask: impl FnOnce(&'s T) -> BoxFuture<'s, R> + Send,
    ) -> Result<R, Panicked>
    where
        T: Send + Sync,
    {
        run_boxed(|| ask(self.it())).await
    }

    fn it(&self) -> &T {
        self.0.as_deref().expect("it is taken out only when it is dropped")
    }
}

impl<T: ?Sized> Clone for Foreign<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Drop for Foreign<T> {
    fn drop(&mut self) {
        if drop_caught(self.0.take()).is_err() {
            // It is gone, and nothing waits for that.
        }
    }
}

impl<T: ?Sized> fmt::Debug for Foreign<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").finish_non_exhaustive()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it gave no message".into())
}
