//! `safepoint acp`: an editor drives sessions over stdin and stdout.

#[cfg(feature = "serve")]
mod serving;

#[cfg(feature = "serve")]
pub(crate) use serving::acp;

/// A build without the server.
#[cfg(not(feature = "serve"))]
pub(crate) async fn acp(_args: crate::args::local::LocalArgs) -> anyhow::Result<std::process::ExitCode> {
    Err(crate::exit::Usage(super::serve::ABSENT.into()).into())
}
