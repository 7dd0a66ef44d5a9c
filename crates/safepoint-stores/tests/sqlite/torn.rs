//! A log whose end was not written, or not rightly: S7.6, S7.7.

use std::{fs, path::Path, sync::Arc};

use safepoint_testkit::store_suite::play::{Picture, Player, script};

use super::support::{course, open, world};

/// One page and its frame in SQLite's log, and the log's own head.
const FRAME: usize = 4096 + 24;
const HEAD: usize = 32;

/// The file and the log after the whole script, none of it moved from the one to the other.
async fn files(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let (time, lives, outside) = world();
    let path = folder.join("whole.db");
    let mut player = Player::of(Arc::new(open(&path, &outside)), &time, &lives);
    for step in script() {
        drop(player.play(&step).await);
    }
    (fs::read(&path).unwrap(), fs::read(folder.join("whole.db-wal")).unwrap())
}

async fn found(folder: &Path, file: &[u8], log: &[u8]) -> Vec<Picture> {
    let (_, _, outside) = world();
    let path = folder.join("torn.db");
    for (name, bytes) in [("torn.db", file), ("torn.db-wal", log)] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let store = open(&path, &outside);
    let found = Picture::of(&store).await.unwrap();
    store.close();
    found
}

/// S7.6: of a log that was cut anywhere, what was committed before the cut is there, and no half of what came after.
#[tokio::test]
async fn a_log_cut_anywhere_is_a_moment_of_the_past() {
    let folder = tempfile::tempdir().unwrap();
    let course = course().await;
    let (file, log) = files(folder.path()).await;
    let frames = (log.len() - HEAD) / FRAME;
    let mut last = 0;
    let mut seen = 0;
    for frame in 0..=frames {
        // Before, in and at the end of a frame.
        let within = frame * 577 % FRAME;
        for cut in [HEAD + frame * FRAME, (HEAD + frame * FRAME + within).min(log.len())] {
            let found = found(folder.path(), &file, &log[..cut]).await;
            let moment = (last..course.len()).find(|moment| course[*moment] == found);
            let moment = moment.unwrap_or_else(|| panic!("cut at {cut}: no moment after {last} of the past"));
            seen += usize::from(moment != last);
            last = moment;
        }
    }
    assert_eq!(course[last], *course.last().unwrap(), "all of the log is all of the script");
    assert!(seen > 20, "only {seen} moments");
}

/// S7.6: a frame that was written wrongly ends the log; it is not taken for what was meant.
#[tokio::test]
async fn a_flipped_byte_in_the_log_is_a_moment_of_the_past() {
    let folder = tempfile::tempdir().unwrap();
    let course = course().await;
    let (file, log) = files(folder.path()).await;
    for at in (HEAD..log.len()).step_by(3 * FRAME + 1031) {
        let mut log = log.clone();
        log[at] ^= 1;
        let found = found(folder.path(), &file, &log).await;
        assert!(course.contains(&found), "a byte flipped at {at}");
        assert_ne!(found, *course.last().unwrap(), "a byte flipped at {at} is noticed");
    }
}
