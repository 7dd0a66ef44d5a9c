//! Damage is found, placed, and alone: S7.6, S7.7.

use std::fs;

use safepoint::{
    ids::SessionId,
    raw::store::{ChainCheck, Damage, DamageKind, NewSession},
    store::Store,
};
use safepoint_stores::PostgresStore;
use safepoint_testkit::store_suite::record;

use super::{
    cluster::Cluster,
    support::{open, schema, world},
};

const RECORDS: u64 = 20;

/// Makes a session with its records.
async fn filled(store: &PostgresStore) {
    let records = (0..RECORDS).map(|number| record(&format!("number {number}"))).collect();
    store.create(NewSession { records, ..NewSession::of("a") }).await.unwrap();
}

/// What a check says of it, and which records cannot be read.
async fn looked_at(store: &PostgresStore) -> (ChainCheck, Vec<Damage>) {
    let session = SessionId::from("a");
    let verdict = store.check(&session).await.unwrap();
    let (mut damages, mut from) = (Vec::new(), Some(0));
    while let Some(start) = from {
        let page = store.read(&session, start, 7).await.unwrap();
        for (position, entry) in (start..).zip(page.entries) {
            assert_eq!(entry.position, position);
            match entry.record {
                Ok(found) => assert_eq!(found, record(&format!("number {position}"))),
                Err(damage) => damages.push(damage),
            }
        }
        from = page.next;
    }
    (verdict, damages)
}

/// The same of one that this statement has changed.
async fn changed(statement: &str) -> (ChainCheck, Vec<Damage>) {
    let (_, _, outside) = world();
    let schema = schema();
    let store = open(&schema, &outside);
    filled(&store).await;
    let database = Cluster::shared().connect().await;
    database.batch_execute(&format!("SET search_path TO {schema}; {statement}")).await.unwrap();
    looked_at(&store).await
}

fn damage(position: u64, flaw: DamageKind) -> Damage {
    Damage { position, flaw }
}

/// S7.7: a changed record, a missing one, a lost end and one too many are distinct, each at its place, and the others stay readable.
#[tokio::test]
async fn damage_is_placed_exactly_and_alone() {
    let head = RECORDS;
    for (statement, first, all) in [
        ("UPDATE records SET bytes = 'x' WHERE position = 7", damage(7, DamageKind::Altered), 1),
        ("UPDATE records SET version = 2 WHERE position = 13", damage(13, DamageKind::Altered), 1),
        ("DELETE FROM records WHERE position = 5", damage(5, DamageKind::Missing), 1),
        ("DELETE FROM records WHERE position < 3", damage(0, DamageKind::Missing), 3),
        ("DELETE FROM records WHERE position > 16", damage(17, DamageKind::TailLost { head }), 3),
        ("DELETE FROM records", damage(0, DamageKind::TailLost { head }), 20),
        ("UPDATE sessions SET head = 12", damage(12, DamageKind::Unannounced), 0),
        ("UPDATE sessions SET chain = decode(repeat('00', 32), 'hex')", damage(19, DamageKind::OtherHead), 0),
    ] {
        let (verdict, damages) = changed(statement).await;
        assert_eq!(verdict, ChainCheck::Damaged(first), "{statement}");
        assert_eq!(damages.len(), all, "{statement}: {damages:?}");
    }
}

/// S7.6: a record of which the database has lost a part is unreadable, by its position, and alone.
#[tokio::test]
async fn a_record_that_the_database_cannot_read_is_named_and_alone() {
    const LARGE: &str = "ALTER TABLE safepoint.records ALTER COLUMN bytes SET STORAGE EXTERNAL; \
         UPDATE safepoint.records SET bytes = decode(repeat('ab', 20000), 'hex') WHERE position = 4";
    const FILE: &str =
        "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'safepoint.records'::regclass";
    let cluster = Cluster::start(&[]);
    let store = PostgresStore::open(&cluster.address()).unwrap();
    filled(&store).await;
    store.close();
    let database = cluster.connect().await;
    database.batch_execute(LARGE).await.unwrap();
    let file: String = database.query_one(FILE, &[]).await.unwrap().get(0);
    cluster.control(&["stop", "--mode=fast"]);
    // What is large lies in another file.
    fs::File::options()
        .write(true)
        .open(cluster.folder().join("data").join(file))
        .unwrap()
        .set_len(0)
        .unwrap();
    cluster.control(&["start"]);
    let (verdict, damages) = looked_at(&PostgresStore::open(&cluster.address()).unwrap()).await;
    assert!(
        matches!(&verdict, ChainCheck::Damaged(Damage { position: 4, flaw: DamageKind::Unreadable { .. } })),
        "{verdict:?}"
    );
    assert_eq!(damages.len(), 1, "{damages:?}");
}
