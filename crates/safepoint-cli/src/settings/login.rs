//! Logins at servers of tools: tokens in a file of the user alone, renewed before they expire, and shown nowhere.
//!
//! **Invariants**
//! - A login belongs to the address of its server: another server, whatever it is called, is never sent its token.
//! - One process at a time renews a login, and what it was given is written before it is used: a renewal is never lost.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

mod file;
pub(crate) mod oauth;

pub(crate) use file::{forget, read};

/// A token that expires sooner than this is renewed first.
const EARLY: Duration = Duration::from_secs(60);

/// What is kept of a login.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Login {
    /// The server's address.
    pub(crate) server: String,
    pub(crate) token_endpoint: String,
    pub(crate) client_id: String,
    /// What the token is for, as the server names itself.
    pub(crate) resource: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// What an authorization server gives.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    access_token: String,
    token_type: String,
    expires_in: Option<u32>,
    refresh_token: Option<String>,
}

impl Login {
    /// The same login with what was given now.
    ///
    /// # Errors
    /// If it is no token that a request can be sent with.
    pub(crate) fn with(mut self, given: Tokens) -> Result<Self, String> {
        if !given.token_type.eq_ignore_ascii_case("bearer") {
            return Err("the authorization server gave a token that is no bearer token".to_owned());
        }
        self.access_token = given.access_token;
        // One that gives no new refresh token leaves the old one as it is.
        self.refresh_token = given.refresh_token.or(self.refresh_token);
        let lasts = given.expires_in.map(|seconds| Duration::from_secs(seconds.into()));
        self.expires_at = lasts.and_then(|lasts| Timestamp::now().checked_add(lasts).ok());
        Ok(self)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn keep(&self) -> Result<(), String> {
        file::write(self).map_err(|error| format!("the login cannot be kept: {error}"))
    }

    fn is_fresh(&self) -> bool {
        let soon = Timestamp::now().checked_add(EARLY).unwrap_or(Timestamp::MAX);
        self.expires_at.is_none_or(|end| end > soon)
    }

    /// The values that are shown nowhere.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.access_token.clone()).chain(self.refresh_token.clone())
    }
}

/// Where the token of each request to this server comes from.
pub(crate) fn source(
    name: &str,
    server: &str,
) -> impl Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync + 'static {
    let (name, server) = (name.to_owned(), server.to_owned());
    move || {
        let (name, server) = (name.clone(), server.clone());
        // A task: a request that is dropped meanwhile does not lose what a renewal gave.
        let renewing = tokio::spawn(token(name, server));
        Box::pin(async move { renewing.await.map_err(|_lost| "the login could not be read".to_owned())? })
    }
}

/// The token of a login, renewed where it is about to expire.
async fn token(name: String, server: String) -> Result<String, String> {
    let again = format!("`safepoint mcp login {name}` logs in again");
    let gone = || format!("the login at {name} is gone; {again}");
    let login = blocking({
        let server = server.clone();
        move || Ok(file::read(&server))
    });
    let login = login.await?.ok_or_else(gone)?;
    if login.is_fresh() {
        return Ok(login.access_token);
    }
    let lock = blocking({
        let server = server.clone();
        move || file::lock(&server).map_err(|error| format!("the login at {name} cannot be renewed: {error}"))
    });
    let _lock = lock.await?;
    // Another process may have renewed it while this one waited.
    let login = blocking(move || Ok(file::read(&server)))
        .await?
        .ok_or_else(|| format!("the login is gone; {again}"))?;
    if login.is_fresh() {
        return Ok(login.access_token);
    }
    let renewed = renew(login)
        .await
        .map_err(|why| format!("the login has expired and cannot be renewed: {why}; {again}"))?;
    let token = renewed.access_token.clone();
    blocking(move || renewed.keep()).await?;
    Ok(token)
}

async fn renew(login: Login) -> Result<Login, String> {
    let refresh = login.refresh_token.clone().ok_or("the authorization server gave no refresh token")?;
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &refresh),
        ("client_id", &login.client_id),
        ("resource", &login.resource),
    ];
    let endpoint = oauth::address(&login.token_endpoint)?;
    let given = oauth::post_form(&endpoint, &form).await?;
    login.with(given)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_lost| "the login could not be read".to_owned())?
}

#[cfg(test)]
mod tests;
