//! What the program writes of itself while it runs: its log, and with the feature `otel` its spans and measures by OpenTelemetry
//! (S11.13).

#[cfg(feature = "otel")]
mod client;
#[cfg(feature = "otel")]
mod exported;
#[cfg(feature = "otel")]
mod joined;
#[cfg(feature = "otel")]
mod measured;

use tracing_subscriber::EnvFilter;

use crate::output;

/// What is flushed at the end of the program.
#[must_use = "what is not flushed is lost"]
pub(crate) struct Telemetry {
    #[cfg(feature = "otel")]
    exported: Option<exported::Exported>,
}

/// Begins the log, and with it the export that the `OTEL_*` variables ask for. A build without it is silent about them.
pub(crate) fn begin() -> Telemetry {
    #[cfg(feature = "otel")]
    {
        use tracing_subscriber::{Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

        let log = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| output::Log);
        let exported = exported::Exported::of_environment();
        let layer = exported.as_ref().map(exported::Exported::layer);
        tracing_subscriber::registry().with(log.with_filter(logged())).with(layer).init();
        Telemetry { exported }
    }
    #[cfg(not(feature = "otel"))]
    {
        tracing_subscriber::fmt()
            .with_env_filter(logged())
            .with_ansi(false)
            .with_writer(|| output::Log)
            .init();
        Telemetry {}
    }
}

impl Telemetry {
    /// Exports what is left, within a bound. The program's runtime has ended: a span ends with the task that has it.
    pub(crate) fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(exported) = self.exported {
            exported.end();
        }
    }
}

/// What `SAFEPOINT_LOG` says; else our own errors, and not what a library says of a server that we tell of ourselves.
fn logged() -> EnvFilter {
    EnvFilter::try_from_env("SAFEPOINT_LOG").unwrap_or_else(|_unset| EnvFilter::new("error,rmcp=off"))
}
