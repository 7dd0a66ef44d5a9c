//! What a job says, as it is written and read; its golden file.

use safepoint_golden::Golden;

use super::*;

/// S7.57, S7.61: a session is named by a job whatever its name is.
#[test]
fn any_name_comes_back_from_a_job() {
    for name in ["trip", "a\0b", "50%", "ü✓ é", "\u{1}", "%00"] {
        let wake = Wake { pool: name.to_owned(), priority: -3, tries: 4, ..Wake::of(name) };
        let spec = TakeJob::spec(&wake).unwrap();
        let is_plain = |text: &str| !text.contains('\0') && !text.contains('\u{1}');
        assert!(is_plain(spec.spec.job_key().as_deref().unwrap()), "{name:?}");
        let job: TakeJob = serde_json::from_value(spec.payload).unwrap();
        assert!(is_plain(&job.session) && is_plain(&job.pool), "{name:?}");
        assert_eq!(job.wake(), Some(wake));
    }
    let key = |name: &str| TakeJob::spec(&Wake::of(name)).unwrap().spec.job_key().clone().unwrap();
    let long = ["x".repeat(512), "x".repeat(513), "%".repeat(512)].map(|name| key(&name));
    assert!(long.iter().all(|key| key.len() <= 512) && long[0] != long[1] && long[1] != long[2], "{long:?}");
}

/// S7.71: nodes of two releases share a queue, so the payload of a [`TakeJob`] stays as it is.
#[test]
fn the_form_of_a_job_is_kept() {
    let wakes =
        [Wake::of("trip"), Wake { pool: "helper".into(), priority: -1, tries: 2, ..Wake::of("a\0 50%") }];
    let jobs = wakes.map(|wake| {
        let spec = TakeJob::spec(&wake).unwrap();
        serde_json::from_value::<TakeJob>(spec.payload).unwrap()
    });
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/graphile.txt").json("job", jobs).check();
    let oldest: TakeJob = serde_json::from_str(r#"{"session": "trip"}"#).unwrap();
    assert_eq!(oldest.wake(), Some(Wake::of("trip")));
}
