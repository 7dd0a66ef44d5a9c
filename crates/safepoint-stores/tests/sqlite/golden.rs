//! The golden file of the store: its tables, and every row after a life in which each kind of write occurs. S7.6.

use std::{path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, types::Value};
use safepoint::{
    raw::store::{Durability, Write},
    store::{NewNode, OwnerProcess, Store},
};
use safepoint_golden::Golden;
use safepoint_testkit::store_suite::play::{PlayStep, Player, script};

use super::support::{open, world};

/// Every kind of write, in the order of the enum: a new one does not compile.
fn kind(write: &Write) -> usize {
    match write {
        Write::Record(_) => 0,
        Write::TakeItem(_) => 1,
        Write::PutBackItem(_) => 2,
        Write::RemoveItem(_) => 3,
        Write::CloseInbox => 4,
        Write::OpenInbox => 5,
        Write::StopSeen(_) => 6,
        Write::OpenApproval(_) => 7,
        Write::CloseApproval(..) => 8,
        Write::Label(_) => 9,
        Write::Title(_) => 10,
        Write::Setup(_) => 11,
        Write::AtWork => 12,
        Write::AtRest => 13,
    }
}

const KINDS: usize = 14;

/// An owner with every field set.
fn holder() -> OwnerProcess {
    OwnerProcess {
        host: "host".into(),
        boot: "boot".into(),
        space: "pid:[1]".into(),
        pid: 77,
        started: 1234,
        socket: Some("/run/safepoint/77.sock".into()),
    }
}

/// Plays the script, and then what it leaves out: what the program wants to find again, and a lease that is held.
async fn live(path: &Path) {
    let (time, lives, outside) = world();
    let store: Arc<dyn Store> = Arc::new(open(path, &outside));
    let mut player = Player::of(Arc::clone(&store), &time, &lives);
    let mut written = [false; KINDS];
    for step in script() {
        if let PlayStep::Append(_, _, writes, _) = &step {
            writes.iter().for_each(|write| written[kind(write)] = true);
        }
        drop(player.play(&step).await);
    }
    let setup = Write::Setup(r#"{"model":"openai:x"}"#.into());
    written[kind(&setup)] = true;
    let node = NewNode {
        id: "node_1".into(),
        name: "worker".into(),
        pools: vec!["gpu".into()],
        address: Some("http://10.0.0.1:7717".into()),
        ..NewNode::of(holder(), Duration::from_secs(10))
    };
    let node = store.join(node).await.unwrap();
    let lease = store.acquire(&"a".into(), &node).await.unwrap();
    store.append(&lease, vec![setup], Durability::Durable).await.unwrap();
    assert_eq!(written, [true; KINDS], "each kind of write must occur");
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Blob(bytes) => {
            format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
}

fn lines(connection: &Connection, query: &str) -> Vec<String> {
    let mut statement = connection.prepare(query).unwrap();
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let row = |row: &rusqlite::Row<'_>| {
        let fields = columns
            .iter()
            .enumerate()
            .map(|(index, name)| row.get::<_, Value>(index).map(|value| format!("{name}={}", shown(&value))));
        fields.collect::<Result<Vec<String>, _>>().map(|fields| fields.join(" "))
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn texts(connection: &Connection, query: &str) -> Vec<String> {
    let mut statement = connection.prepare(query).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn the_tables_and_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    live(&path).await;
    let connection = Connection::open(&path).unwrap();
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    let versions = ["application_id", "user_version"].map(|name| format!("{name}={}", pragma(name)));
    let schema =
        texts(&connection, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name");
    let mut golden = Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/store.txt")
        .lines("versions", versions)
        .lines("schema", schema);
    for table in texts(&connection, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        golden =
            golden.lines(&table, lines(&connection, &format!("SELECT * FROM \"{table}\" ORDER BY rowid")));
    }
    golden.check();
}
