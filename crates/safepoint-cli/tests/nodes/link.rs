//! A way to the database that can be cut: what is sent is swallowed, and nothing says so.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
};

/// Whether it is cut, and what waits for its end.
#[derive(Default)]
struct Cut {
    is_cut: Mutex<bool>,
    healed: Condvar,
}

/// A link. It serves until the test program ends.
pub(super) struct Link {
    pub(super) port: u16,
    cut: Arc<Cut>,
}

impl Link {
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::<Cut>::default();
        let shared = Arc::clone(&cut);
        let server = SocketAddr::from(([127, 0, 0, 1], server));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
                for (from, to) in ways {
                    let cut = Arc::clone(&shared);
                    thread::spawn(move || pass(from, to, &cut));
                }
            }
        });
        Self { port, cut }
    }

    /// From now on nothing comes through.
    pub(super) fn cut(&self) {
        self.set(true);
    }

    /// From now on everything does.
    pub(super) fn heal(&self) {
        self.set(false);
        self.cut.healed.notify_all();
    }

    fn set(&self, is_cut: bool) {
        *self.cut.is_cut.lock().unwrap_or_else(PoisonError::into_inner) = is_cut;
    }
}

/// What comes while it is cut waits, as in a buffer of a network that is away, and comes late.
fn pass(mut from: TcpStream, mut to: TcpStream, cut: &Cut) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let mut is_cut = cut.is_cut.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_cut {
            is_cut = cut.healed.wait(is_cut).unwrap_or_else(PoisonError::into_inner);
        }
        drop(is_cut);
        if to.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}
