//! A server's account of its work, for the suite of backends.

use futures_util::future::BoxFuture;

use super::A2aServer;
use crate::backend_suite::{Account, Probe};

impl Probe for A2aServer {
    fn look(&self) -> BoxFuture<'_, Account> {
        let account =
            Account { begun: self.begun(), in_flight: self.running(), stops: self.asked("CancelTask") };
        Box::pin(std::future::ready(account))
    }

    fn finish(&self) {
        self.let_all_on();
    }
}
