//! Damage is found, placed, and alone: S7.6, S7.7.

use std::{fs, path::PathBuf};

use rusqlite::Connection;
use safepoint::{
    ids::SessionId,
    raw::{
        self,
        store::{Chain, ChainCheck, Damage, DamageKind, Durability, NewSession, Write},
    },
    store::Store,
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::store_suite::{acquire, give_back, owner, record};
use tempfile::TempDir;

const RECORDS: u64 = 20;
/// The first session's key is 1, and its records stand from here on.
const FIRST: u64 = 1 << 32;

struct Bed {
    folder: TempDir,
    path: PathBuf,
}

impl Bed {
    /// Two sessions of equally many records, in a file that no process has open.
    async fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = SqliteStore::open(&path).unwrap();
        for id in ["a", "b"] {
            let session = store.create(NewSession::of(id)).await.unwrap().id;
            let lease = acquire(&store, &session, owner(1), std::time::Duration::from_secs(1)).await.unwrap();
            for number in 0..RECORDS {
                let says = vec![Write::Record(record(&format!("number {number} of {id}")))];
                store.append(&lease, says, Durability::Recorded).await.unwrap();
            }
            give_back(&store, &lease).await.unwrap();
        }
        store.close();
        Self { folder, path }
    }

    fn change(&self, sql: &str) {
        let changed = Connection::open(&self.path).unwrap().execute(sql, []).unwrap();
        assert!(changed > 0, "{sql}");
    }

    /// What a check says of the first session, and which of its records cannot be read.
    async fn look(&self) -> (ChainCheck, Vec<Damage>) {
        let store = SqliteStore::open(&self.path).unwrap();
        let (a, b) = (SessionId::from("a"), SessionId::from("b"));
        let verdict = store.check(&a).await.unwrap();
        let mut damages = Vec::new();
        let mut from = Some(0);
        while let Some(start) = from {
            let page = store.read(&a, start, 7).await.unwrap();
            for (position, entry) in (start..).zip(page.entries) {
                assert_eq!(entry.position, position);
                match entry.record {
                    Ok(found) => assert_eq!(found, record(&format!("number {position} of a"))),
                    Err(damage) => damages.push(damage),
                }
            }
            from = page.next;
        }
        assert!(
            matches!(store.check(&b).await.unwrap(), ChainCheck::Intact(_)),
            "the other session is sound"
        );
        store.close();
        (verdict, damages)
    }
}

fn damage(position: u64, flaw: DamageKind) -> Damage {
    Damage { position, flaw }
}

/// S7.6, S7.7
#[tokio::test]
async fn what_is_whole_is_sound() {
    let bed = Bed::make().await;
    let (verdict, damages) = bed.look().await;
    assert!(matches!(verdict, ChainCheck::Intact(sound) if sound.records == RECORDS));
    assert_eq!(damages, []);
}

/// S7.7: one byte of any part of any record is placed exactly, and every other record stays readable.
#[tokio::test]
async fn a_changed_record_is_placed_exactly() {
    for (position, change) in [
        (0, "bytes = x'00'"),
        (7, "bytes = cast('number 6 of a' AS BLOB)"),
        (8, "path = '2'"),
        (9, "kind = 'sung'"),
        (13, "version = 2"),
        (19, "bytes = cast('number 18 of a' AS BLOB)"),
    ] {
        let bed = Bed::make().await;
        bed.change(&format!("UPDATE records SET {change} WHERE place = {}", FIRST + position));
        let (verdict, damages) = bed.look().await;
        let found = damage(position, DamageKind::Altered);
        assert_eq!(verdict, ChainCheck::Damaged(found.clone()), "{change}");
        assert_eq!(damages, [found], "{change}");
    }
}

/// S7.7: an edit that computes its own checksum is found at the next record, or at the session's row.
#[tokio::test]
async fn an_edit_with_its_own_checksum_is_found() {
    for (position, wanted) in [(7, damage(8, DamageKind::Altered)), (19, damage(19, DamageKind::OtherHead))] {
        let bed = Bed::make().await;
        let mut chain = Chain::of(&"a".into());
        for before in 0..position {
            chain = chain.then(before, &record(&format!("number {before} of a")));
        }
        let edited = chain.then(position, &record("edited"));
        let sql = format!(
            "UPDATE records SET bytes = cast('edited' AS BLOB), chain = x'{edited}' WHERE place = {}",
            FIRST + position
        );
        bed.change(&sql);
        let store = SqliteStore::open(&bed.path).unwrap();
        assert_eq!(store.check(&"a".into()).await.unwrap(), ChainCheck::Damaged(wanted));
    }
}

/// S7.7
#[tokio::test]
async fn a_lost_record_a_lost_tail_and_one_too_many_are_distinct() {
    let gone = |from: u64, to: u64| {
        format!("DELETE FROM records WHERE place BETWEEN {} AND {}", FIRST + from, FIRST + to)
    };
    let more = format!(
        "INSERT INTO records SELECT place + 1, path, kind, version, bytes, chain FROM records WHERE place = {}",
        FIRST + RECORDS - 1
    );
    let head = RECORDS;
    for (sql, first, all) in [
        (gone(5, 5), damage(5, DamageKind::Missing), 1),
        (gone(0, 2), damage(0, DamageKind::Missing), 3),
        (gone(17, 19), damage(17, DamageKind::TailLost { head }), 3),
        (gone(0, 19), damage(0, DamageKind::TailLost { head }), 20),
        (more, damage(head, DamageKind::Unannounced), 0),
        ("UPDATE sessions SET head = 12 WHERE id = 'a'".to_owned(), damage(12, DamageKind::Unannounced), 0),
        (
            "UPDATE sessions SET chain = zeroblob(32) WHERE id = 'a'".to_owned(),
            damage(19, DamageKind::OtherHead),
            0,
        ),
    ] {
        let bed = Bed::make().await;
        bed.change(&sql);
        let (verdict, damages) = bed.look().await;
        assert_eq!(verdict, ChainCheck::Damaged(first), "{sql}");
        assert_eq!(damages.len(), all, "{sql}: {damages:?}");
    }
}

/// S7.6: a record whose text is none is unreadable, by its position, and alone.
#[tokio::test]
async fn a_record_that_cannot_be_decoded_is_named_and_alone() {
    let bed = Bed::make().await;
    bed.change(&format!("UPDATE records SET kind = cast(x'ff' AS TEXT) WHERE place = {}", FIRST + 4));
    let (verdict, damages) = bed.look().await;
    assert!(
        matches!(&verdict, ChainCheck::Damaged(Damage { position: 4, flaw: DamageKind::Unreadable { .. } })),
        "{verdict:?}"
    );
    assert_eq!(damages.len(), 1);
    let reported = damages[0].to_string();
    assert!(reported.starts_with("record 4 cannot be read"), "{reported}");
}

/// S7.7: any byte of the file that is flipped, wherever it lies, is harmless, or found, or an error; it never gives
/// another record than the one that was written.
#[tokio::test]
async fn a_flipped_byte_of_the_file_never_gives_another_record() {
    const STEP: usize = 997;
    let bed = Bed::make().await;
    let file = fs::read(&bed.path).unwrap();
    let mut found = 0;
    for at in (0..file.len()).step_by(STEP) {
        let mut bytes = file.clone();
        bytes[at] ^= 0x10;
        let path = bed.folder.path().join("flipped.db");
        fs::write(&path, &bytes).unwrap();
        let Ok(store) = SqliteStore::open(&path) else {
            found += 1;
            continue;
        };
        for id in ["a", "b"] {
            let Ok(page) = store.read(&id.into(), 0, 100).await else {
                found += 1;
                continue;
            };
            let is_sound = matches!(store.check(&id.into()).await, Ok(ChainCheck::Intact(_)));
            let mut whole = 0;
            for entry in page.entries {
                let Ok(says) = entry.record else { continue };
                assert_eq!(says, record(&format!("number {} of {id}", entry.position)), "flipped at {at}");
                whole += 1;
            }
            assert!(!is_sound || whole == RECORDS, "flipped at {at}: sound, and {whole} records");
            found += usize::from(!is_sound);
        }
        store.close();
    }
    assert!(found > 0, "no flip was found");
}

/// S7.7: damage of the file that lies in no record is found by a check of the file, and is not said of one that is whole.
#[tokio::test]
async fn damage_beside_the_records_is_found() {
    let bed = Bed::make().await;
    let whole = SqliteStore::open(&bed.path).unwrap();
    assert_eq!(whole.check_file().await.unwrap(), None);
    whole.close();
    let mut bytes = std::fs::read(&bed.path).unwrap();
    // Where the first page's tree says that its cells begin.
    bytes[105] ^= 0xff;
    std::fs::write(&bed.path, &bytes).unwrap();
    let store = SqliteStore::open(&bed.path).unwrap();
    assert!(
        matches!(store.check(&"a".into()).await.unwrap(), ChainCheck::Intact(_)),
        "the records are whole"
    );
    assert!(store.check_file().await.unwrap().is_some());
}

/// S7.6: readable rows are returned, and an unreadable one is reported in its place.
#[tokio::test]
async fn an_export_hands_out_what_can_be_read() {
    let bed = Bed::make().await;
    bed.change(&format!("DELETE FROM records WHERE place = {}", FIRST + 3));
    let store = SqliteStore::open(&bed.path).unwrap();
    let mut entries = Vec::new();
    raw::store::export(&store, &"a".into(), |entry| entries.push(entry)).await.unwrap();
    assert_eq!(entries.len() as u64, RECORDS);
    for entry in entries {
        let wanted = match entry.position {
            3 => Err(damage(3, DamageKind::Missing)),
            position => Ok(record(&format!("number {position} of a"))),
        };
        assert_eq!(entry.record, wanted);
    }
}

/// S7.6: a bad letter in one session's title hides neither that session nor any other.
#[tokio::test]
async fn a_title_that_is_no_text_hides_nothing() {
    let bed = Bed::make().await;
    bed.change("UPDATE sessions SET title = cast(x'41ff42' AS TEXT) WHERE id = 'a'");
    let store = SqliteStore::open(&bed.path).unwrap();
    let rows = store.list(10, None).await.unwrap();
    let titles: Vec<&str> = rows.iter().map(|row| row.title.as_str()).collect();
    assert_eq!(titles, ["", "A\u{fffd}B"]);
}

/// S7.7: what is damaged can still be gone on with: nothing is destroyed.
#[tokio::test]
async fn a_damaged_journal_can_be_written_on() {
    let bed = Bed::make().await;
    bed.change(&format!("UPDATE records SET version = 9 WHERE place = {}", FIRST + 3));
    let store = SqliteStore::open(&bed.path).unwrap();
    let session = SessionId::from("a");
    let lease = acquire(&store, &session, owner(2), std::time::Duration::from_secs(1)).await.unwrap();
    let next = vec![Write::Record(record("number 20 of a"))];
    assert_eq!(store.append(&lease, next, Durability::Durable).await.unwrap().first, RECORDS);
    store.close();
    let (verdict, damages) = bed.look().await;
    assert_eq!(verdict, ChainCheck::Damaged(damage(3, DamageKind::Altered)));
    assert_eq!(damages, [damage(3, DamageKind::Altered)]);
}
