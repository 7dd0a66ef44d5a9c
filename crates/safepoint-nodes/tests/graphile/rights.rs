//! What the role of an address may, and what is said where it may not.

use safepoint_nodes::{GraphileQueue, Placement as _, QueuePlacement, Wake};

use super::world::{PASSWORD, World};

async fn refused(address: &str) -> String {
    let error = GraphileQueue::open(address).await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let words = format!("{error} {error:?} {cause:?}");
    assert!(!words.contains(PASSWORD), "the password is shown: {words}");
    words
}

/// The statement of the error that begins so, for this role.
fn statement(words: &str, begins: &str, world: &World, role: &str) -> String {
    let found = words.split('`').find(|part| part.starts_with(begins));
    let statement = found.unwrap_or_else(|| panic!("{words}"));
    statement.replace(" database ", &format!(" {} ", world.name)).replace("TO role", &format!("TO {role}"))
}

async fn can_send(world: &World, role: &str, session: &str) {
    let queue = GraphileQueue::open(&world.address_of(role)).await.unwrap();
    assert!(!format!("{queue:?}").contains(PASSWORD));
    let placement = QueuePlacement::new(queue);
    placement.wake(vec![Wake::of(session)]).await.unwrap();
    assert!(placement.failure().borrow().is_none(), "{placement:?}");
}

/// S7.71: a role that may not make the tables learns what to do, and can use them after that; no error shows the password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_without_rights_learns_what_to_do() {
    let world = World::new().await;
    let (node, other) = (world.role("node").await, world.role("other").await);
    let words = refused(&world.address_of(&node)).await;
    world.sql(&statement(&words, "GRANT CREATE", &world, &node)).await;
    can_send(&world, &node, "a").await;
    world.sql(&format!("REVOKE CREATE ON DATABASE {} FROM {node}", world.name)).await;
    can_send(&world, &node, "b").await;
    let words = refused(&world.address_of(&other)).await;
    world.sql(&statement(&words, "GRANT owner", &world, &other).replace("owner", &node)).await;
    can_send(&world, &other, "c").await;
    assert_eq!(world.jobs().await, 3);
}

/// S7.55, S7.71: an address that cannot be used says why, without its password.
#[tokio::test]
async fn an_address_of_no_database_is_refused() {
    for (address, why) in [
        (format!("postgres://u:x@{PASSWORD}@localhost/db"), "cannot be read"),
        (format!("postgres://u:{PASSWORD}@127.0.0.1:1/db"), "does not answer"),
    ] {
        let words = refused(&address).await;
        assert!(words.contains(why), "{words}");
    }
}
