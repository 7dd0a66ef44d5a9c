//! The client: what requests are made of.

use std::{fmt, sync::OnceLock};

use http::Method;
use url::Url;

use crate::{error::HttpError, pool::Pool, request::Request, settings::Settings};

/// A client. Clones share its pool; with the last of them, and of its requests, the idle connections are closed.
#[derive(Clone)]
pub struct HttpClient {
    pool: Pool,
}

/// The process's client, with the default settings.
///
/// # Errors
/// If the certificates of the platform cannot be loaded.
pub fn shared() -> Result<HttpClient, HttpError> {
    // What failed once may succeed later: only a client is kept.
    static CLIENT: OnceLock<HttpClient> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = HttpClient::new(&Settings::default())?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

impl HttpClient {
    /// A client whose pool no other client uses.
    ///
    /// # Errors
    /// If the certificates of the platform or of the settings cannot be loaded, or the settings name a proxy that is none.
    pub fn new(settings: &Settings) -> Result<Self, HttpError> {
        Ok(Self { pool: Pool::new(settings)? })
    }

    /// A GET request.
    pub fn get(&self, address: &Url) -> Request {
        self.request(Method::GET, address)
    }

    /// A POST request.
    pub fn post(&self, address: &Url) -> Request {
        self.request(Method::POST, address)
    }

    /// A request with this method.
    pub fn request(&self, method: Method, address: &Url) -> Request {
        Request::new(self.pool.clone(), method, address)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}
