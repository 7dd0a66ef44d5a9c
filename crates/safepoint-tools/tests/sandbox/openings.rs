//! What is opened for one command, and nothing beside it.

use std::{os::unix::net::UnixListener, path::Path};

use safepoint_tools::{Confinement, Opening};

use super::{
    attempts,
    support::{Programs, Site, User, said},
};

fn is_done(place: &Site<'_>, confinement: &Confinement, line: &str) -> bool {
    let output = place.confined_by(confinement, Path::new("/bin/sh"), &["-c", line]);
    assert_ne!(output.status.code(), Some(125), "{}", said(&output));
    output.status.success()
}

/// S4.29
#[test]
fn an_open_network_opens_no_file_and_no_socket_of_a_program() {
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        let place = Site::new(&programs, user);
        let _bait = attempts::bait(&place);
        let open = place.confinement().open(Opening::Network);
        let reaches = |name: &'static str| {
            let output = place.confined_by(&open, &programs.path("attempt"), &attempts::args(name));
            output.status.success()
        };
        assert!(reaches("TCP") && reaches("UDP"), "{user:?}");
        assert!(!reaches("a socket of another program") && !reaches("an abstract socket"), "{user:?}");
        assert!(!is_done(&place, &open, "echo x > $OUT/new"), "{user:?}");
        assert!(!is_done(&place, &open, "kill -0 $VICTIM"), "{user:?}");
    }
}

/// S4.29
#[test]
fn open_files_open_no_network_and_not_the_store() {
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        let place = Site::new(&programs, user);
        let _bait = attempts::bait(&place);
        let open = place.confinement().open(Opening::Files);
        assert!(is_done(&place, &open, "echo x > $OUT/new && chmod 600 $OUT/new"), "{user:?}");
        assert!(
            !is_done(&place, &open, "grep -r secret $OUT/store || echo x > $OUT/store/store.db"),
            "{user:?}"
        );
        let output = place.confined_by(&open, &programs.path("attempt"), &attempts::args("TCP"));
        assert!(!output.status.success(), "{user:?}: {}", said(&output));
    }
}

/// S4.27: the store stays covered where it lies in the root, and so do files.
#[test]
fn what_is_hidden_in_the_root_is_covered_too() {
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        let place = Site::new(&programs, user);
        std::fs::create_dir(place.path("root/kept")).unwrap();
        std::fs::write(place.path("root/kept/store.db"), "secret").unwrap();
        let socket = UnixListener::bind(place.path("root/kept/s.sock")).unwrap();
        let one = place.confinement().hide(place.path("root/kept/store.db"));
        let all = place.confinement().hide(place.path("root/kept"));
        for (which, confinement) in [("the file", one), ("the folder", all)] {
            for line in [
                "grep secret kept/store.db",
                "rm kept/store.db",
                "mv kept/store.db kept/other",
                "echo x > kept/store.db",
                "chmod 666 kept/store.db && echo x > kept/store.db",
            ] {
                assert!(!is_done(&place, &confinement, line), "{user:?}: {which}: {line}");
            }
        }
        assert_eq!(std::fs::read_to_string(place.path("root/kept/store.db")).unwrap(), "secret");
        drop(socket);
    }
}

/// S4.27: the repository can be written where a person says so.
#[test]
fn what_a_person_adds_can_be_written() {
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        let place = Site::new(&programs, user);
        let line = "echo two > .git/objects/two && rm .git/objects/one";
        assert!(!is_done(&place, &place.confinement(), line), "{user:?}");
        assert!(is_done(&place, &place.confinement().write(".git"), line), "{user:?}");
        let home = place.confinement().write(place.path("outside/home"));
        assert!(is_done(&place, &home, "echo x > $HOME/new && chmod 600 $HOME/new"), "{user:?}");
        assert!(!is_done(&place, &home, "echo x > $OUT/new"), "{user:?}");
    }
}
