//! The token: where it comes from, which server gets it, and what is said where there is none.

use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::script::Reply;

use super::world::{Said, World, said, says};

async fn world() -> World {
    World::of(says([Reply::text("Lisbon.")]).build()).await
}

/// Whether nothing that was said has the token, nor its secret part.
fn is_silent(said: &Said, token: &str) -> bool {
    let secret = token.rsplit('_').next().unwrap();
    [&said.out, &said.err].into_iter().all(|text| !text.contains(token) && !text.contains(secret))
}

/// S13.14: a file comes before the environment, and --store before the server of the environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_comes_from_a_file_or_the_environment() {
    let world = world().await;
    let session = world.session("Portugal?").await;
    let token = std::fs::read_to_string(world.file("all.token")).unwrap();
    let by_environment = |args: &[&str]| {
        let mut command = world.binary(args);
        command.env("SAFEPOINT_SERVER", world.url()).env("SAFEPOINT_TOKEN", token.trim());
        command
    };
    let listed = said(by_environment(&["sessions", "ls"])).await;
    assert!(listed.code == 0 && listed.out.contains(&session), "{listed:?}");
    let none = world.file("none.db");
    let here = said(by_environment(&["sessions", "ls", "--store", &none])).await;
    assert_eq!((here.code, &*here.err), (0, "no sessions\n"), "{here:?}");
    std::fs::write(world.file("wrong.token"), "spt_0_0000000000000000000000000000000000000000\n").unwrap();
    let wrong = world.file("wrong.token");
    let refused = said(by_environment(&["sessions", "ls", "--token-file", &wrong])).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.err.contains("refuses the token of") && refused.err.contains("safepoint token new"),
        "{refused:?}"
    );
    assert!(is_silent(&refused, "spt_0_0000000000000000000000000000000000000000"), "{refused:?}");
    world.end().await;
}

/// S13.14: the token of `safepoint serve` is used for the server that made it, and for no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_this_user_goes_to_its_server_alone() {
    let world = world().await;
    let session = world.session("Portugal?").await;
    let folder = world.folder.path().join("safepoint");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let listed = || said(world.binary(&["sessions", "ls", "--server", &world.url()]));
    let none = listed().await;
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.err.contains("no token for") && none.err.contains("--token-file"), "{none:?}");
    std::fs::copy(world.file("all.token"), folder.join("serve.token")).unwrap();
    assert_eq!(listed().await.code, 2, "it is not known whose it is");
    let serves = |address: &str| {
        let file = std::fs::File::create(folder.join(format!("serve.at.{address}"))).unwrap();
        file.lock().unwrap();
        file
    };
    let _other = serves("127.0.0.1:1");
    let other = listed().await;
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.err.contains("is for http://127.0.0.1:1"), "{other:?}");
    let lives = serves(&world.address.to_string());
    let own = listed().await;
    assert!(own.code == 0 && own.out.contains(&session), "{own:?}");
    drop(lives);
    let died = listed().await;
    assert_eq!(died.code, 2, "what listens where a server has died does not get its token: {died:?}");
    world.end().await;
}

/// S13.14: what a token may not do, and what it does not see, is said with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_does_what_its_scopes_say() {
    let world = world().await;
    let session = world.session("Portugal?").await;
    let reads = world.token("reads", Principal::new("ben", [AccessScope::Read]).seeing_all());
    world.token("own", Principal::new("eve", AccessScope::ALL));
    world.token("stops", Principal::new("tom", [AccessScope::Stop]).seeing_all());
    let stop = said(world.asks("reads", &["stop", &session])).await;
    assert_eq!(stop.code, 1, "{stop:?}");
    assert!(stop.err.contains("lacks the scope `stop`") && is_silent(&stop, &reads), "{stop:?}");
    let unseen = said(world.asks("own", &["push", &session, "hello"])).await;
    assert_eq!(unseen.code, 3, "{unseen:?}");
    let end = said(world.asks("stops", &["stop", &session[session.len() - 8..]])).await;
    assert_eq!(end.code, 3, "it may list nothing: {end:?}");
    let whole = said(world.asks("stops", &["stop", &session])).await;
    assert!([0, 4].contains(&whole.code), "{whole:?}");
    world.end().await;
}
