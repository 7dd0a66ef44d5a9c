//! Threads of their own for connections that stream: what many readers cost is in the way of no request and no run.

use std::{fmt, sync::OnceLock};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

/// How much less than runs and requests they count for the system's scheduler, as `nice` counts it: a stop then has its turn
/// before what is shown, where there is more to do than processors can.
const YIELDS: i32 = 3;

/// Threads that write to readers, as many as there are processors. They are begun with the first stream, and end with the last
/// owner of this.
#[derive(Default)]
pub(super) struct StreamThreads(OnceLock<Option<Runtime>>);

impl StreamThreads {
    /// Continues this in a thread of theirs; gives it back where the system has no threads left.
    ///
    /// # Cancel safety
    /// It continues, as long as this is there.
    pub(super) fn spawn<F: Future<Output: Send> + Send + 'static>(
        &self,
        work: F,
    ) -> Result<JoinHandle<F::Output>, F> {
        let threads = self.0.get_or_init(|| {
            let mut threads = Builder::new_multi_thread();
            threads.thread_name("safepoint-stream").enable_all().on_thread_start(yield_to_others).build().ok()
        });
        match threads {
            Some(threads) => Ok(threads.spawn(work)),
            None => Err(work),
        }
    }
}

/// Has this thread yield to others of the process; elsewhere than on Linux that is a matter of the whole process.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if rustix::process::nice(YIELDS).is_err() {
        // It counts as much as the others.
    }
}

impl Drop for StreamThreads {
    fn drop(&mut self) {
        // It may be a task that drops this, which must not wait for threads.
        if let Some(threads) = self.0.take().flatten() {
            threads.shutdown_background();
        }
    }
}

impl fmt::Debug for StreamThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamThreads").field(&self.0.get().is_some()).finish()
    }
}
