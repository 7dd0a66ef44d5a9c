//! What is trusted: the certificates of the platform, and those of the settings.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;

use crate::error::HttpError;

/// TLS with the certificates of the platform, and those in this text. HTTP/2 is preferred.
pub(super) fn config(certificates: &str) -> Result<ClientConfig, HttpError> {
    // The certificates of the platform are many: they are read once.
    static PLATFORM: OnceLock<ClientConfig> = OnceLock::new();
    if !certificates.is_empty() {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates.as_bytes()).collect();
        return trusting(certificates.map_err(HttpError::setup)?);
    }
    if let Some(config) = PLATFORM.get() {
        return Ok(config.clone());
    }
    let config = trusting(Vec::new())?;
    Ok(PLATFORM.get_or_init(|| config).clone())
}

fn trusting(certificates: Vec<CertificateDer<'static>>) -> Result<ClientConfig, HttpError> {
    // A program may have chosen how it encrypts, and its choice stands. No choice is made for it.
    let chosen = CryptoProvider::get_default().cloned();
    let provider = chosen.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let verifier =
        Verifier::new_with_extra_roots(certificates, provider.clone()).map_err(HttpError::setup)?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config
        .map_err(HttpError::setup)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Ok(config)
}
