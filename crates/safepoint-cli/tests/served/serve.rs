//! A real `safepoint serve`, asked by another `safepoint` of the same user.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::script::Reply;
use serde_json::Value;

use super::world::{World, said, says};

/// A server of this user with a store of this name, and its URL.
fn begun(world: &World, store: &str) -> (Child, String) {
    let (store, tokens) = (world.file(store), world.file("own.toml"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens];
    let mut command = world.binary(&args);
    command.stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["listening"].as_str().unwrap().to_owned();
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
    let (server, url) = begun(&world, "own.db");
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
    let (first, first_url) = begun(&world, "first.db");
    let (second, second_url) = begun(&world, "second.db");
    let (mut killed, killed_url) = begun(&world, "killed.db");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let listed = async |url: &str| said(world.binary(&["sessions", "ls", "--server", url])).await.code;
    for url in [&first_url, &second_url] {
        assert_eq!(listed(url).await, 0, "{url}");
    }
    end(second);
    assert_eq!(listed(&first_url).await, 0);
    let folder = world.folder.path().join("safepoint");
    let addresses = || std::fs::read_to_string(folder.join("serve.addresses")).unwrap();
    assert!(addresses().contains(killed_url.strip_prefix("http://").unwrap()));
    let (third, third_url) = begun(&world, "second.db");
    assert_eq!(addresses().lines().count(), 2, "one that was killed is no longer on the list");
    end(first);
    assert_eq!(listed(&third_url).await, 0);
    end(third);
    assert_eq!(listed(&third_url).await, 2, "the token of the last one is gone with it");
    world.end().await;
}
