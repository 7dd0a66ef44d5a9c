//! The client against sockets whose other side a test plays itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http {
    pub(crate) mod peer;

    mod answers;
    mod connections;
    mod idle;
    mod proxies;
    mod tls;
}
