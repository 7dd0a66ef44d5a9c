//! A real `safepoint serve`, asked by another `safepoint` of the same user.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::script::Reply;
use serde_json::Value;

use super::world::{World, said, says};

/// S13.14: the token that a server writes for its user is found, and may read, talk and stop, and answer nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_who_serves_needs_no_token() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let (store, tokens) = (world.file("own.db"), world.file("own.toml"));
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens];
    let mut command = world.binary(&args);
    command.stderr(Stdio::null());
    let mut server: Child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<Value>(&line).unwrap()["listening"].as_str().unwrap().to_owned();
    let listed = said(world.binary(&["sessions", "ls", "--server", &url])).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.err.contains("no sessions on"), "{listed:?}");
    let elsewhere = said(world.binary(&["sessions", "ls", "--server", &world.url()])).await;
    assert_eq!(elsewhere.code, 2, "the token is not for another server: {elsewhere:?}");
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    world.end().await;
}
