//! `safepoint mcp login`: OAuth 2.1 with PKCE at the authorization server of a server of tools.
//!
//! **Invariants**: no token, code or verifier is shown; an answer counts only with the state that was sent, once.

mod callback;
mod discovery;

use std::{io::Read as _, process::ExitCode, time::Duration};

use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{process::Command, time::timeout};
use url::Url;

use super::servers;
use crate::{
    args::mcp::{LoginArgs, LogoutArgs},
    command::unless::{stopped, unless},
    exit::{self, Usage, code},
    output,
    settings::login::{self, Login, oauth},
    signals::Signals,
};

use callback::Callback;
use discovery::Authority;

/// Logs in, unless a signal comes first.
pub(super) async fn login(args: &LoginArgs, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    let done = unless(signals, log_in(args)).await;
    done.unwrap_or_else(|got| Ok(stopped(got, "there is no new login")))
}

/// Forgets a login.
///
/// # Errors
/// If there is no such server, or the file cannot be removed.
pub(super) fn logout(args: &LogoutArgs) -> anyhow::Result<ExitCode> {
    let (name, url) = (&args.name, servers(args.config.as_deref())?.address(&args.name)?);
    let had = login::forget(&url).with_context(|| format!("the login at {name} cannot be removed"))?;
    output::say(match had {
        true => format!("the login at {name} is removed from this machine"),
        false => format!("there was no login at {name}"),
    })?;
    Ok(exit::with(code::ACCEPTED))
}

async fn log_in(args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    let url = servers(args.config.as_deref())?.address(name)?;
    let server = oauth::address(&url).map_err(Usage)?;
    let failed = |why: String| anyhow::anyhow!("no login at {name}: {why}");
    let authority = Authority::of(&server).await.map_err(failed)?;
    let callback = Callback::listen().await.context("cannot listen on a local port")?;
    let client_id = match &args.client_id {
        Some(id) => id.clone(),
        None => register(&authority, &callback).await.map_err(failed)?,
    };
    let (verifier, state) = (random()?, random()?);
    let mut asked = authority.authorization.clone();
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let redirect = callback.address();
    asked
        .query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client_id)
        .append_pair("redirect_uri", &redirect)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &authority.resource);
    if let Some(scope) = args.scope.clone().or_else(|| authority.scopes()) {
        asked.query_pairs_mut().append_pair("scope", &scope);
    }
    output::say(format!("open this address in a browser to log in at {name}:\n{asked}"))?;
    if !args.no_browser {
        browse(&asked);
    }
    let answered = timeout(args.timeout, callback.code(&state, &authority)).await;
    let late = || failed(format!("the browser did not come back within {:?}", args.timeout));
    let code = answered.map_err(|_elapsed| late())?.map_err(failed)?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("client_id", &client_id),
        ("code_verifier", &verifier),
        ("resource", &authority.resource),
    ];
    let given = oauth::post_form(&authority.token, &form).await.map_err(failed)?;
    let login = Login {
        server: url,
        token_endpoint: authority.token.to_string(),
        client_id,
        resource: authority.resource.clone(),
        access_token: String::new(),
        refresh_token: None,
        expires_at: None,
    };
    login.with(given).and_then(|login| login.keep()).map_err(failed)?;
    output::say(format!("logged in at {name}; `safepoint mcp ls {name}` lists its tools"))?;
    Ok(exit::with(code::ACCEPTED))
}

/// The id that the authorization server gives this program.
async fn register(authority: &Authority, callback: &Callback) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
    }
    let Some(at) = &authority.registration else {
        return Err("its authorization server registers no programs; name an id with --client-id".to_owned());
    };
    let us = json!({
        "client_name": "Safepoint", "redirect_uris": [callback.address()], "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none",
    });
    Ok(oauth::post_json::<Registered>(at, &us).await?.client_id)
}

/// 256 random bits as text.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("the system gives no random numbers")?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// Asks the desktop to open it. Where there is none, the person has the address.
fn browse(address: &Url) {
    const PATIENCE: Duration = Duration::from_secs(10);
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(address.as_str()).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    if let Ok(mut child) = command.spawn() {
        tokio::spawn(async move {
            if timeout(PATIENCE, child.wait()).await.is_err() {
                // It is the browser itself, and stays.
            }
        });
    }
}
