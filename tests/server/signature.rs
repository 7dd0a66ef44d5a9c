//! The signature of a webhook, made as a receiver makes it: HMAC-SHA256 over id, time and body (Standard Webhooks).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

/// By the definition of HMAC (RFC 2104), and not by the code that signs.
pub(crate) fn of(secret: &[u8], id: &str, at: &str, body: &[u8]) -> String {
    const BLOCK: usize = 64;
    assert!(secret.len() <= BLOCK);
    let padded = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(secret).for_each(|(byte, secret)| *byte ^= secret);
        block
    };
    let inner =
        Sha256::new().chain_update(padded(0x36)).chain_update(format!("{id}.{at}.")).chain_update(body);
    let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner.finalize());
    format!("v1,{}", BASE64_STANDARD.encode(outer.finalize()))
}
