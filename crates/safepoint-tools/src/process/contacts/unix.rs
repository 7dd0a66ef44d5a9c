//! Unix sockets: who is connected with whom, as the kernel reports it to any process (`sock_diag(7)`).

use std::{collections::HashMap, time::Duration};

use rustix::{
    io::{Errno, read, write},
    net::{
        AddressFamily, SocketFlags, SocketType, netlink, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use super::{
    End, Ends, Sight,
    inodes::{Inode, Inodes},
    service::Service,
};

/// How long the kernel may take for an answer that it has at hand.
const ANSWER: Duration = Duration::from_secs(1);

/// One socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    inode: Inode,
    state: u8,
    peer: Option<Inode>,
    name: String,
}

/// Adds the far ends of the connections that are held.
pub(super) fn look(held: &Inodes, services: &[Service], ends: &mut Ends) -> Sight {
    let Ok(rows) = rows() else { return Sight::Partial };
    let names: HashMap<Inode, &str> = rows.iter().map(|row| (row.inode, row.name.as_str())).collect();
    for row in rows.iter().filter(|row| held.contains(&row.inode)) {
        let Some(peer) = row.peer.filter(|peer| *peer != 0 && !held.contains(peer)) else { continue };
        let name = names.get(&peer).copied().unwrap_or_default();
        if services.iter().any(|service| service.is_named(name)) {
            continue;
        }
        let name = if name.is_empty() { "a socket without a name" } else { name };
        let is_taker = |row: &&Row| row.name == name && row.state == LISTEN;
        let taken_by = rows.iter().find(is_taker).map(|row| row.inode);
        ends.far.insert(peer, End { address: name.to_owned(), taken_by });
    }
    Sight::Whole
}

const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const UNIX: u8 = 1;
const LISTEN: u8 = 10;
const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 1 << 2;
const NAME: u16 = 0;
const PEER: u16 = 2;
/// Bytes of a message's own head, and of what comes before the attributes of a socket.
const HEAD: usize = 16;
const FIXED: usize = 16;
/// As much as the kernel says at once.
const BUFFER: usize = 64 << 10;

/// Every unix socket of this network.
fn rows() -> rustix::io::Result<Vec<Row>> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER))?;
    write(&socket, &request())?;
    let mut rows = Vec::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let said = read(&socket, &mut buffer[..])?;
        let mut rest = &buffer[..said];
        if rest.is_empty() {
            return Err(Errno::IO);
        }
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                DONE => return Ok(rows),
                ERROR => return Err(Errno::OPNOTSUPP),
                BY_FAMILY => rows.extend(row(body)),
                _ => {}
            }
            rest = after;
        }
    }
}

fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    let words = |bytes: &mut Vec<u8>, words: &[u32]| {
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    };
    const BODY: usize = 24;
    words(&mut bytes, &[u32::try_from(HEAD + BODY).unwrap_or_default()]);
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend((REQUEST | DUMP).to_ne_bytes());
    // Its number and its sender: there is one request, and the kernel knows whose.
    words(&mut bytes, &[1, 0]);
    bytes.extend([UNIX, 0, 0, 0]);
    // In every state, of every number, with these attributes, and no cookie.
    words(&mut bytes, &[u32::MAX, 0, SHOW_NAME | SHOW_PEER, 0, 0]);
    bytes
}

/// The first message: its kind, what it says, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(bytes, 0)?).ok()?;
    let kind = half(bytes, 4)?;
    let body = bytes.get(HEAD..length)?;
    Some((kind, body, bytes.get(aligned(length)..).unwrap_or_default()))
}

fn row(body: &[u8]) -> Option<Row> {
    let (inode, state) = (Inode::from(word(body, 4)?), *body.get(2)?);
    let mut row = Row { inode, state, ..Row::default() };
    let mut rest = body.get(FIXED..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let Some(value) = rest.get(4..usize::from(length)) else { break };
        match kind {
            PEER => row.peer = word(value, 0).map(Inode::from),
            NAME => row.name = name(value),
            _ => {}
        }
        rest = rest.get(aligned(usize::from(length))..).unwrap_or_default();
    }
    Some(row)
}

/// A name that begins with nothing is none of the file system's, and is written with an `@`.
fn name(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    match text.strip_prefix('\0') {
        Some(name) => format!("@{}", name.replace('\0', "@")),
        None => text.trim_end_matches('\0').to_owned(),
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::{super::inodes, *};

    /// S10.60: both ends of a connection know each other, and an accepted one has the name of its listener.
    #[test]
    fn a_connection_is_known_by_both_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub");
        let listens = UnixListener::bind(&path).expect("a socket");
        let calls = UnixStream::connect(&path).expect("it is listened to");
        let taken = listens.accept().expect("it is called");
        let own = inodes::own();
        let rows = rows().expect("the kernel answers");
        let named: Vec<&Row> = rows.iter().filter(|row| path.to_str() == Some(row.name.as_str())).collect();
        let accepted =
            named.iter().find(|row| row.peer.is_some_and(|peer| peer != 0)).expect("it was accepted");
        let caller = rows.iter().find(|row| Some(row.inode) == accepted.peer).expect("it has a caller");
        assert_eq!(caller.peer, Some(accepted.inode));
        assert!(own.contains(&accepted.inode) && own.contains(&caller.inode));
        drop((calls, taken));
    }

    #[test]
    fn what_is_cut_or_nonsense_is_nothing() {
        assert_eq!(message(&[0; 8]), None);
        assert_eq!(message(&[255; 32]), None);
        assert_eq!(row(&[0; 7]), None);
        assert_eq!((name(b"/run/x\0").as_str(), name(b"\0bus").as_str()), ("/run/x", "@bus"));
    }
}
