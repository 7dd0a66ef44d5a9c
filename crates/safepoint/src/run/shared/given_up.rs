//! An exchange that is not wanted any more, for as long as the present poll of its driver takes: what waits for the run's
//! outcome then does not wait for the socket's end too.
//!
//! **Invariants**: no poll of a driver ends with an exchange in here; what is put in here waits for no append and for no code
//! of a user.

use std::future::Future;

use safepoint_scope::QuietGuard;

use crate::{
    contract::model::ModelError,
    sync::{Mutex, callback::Guarded},
};

/// What reads the exchange, and what keeps the run from being quiet until it is released.
pub(crate) type Exchange = (Guarded<dyn Future<Output = Result<(), ModelError>> + Send>, QuietGuard);

/// At most one exchange. Only the driver's task takes the lock, for one move; the exchange is dropped outside it.
#[derive(Default)]
pub(crate) struct GivenUp(Mutex<Option<Exchange>>);

impl GivenUp {
    /// Leaves an exchange for the end of the present poll. An earlier one is released at once.
    pub(crate) fn leave(&self, exchange: Exchange) {
        let earlier = self.0.lock().replace(exchange);
        drop(earlier);
    }

    /// Releases what was left.
    pub(crate) fn release(&self) {
        let exchange = self.0.lock().take();
        drop(exchange);
    }
}
