//! The binary as the client of a server: what it does with `--server` is what it does without, over HTTP (S13.14).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod served {
    mod alike;
    mod asked;
    mod refused;
    #[cfg(feature = "serve")]
    mod serve;
    mod stops;
    mod tokens;
    mod world;
}
