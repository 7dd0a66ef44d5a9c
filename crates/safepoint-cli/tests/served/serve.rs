//! A real `safepoint serve`, asked by another `safepoint` of the same user.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::{
    script::Reply,
    wait::{self, InTime as _},
};
use serde_json::{Value, json};

#[cfg(feature = "jwks")]
use super::refused::{answers, http};
use super::world::{World, begun, modelled, said, says};

/// A server of this user with a store of this name, and its URL.
fn serving(world: &World, store: &str) -> (Child, String) {
    let (store, tokens) = (world.file(store), world.file("own.toml"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens];
    let mut command = world.binary(&args);
    command.stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let url = listening(&mut server)["listening"].as_str().unwrap().to_owned();
    (server, url)
}

/// Ends it as an operator does.
fn end(mut server: Child) {
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

/// S13.14: the token that a server writes for its user is found, and may read, talk and stop, and answer nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_who_serves_needs_no_token() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let (server, url) = serving(&world, "own.db");
    let listed = said(world.binary(&["sessions", "ls", "--server", &url])).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.err.contains("no sessions on"), "{listed:?}");
    let elsewhere = said(world.binary(&["sessions", "ls", "--server", &world.url()])).await;
    assert_eq!(elsewhere.code, 2, "the token is not for another server: {elsewhere:?}");
    end(server);
    world.end().await;
}

/// S13.14: a second server of one user shares the token of the first, takes nothing from it, and leaves it what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_of_one_user_are_reached() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let (first, first_url) = serving(&world, "first.db");
    let (second, second_url) = serving(&world, "second.db");
    let (mut killed, killed_url) = serving(&world, "killed.db");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let listed = async |url: &str| said(world.binary(&["sessions", "ls", "--server", url])).await.code;
    for url in [&first_url, &second_url] {
        assert_eq!(listed(url).await, 0, "{url}");
    }
    end(second);
    assert_eq!(listed(&first_url).await, 0);
    let (third, third_url) = serving(&world, "second.db");
    assert_eq!(listed(&killed_url).await, 2, "the token is for none that was killed");
    end(first);
    assert_eq!(listed(&third_url).await, 0);
    end(third);
    assert_eq!(listed(&third_url).await, 2, "the token of the last one is gone with it");
    world.end().await;
}

/// S13.44: an agent that is served has the agents and the instructions that its project has in files, as in the terminal, and none where
/// its settings read no project.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_served_has_the_agents_of_its_project() {
    let (model, agent) = modelled((0..3).map(|_| Reply::text("Hi."))).await;
    let world = World::of(agent).await;
    let (store, tokens, config, base) =
        (world.file("own.db"), world.file("own.toml"), world.file("config.toml"), model.url());
    let agents = world.folder.path().join("work/.safepoint/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::create_dir(world.folder.path().join("work/.git")).unwrap();
    std::fs::write(world.folder.path().join("work/.git/HEAD"), "x").unwrap();
    std::fs::write(agents.join("look.md"), "---\ndescription: Looks\n---\nYou only look.\n").unwrap();
    std::fs::write(world.folder.path().join("work/AGENTS.md"), "Say hello.").unwrap();
    std::fs::write(&config, "[agents.one]\n[agents.two]\nproject = false\n").unwrap();
    let (root, common) =
        (world.file("work"), ["--model", "openai:m", "--tools", "read_file", "--store", &store]);
    let start = |command: &[&str]| {
        let mut command = world.binary(&[command, &common, &["--root", &root, "--base-url", &base]].concat());
        command.env("OPENAI_API_KEY", "sk-test").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    // Of the request at this place: the tools that it offers, and whether it has the instructions.
    let offered = |place: usize| {
        let body = &model.requests()[place].body;
        let tools = body["tools"].as_array().unwrap().iter();
        let names: Vec<_> = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
        (names, body.to_string().contains("Say hello."))
    };
    let mut server = start(&["serve", "--listen", "127.0.0.1:0", "--tokens", &tokens, "--config", &config]);
    let listening = listening(&mut server);
    let (url, token) = (listening["listening"].as_str().unwrap(), listening["token"].as_str().unwrap());
    for (place, agent) in ["one", "two"].into_iter().enumerate() {
        begun(url, token, &json!({"agent": agent, "item": {"text": "Go."}})).await;
        wait::asked("the model is asked", async || model.requests().len() > place).await;
    }
    end(server);
    let mut tool = start(&["mcp", "serve"]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut input = tool.stdin.take().unwrap();
    for line in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "default", "arguments": {"text": "Go."}}}),
    ] {
        writeln!(input, "{line}").unwrap();
    }
    wait::asked("the model is asked", async || model.requests().len() > 2).await;
    drop(input);
    assert!(tool.wait().unwrap().success());
    let both = (vec!["read_file".to_owned(), "look".to_owned()], true);
    let sorted = |place: usize| {
        let (mut names, says) = offered(place);
        names.sort_by_key(|name| name == "look");
        (names, says)
    };
    assert_eq!((sorted(0), sorted(2)), (both.clone(), both));
    assert_eq!(sorted(1), (vec!["read_file".to_owned()], false), "it reads no project");
    world.end().await;
}

/// S13.12, S13.14: a drain is none the less done where the token of the user cannot be taken away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_stays_is_no_failed_drain() {
    let world = World::of(says([]).build()).await;
    let (server, _url) = serving(&world, "own.db");
    let folder = world.folder.path().join("safepoint");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    end(server);
    world.end().await;
}

/// S13.49: a file of tokens that cannot be read is no file without tokens: the start says where and what to do. One that breaks later
/// opens nothing, which is said once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_tokens_that_is_broken_is_said() {
    let world = World::of(says([]).build()).await;
    let (store, tokens) = (world.file("own.db"), world.file("tokens.toml"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens];
    let whole = std::fs::read_to_string(&tokens).unwrap();
    let mut server = world.binary(&args).spawn().unwrap();
    let url = listening(&mut server)["listening"].as_str().unwrap().to_owned();
    let all = world.file("all.token");
    let listed =
        async || said(world.binary(&["sessions", "ls", "--server", &url, "--token-file", &all])).await.code;
    assert_eq!(listed().await, 0);
    std::fs::write(&tokens, "\n[[token]]\nname = \"anna\"\n").unwrap();
    assert_eq!((listed().await, listed().await), (1, 1));
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || server.wait_with_output().unwrap());
    let ended = String::from_utf8(ended.in_time("the end of the server").await.unwrap().stderr).unwrap();
    let where_and_what = [&*format!("{tokens}, line 2: missing field `"), "`safepoint token new`"];
    for part in where_and_what {
        assert_eq!(ended.matches(part).count(), 1, "{part}: {ended}");
    }
    let refused = said(world.binary(&args)).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(where_and_what.iter().all(|part| refused.err.contains(part)), "{refused:?}");
    std::fs::write(&tokens, whole).unwrap();
    world.end().await;
}

/// S13.14: a certificate that is not accepted is said with what to do, and that helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_not_trusted_is_said_with_what_to_do() {
    let world = World::of(says([]).build()).await;
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/../safepoint-http/tests/certificates");
    let [store, tokens, config, token] =
        ["own.db", "tokens.toml", "config.toml", "all.token"].map(|name| world.file(name));
    let tls = format!("cert = \"{certificates}/localhost.pem\"\nkey = \"{certificates}/localhost.key\"\n");
    std::fs::write(&config, format!("[server.tls]\n{tls}")).unwrap();
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens, "--config", &config];
    let mut server = world.binary(&args).stderr(Stdio::null()).spawn().unwrap();
    let url = listening(&mut server)["listening"].as_str().unwrap().replace("127.0.0.1", "localhost");
    let list = || world.binary(&["sessions", "ls", "--server", &url, "--token-file", &token]);
    let refused = said(list()).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("is not accepted") && refused.err.contains("SSL_CERT_FILE"), "{refused:?}");
    if cfg!(target_os = "linux") {
        let mut trusts = list();
        trusts.env("SSL_CERT_FILE", format!("{certificates}/authority.pem"));
        let listed = said(trusts).await;
        assert_eq!(listed.code, 0, "{listed:?}");
    }
    end(server);
    world.end().await;
}

/// S13.30: a signal ends a server that has not begun yet, whatever it waits for, and so does one for a client over stdin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_waits_is_ended_by_a_signal() {
    let world = World::of(says([]).build()).await;
    let [store, tokens, config, begun] =
        ["own.db", "own.toml", "config.toml", "begun"].map(|name| world.file(name));
    let mute = format!(
        "[mcp.mute]\ncommand = \"sh\"\nargs = [\"-c\", \"echo > '{begun}'; exec cat > /dev/null\"]\n"
    );
    std::fs::write(&config, mute).unwrap();
    let common = ["--config", &config, "--store", &store, "--tools", "mcp"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--tokens", &tokens];
    for command in [&serve[..], &["acp"], &["mcp", "serve"]] {
        let mut server = world.binary(&[command, &common].concat());
        let server = server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        wait::asked("the start waits", async || std::fs::exists(&begun).unwrap()).await;
        kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
        let ended = tokio::task::spawn_blocking(move || server.wait_with_output().unwrap());
        let ended = ended.in_time("the end of a start").await.unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(143), "{command:?}: {said}");
        assert!(said.contains("stopped; nothing was served"), "{command:?}: {said}");
        std::fs::remove_file(&begun).unwrap();
    }
    world.end().await;
}

/// S13.30: a drain that waits is ended by a second signal, with all that still runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_that_waits_is_ended_by_a_second_signal() {
    let (model, agent) = modelled([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let (store, tokens, base) = (world.file("own.db"), world.file("own.toml"), model.url());
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens];
    let model = ["--drain", "1h", "--model", "openai:m", "--base-url", &base];
    let mut command = world.binary(&[&args[..], &model].concat());
    let mut server = command.env("OPENAI_API_KEY", "sk-test").spawn().unwrap();
    let listening = listening(&mut server);
    let token = listening["token"].as_str().unwrap();
    begun(listening["listening"].as_str().unwrap(), token, &json!({"item": {"text": "Go."}})).await;
    gate.request().in_time("the turn asks its model").await;
    let id = Pid::from_child(&server);
    kill_process(id, Signal::TERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || {
        let said = BufReader::new(server.stderr.take().unwrap());
        let mut said = said.lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("Draining")));
        kill_process(id, Signal::TERM).unwrap();
        assert!(said.any(|line| line.contains("what still runs ends with the program")));
        server.wait().unwrap()
    });
    assert_eq!(ended.in_time("the end of the server").await.unwrap().code(), Some(143));
    world.end().await;
}

/// What a server says once it listens.
fn listening(server: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// S13.26: the keys of a provider on this machine are asked for through no proxy.
#[cfg(feature = "jwks")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keys_of_a_provider_on_this_machine_come_through_no_proxy() {
    /// Of the key `k`, which the provider does not have.
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJ4In0.c2ln";
    let world = World::of(says([]).build()).await;
    let json = "content-type: application/json\r\n";
    let (provider, asked) = answers(http("200 OK", json, "{\"keys\":[]}"));
    let (proxy, proxied) = answers(http("200 OK", json, "{\"keys\":[]}"));
    let (store, config, tokens) = (world.file("own.db"), world.file("config.toml"), world.file("own.toml"));
    let jwks = format!("[server.jwks]\nurl = \"{provider}/keys\"\nissuer = \"i\"\naudience = \"a\"\n");
    std::fs::write(&config, jwks).unwrap();
    std::fs::write(world.file("jwt.token"), TOKEN).unwrap();
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--config", &config, "--store", &store, "--tokens", &tokens];
    let mut command = world.binary(&args);
    command.stderr(Stdio::null()).env("HTTP_PROXY", &proxy).env("ALL_PROXY", &proxy);
    let mut server: Child = command.spawn().unwrap();
    let url = listening(&mut server)["listening"].as_str().unwrap().to_owned();
    let file = world.file("jwt.token");
    let refused = said(world.binary(&["sessions", "ls", "--server", &url, "--token-file", &file])).await;
    assert!(refused.code == 1 && refused.err.contains("refuses the token"), "{refused:?}");
    let head = asked.recv_timeout(wait::patience()).unwrap();
    assert!(head.starts_with("GET /keys "), "{head}");
    let through: Vec<String> = proxied.try_iter().filter(|head| head.contains("/keys")).collect();
    assert!(through.is_empty(), "a proxy was asked for the keys: {through:?}");
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    world.end().await;
}
