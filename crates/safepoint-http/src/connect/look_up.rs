//! Names: looked up by the system, or with the addresses that the settings give them.

use std::{
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

use super::Boxed;
use crate::error::BoxError;

/// Gives names their addresses.
#[derive(Clone, Debug)]
pub(super) enum LookUp {
    System(GaiResolver),
    Given(Arc<[SocketAddr]>),
}

impl LookUp {
    pub(super) fn new(given: Option<&[SocketAddr]>) -> Self {
        given.map_or_else(|| Self::System(GaiResolver::new()), |given| Self::Given(given.into()))
    }
}

impl Service<Name> for LookUp {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Boxed<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        match self {
            Self::System(system) => {
                let found = system.call(name);
                Box::pin(async move { Ok(found.await?.collect::<Vec<_>>().into_iter()) })
            }
            Self::Given(given) => {
                let given = given.to_vec();
                Box::pin(async move { Ok(given.into_iter()) })
            }
        }
    }
}
