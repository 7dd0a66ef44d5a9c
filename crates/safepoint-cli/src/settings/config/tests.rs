//! The golden config file: every key and every word that a config file may have, read since it was first written so.
//! `Commands` with its `Env` and its `SandboxSwitch`, `Servers` with each `Entry` and its `Spoken`, each `StartMode` and `Restart`, `Written` rules with each `RuleWord`,
//! the `Theme`, `Notify`, each `OwnPrice`, the `ServerSettings` with `TlsFiles`, `JwksSettings`, each `WebhookSettings`, `WebAddress`, `HostName`, `PageOrigin`, each `PlacementChoice` and the `RestateSettings`.

use std::path::Path;

use super::*;
use crate::args::placed::PlacementChoice;

/// Every field is named: a new one does not compile until a developer extends this test.
#[test]
fn every_key_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/config.toml");
    let config = Config::load(Some(Path::new(path))).unwrap();
    let Config {
        model,
        base_url,
        api_key_env,
        system,
        max_tokens,
        temperature,
        window,
        on_full,
        tools,
        parallel,
        approve,
        mode,
        unknown,
        on_restart,
        approval_expiry,
        max_rounds,
        mcp,
        commands: _,
        rules: _,
        secret_files,
        snapshots,
        prices,
        project,
        theme,
        notify,
        keep,
        server,
        agents,
        expiry,
        read: _,
    } = config;
    let texts = [model, base_url, api_key_env, system, tools, approval_expiry];
    assert!(texts.iter().all(Option::is_some) && !secret_files.is_empty());
    assert!(max_tokens.is_some() && temperature.is_some() && window.is_some() && on_full.is_some());
    assert!(
        parallel.is_some()
            && approve.is_some()
            && unknown.is_some()
            && on_restart.is_some()
            && max_rounds.is_some()
    );
    assert_eq!(prices.len(), 2);
    assert!(expiry.is_some() && snapshots.is_some() && mode.is_some() && project.is_some());
    assert!(theme.is_some() && keep.is_some() && notify.is_some());
    assert_eq!(mcp.all().unwrap().len(), 3);
    assert_eq!(agents.len(), 1);
    is_whole(&server);
}

fn is_whole(server: &ServerSettings) {
    let ServerSettings { listen, hosts, origins, running, .. } = server;
    assert!(
        listen.is_some()
            && hosts.len() == 1
            && origins.len() == 1
            && running.is_some_and(|running| running.get() == 20)
    );
    assert_eq!((&*hosts[0].0, &*origins[0].0), ("agents.example.com", "https://app.example.com"));
    assert!(server.public_url.is_some() && server.audit.is_some());
    let (tls, jwks) = (server.tls.as_ref().unwrap(), server.jwks.as_ref().unwrap());
    assert!(tls.cert.ends_with("cert.pem") && tls.key.ends_with("key.pem"));
    assert_eq!(
        (jwks.url.0.scheme(), &*jwks.issuer, &*jwks.audience),
        ("https", "https://login.example.com/", "agents")
    );
    let [hook] = &server.webhooks[..] else { panic!("there is one webhook") };
    assert_eq!((hook.url.0.scheme(), &*hook.secret_env, hook.private), ("https", "HOOK_SECRET", false));
    assert!(server.unload().unwrap().is_some() && server.drain().unwrap().is_some());
    assert_eq!(server.placement, Some(PlacementChoice::Graphile));
    let restate = &server.restate;
    assert!(restate.listen.is_some() && restate.identity_key.is_some());
}

/// Words that stand for a choice.
#[test]
fn every_word_is_read() {
    for (key, words) in [
        ("on_full", ["refuse", "drop", "summarise"]),
        ("approve", ["ask", "auto", "deny"]),
        ("unknown", ["tell", "ask", "ask"]),
        ("on_restart", ["wait", "resume", "wait"]),
        ("commands.env", ["core", "filtered", "all"]),
        ("approve", ["edits", "edits", "edits"]),
        ("mode", ["ask", "edits", "plan"]),
        ("notify", ["auto", "bell", "off"]),
        ("notify", ["osc9", "osc777", "off"]),
        ("commands.sandbox", ["on", "off", "off"]),
        ("theme", ["light", "dark", "dark"]),
        ("server.placement", ["here", "graphile", "restate=http://localhost:8080"]),
    ] {
        for word in words {
            let text = format!("{key} = \"{word}\"");
            assert!(toml::from_str::<Config>(&text).is_ok(), "{text}");
        }
    }
}
