//! The certificate of the server, read again when its file changes: who renews it restarts nothing.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::SystemTime,
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// A certificate with its chain, and its key, in PEM files.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// use safepoint_server::Tls;
/// let tls = Tls::files("/etc/agents/cert.pem", "/etc/agents/key.pem")?;
/// # drop(tls);
/// # Ok(())
/// # }
/// ```
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    /// What was read last, and when its files had changed. Held while they are read; no other lock is taken under it.
    read: Mutex<(Stamp, Arc<ServerConfig>)>,
}

/// When the two files changed.
type Stamp = [SystemTime; 2];

impl Tls {
    /// Reads both files, and reads them again for a connection that comes after they changed. Files that cannot be read then leave
    /// what was read before.
    ///
    /// # Errors
    /// If a file cannot be read, or the two do not fit each other.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> io::Result<Self> {
        let (certificate, key) = (certificate.into(), key.into());
        let stamp = stamp(&certificate, &key)?;
        let read = Mutex::new((stamp, config(&certificate, &key)?));
        Ok(Self { certificate, key, read })
    }

    /// What the next connection uses.
    pub(super) fn now(&self) -> Arc<ServerConfig> {
        let mut read = self.read.lock().expect("no code under this lock panics");
        let changed = stamp(&self.certificate, &self.key).ok().filter(|stamp| *stamp != read.0);
        if let Some(stamp) = changed
            && let Ok(config) = config(&self.certificate, &self.key)
        {
            *read = (stamp, config);
        }
        Arc::clone(&read.1)
    }
}

fn stamp(certificate: &Path, key: &Path) -> io::Result<Stamp> {
    let modified = |path: &Path| {
        let found = std::fs::metadata(path).and_then(|found| found.modified());
        found.map_err(|error| of(path, &error))
    };
    Ok([modified(certificate)?, modified(key)?])
}

fn config(certificate: &Path, key: &Path) -> io::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| of(certificate, &error))?;
    let key_of = PrivateKeyDer::from_pem_file(key).map_err(|error| of(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key_of))
        .map_err(|error| of(certificate, &error))?;
    Ok(Arc::new(config))
}

fn of(path: &Path, error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}
