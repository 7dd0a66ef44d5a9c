//! What works inside.

use std::path::Path;

use super::support::{Programs, Site, User, said};

/// S4.27: what a build or a test needs.
#[test]
fn usual_work_is_done_inside() {
    let lines = [
        ("a file of the root", "echo x > new && mkdir -p a/b && mv new a/b && rm -r a"),
        ("a temporary file", "f=$(mktemp) && echo x > $f && case $f in $TMPDIR/*) ;; *) exit 1;; esac"),
        ("the rest is read", "cat $OUT/file && ls / && cat /etc/passwd"),
        ("devices", "echo x > /dev/null && head -c 1 /dev/zero && head -c 1 /dev/urandom"),
        ("its own outputs", "test $(id -u) = 65534 || { echo x > /dev/stdout && echo x > /dev/stderr; }"),
        ("shared memory", "echo x > /dev/shm/x"),
        (
            "modes and times",
            "touch -d 2001-01-01 inside && chmod 600 inside && ln inside link && ln -s inside sym",
        ),
        ("a file between the root and the temporary folder", "mv inside $TMPDIR && mv $TMPDIR/inside ."),
        ("processes of its own", "sleep 100 & kill $! && wait $! || true"),
        ("a pipe", "mkfifo p && (echo x > p &) && cat p"),
        (
            "where it is",
            "echo x > ./here && test -e \"${OUT%/outside}/root/here\" && test \"$(pwd -P)\" = \"$(cd $PWD && pwd -P)\"",
        ),
    ];
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        for (what, line) in lines {
            let place = Site::new(&programs, user);
            let output = place.shell(&format!("set -e; {line}"));
            assert!(output.status.success(), "{user:?}: {what}: {}", said(&output));
        }
    }
}

/// S4.28: it can talk to a server that it starts itself.
#[test]
fn its_own_localhost_works() {
    let Some(programs) = Programs::new() else { return };
    for user in User::all() {
        let place = Site::new(&programs, user);
        let args = ["sandbox::inside::talk_to_itself", "--exact", "--nocapture", "--skip", "nothing"];
        let output = place.confined(&programs.path("attempt"), &args);
        assert!(output.status.success(), "{user:?}: {}", said(&output));
    }
}

#[test]
fn talk_to_itself() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener.accept().unwrap();
    }
}

/// S4.27: where it cannot be confined it is not run, and what cannot be run is said.
#[test]
fn nothing_is_run_that_is_not_confined() {
    let Some(programs) = Programs::new() else { return };
    let place = Site::new(&programs, User::Own);
    let hidden = place.confinement().hide(place.path("root"));
    let output = place.confined_by(&hidden, Path::new("/bin/sh"), &["-c", "echo x > new"]);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("lies in a directory that is hidden from commands"), "{}", said(&output));
    assert!(!place.path("root/new").exists());
    let output = place.confined(Path::new("/no/such/program"), &[]);
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
    assert!(said(&output).contains("cannot run \"/no/such/program\""), "{}", said(&output));
}
