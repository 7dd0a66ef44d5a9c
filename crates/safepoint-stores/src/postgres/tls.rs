//! TLS to the server: verified, or none.

use std::{fs, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use safepoint::{raw::store::Cause, store::Error};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;

/// Makes TLS connections that trust the certificates of the address's file, or those that browsers trust. Without TLS it trusts none.
pub(super) fn connector(address: &Address) -> Result<MakeRustlsConnect, Error> {
    let mut roots = RootCertStore::empty();
    match address.root_file.as_deref() {
        _ if address.config.get_ssl_mode() == SslMode::Disable => {}
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|why| refused(file, why))?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| Error::Failed(Cause::new(why)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let pem = fs::read(file).map_err(|why| refused(file, why))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|why| refused(file, why))?;
    if found.is_empty() {
        return Err(refused(file, "it has no certificate in PEM"));
    }
    Ok(found)
}

fn refused(file: &str, why: impl std::fmt::Display) -> Error {
    Error::Failed(Cause::new(format!("`sslrootcert` {file} cannot be used: {why}")))
}
