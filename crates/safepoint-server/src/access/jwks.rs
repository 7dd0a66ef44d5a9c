//! Tokens of an identity provider (JWT), checked by the keys that it publishes (JWKS, RFC 7517).
//!
//! **Invariants**: issuer, audience and expiry are checked, and the algorithm is one of the key's own kind: no token chooses how it is
//! checked; a flood of tokens with unknown keys asks the provider no more often than once in a while.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use jsonwebtoken::{
    DecodingKey, Validation, decode, decode_header,
    jwk::{Jwk, JwkSet},
};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::principal::{AccessScope, Principal};

/// How old the keys may be.
const FRESH: Duration = Duration::from_secs(3_600);
/// How soon they are fetched again for a key that is not among them.
const AGAIN: Duration = Duration::from_secs(30);
/// How long a fetch may take.
const WITHIN: Duration = Duration::from_secs(10);

/// What fetches the provider's keys: the JSON of its JWKS address.
pub type KeyFetch = Arc<
    dyn Fn() -> BoxFuture<'static, Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>> + Send + Sync,
>;

/// An identity provider.
///
/// The claim `sub` names the principal. `scope` (or `scp`) has its scopes, by their names or with `safepoint:` before them; others are
/// left alone. `safepoint_agents` has the agents that it may use, if not all; `safepoint_see` = `all` lets it see all sessions.
///
/// ```
/// use safepoint_server::{Access, Jwks, KeyFetch};
/// fn access(fetch: KeyFetch) -> Access {
///     Access::tokens("tokens.toml").or_jwks(Jwks::new("https://login.example.com/", "agents", fetch))
/// }
/// ```
pub struct Jwks {
    issuer: String,
    audience: String,
    fetch: KeyFetch,
    /// Held for one look; no other lock is taken under it.
    keys: Mutex<Option<(Instant, Arc<JwkSet>)>>,
    /// Held while the keys are fetched: one request does.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: Words,
    #[serde(default)]
    scp: Words,
    safepoint_agents: Option<Vec<String>>,
    safepoint_see: Option<String>,
}

/// Words in one text, or one by one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Default for Words {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Words {
    fn scopes(&self) -> Vec<AccessScope> {
        let of = |word: &str| word.strip_prefix("safepoint:").unwrap_or(word).parse().ok();
        match self {
            Self::Text(text) => text.split_whitespace().filter_map(of).collect(),
            Self::List(words) => words.iter().filter_map(|word| of(word)).collect(),
        }
    }
}

impl Jwks {
    /// Tokens of this issuer for this audience, checked by the keys that `fetch` brings.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, fetch: KeyFetch) -> Self {
        let (issuer, audience) = (issuer.into(), audience.into());
        Self { issuer, audience, fetch, keys: Mutex::default(), fetching: tokio::sync::Mutex::new(()) }
    }

    /// Who has this token; `None` if it is not valid, or the keys cannot be had.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn principal(&self, token: &str) -> Option<Principal> {
        let header = decode_header(token).ok()?;
        let kid = header.kid.as_deref()?;
        let set = match self.known(|at, set| at.elapsed() < FRESH && set.find(kid).is_some()) {
            Some(set) => set,
            None => self.fetched(kid).await?,
        };
        let claims = self.claims(token, set.find(kid)?, header.alg)?;
        let scopes = [claims.scope.scopes(), claims.scp.scopes()].concat();
        let principal = Principal::new(claims.sub, scopes);
        let principal = match claims.safepoint_agents {
            Some(agents) => principal.only_agents(agents),
            None => principal,
        };
        Some(if claims.safepoint_see.as_deref() == Some("all") { principal.seeing_all() } else { principal })
    }

    fn claims(&self, token: &str, key: &Jwk, named: jsonwebtoken::Algorithm) -> Option<Claims> {
        let decoding = DecodingKey::from_jwk(key).ok()?;
        // A shared secret is no key of a provider, and the kind is the key's and not the token's.
        let family = decoding.family();
        if family == jsonwebtoken::AlgorithmFamily::Hmac || !family.algorithms().contains(&named) {
            return None;
        }
        let mut validation = Validation::new(named);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        decode::<Claims>(token, &decoding, &validation).ok().map(|token| token.claims)
    }

    fn known(&self, is_it: impl FnOnce(&Instant, &JwkSet) -> bool) -> Option<Arc<JwkSet>> {
        let keys = self.keys.lock().expect("no code under this lock panics");
        keys.as_ref().filter(|(at, set)| is_it(at, set)).map(|(_, set)| Arc::clone(set))
    }

    /// The keys, fetched unless another request has just done so.
    async fn fetched(&self, kid: &str) -> Option<Arc<JwkSet>> {
        let _one = self.fetching.lock().await;
        if let Some(set) =
            self.known(|at, set| at.elapsed() < AGAIN || at.elapsed() < FRESH && set.find(kid).is_some())
        {
            return Some(set);
        }
        let read = match timeout(WITHIN, (self.fetch)()).await {
            Ok(Ok(bytes)) => serde_json::from_slice::<JwkSet>(&bytes).ok(),
            Ok(Err(_)) | Err(_) => None,
        };
        // Keys that cannot be had leave those that are there: a provider that is away locks no client out at once.
        let set = match read {
            Some(set) => Arc::new(set),
            None => self.known(|_, _| true).unwrap_or_else(|| Arc::new(JwkSet { keys: Vec::new() })),
        };
        let mut keys = self.keys.lock().expect("no code under this lock panics");
        *keys = Some((Instant::now(), Arc::clone(&set)));
        drop(keys);
        Some(set)
    }
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwks")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
    use serde_json::{Value, json};

    use super::*;

    /// The golden `Claims`: what providers put into a token. Their key is made for this test, and used nowhere else.
    const KEY: [u8; 48] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20, 0x0b,
        0x66, 0xe4, 0xfd, 0xe5, 0x67, 0x59, 0x95, 0x57, 0xef, 0x4c, 0xcf, 0x6e, 0xf2, 0x52, 0xfb, 0xb2, 0x8c,
        0x73, 0x82, 0x69, 0xe9, 0xf8, 0xfb, 0x06, 0x85, 0x1a, 0x0a, 0x80, 0x9e, 0x82, 0x97,
    ];
    const PUBLIC: &str = "6VG7ra4LjegZWfAbP9ahF2T2GrcwBixOXbevfrDycyY";

    fn claims() -> Value {
        let exp = get_current_timestamp() + 600;
        json!({"sub": "anna", "iss": "https://login", "aud": "agents", "exp": exp, "scope": "safepoint:read stop other"})
    }

    fn token(header: &Header, claims: &Value, key: &EncodingKey) -> String {
        encode(header, claims, key).unwrap()
    }

    fn provider(fetches: &Arc<AtomicUsize>) -> Jwks {
        let fetches = Arc::clone(fetches);
        let fetch = move || {
            // Relaxed: counted in one thread.
            fetches.fetch_add(1, Ordering::Relaxed);
            let keys =
                json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "alg": "EdDSA", "x": PUBLIC}]});
            async move { Ok(keys.to_string().into_bytes()) }.boxed()
        };
        Jwks::new("https://login", "agents", Arc::new(fetch))
    }

    /// S13.26: a token of the provider names its principal and its scopes; one for another audience, of another issuer, past its time,
    /// signed by another key or by another way is none.
    #[tokio::test(start_paused = true)]
    async fn only_a_token_of_the_provider_for_this_server_is_taken() {
        let fetches = Arc::default();
        let provider = provider(&fetches);
        let header = Header { kid: Some("a".into()), ..Header::new(Algorithm::EdDSA) };
        let key = EncodingKey::from_ed_der(&KEY);
        let anna = provider.principal(&token(&header, &claims(), &key)).await.unwrap();
        assert_eq!(
            (anna.name(), anna.may(AccessScope::Read), anna.may(AccessScope::Stop)),
            ("anna", true, true)
        );
        assert!(!anna.may(AccessScope::Talk) && !anna.sees("other", "helper"));
        for (field, wrong) in [
            ("aud", json!("other")),
            ("iss", json!("https://evil")),
            ("exp", json!(get_current_timestamp() - 600)),
            ("nbf", json!(get_current_timestamp() + 600)),
            ("sub", Value::Null),
        ] {
            let mut claims = claims();
            claims[field] = wrong;
            assert_eq!(provider.principal(&token(&header, &claims, &key)).await, None, "{field}");
        }
        // The public key as a shared secret: the oldest trick there is.
        let shared = Header { kid: Some("a".into()), ..Header::new(Algorithm::HS256) };
        let forged = token(&shared, &claims(), &EncodingKey::from_secret(PUBLIC.as_bytes()));
        assert_eq!(provider.principal(&forged).await, None);
        let mut none = token(&header, &claims(), &key);
        none.truncate(none.rfind('.').unwrap() + 1);
        assert_eq!(provider.principal(&none).await, None, "a token without its signature");
        // Relaxed: as above.
        assert_eq!(fetches.load(Ordering::Relaxed), 1, "the keys are kept");
    }

    /// S13.26: tokens with keys that the provider does not have ask it once in a while, and not each.
    #[tokio::test(start_paused = true)]
    async fn unknown_keys_do_not_flood_the_provider() {
        let fetches = Arc::default();
        let provider = provider(&fetches);
        let key = EncodingKey::from_ed_der(&KEY);
        for round in 0..2 {
            for number in 0..100 {
                let header = Header { kid: Some(format!("k{number}")), ..Header::new(Algorithm::EdDSA) };
                assert_eq!(provider.principal(&token(&header, &claims(), &key)).await, None);
            }
            // Relaxed: as above.
            assert_eq!(fetches.load(Ordering::Relaxed), round + 1);
            tokio::time::advance(AGAIN).await;
        }
    }
}
