//! UDP within this machine: a socket that is connected to an address names its peer; that peer's socket may be connected back,
//! or take what comes from anyone.

use std::net::SocketAddr;

use super::{
    End, Ends, Sight,
    inodes::Inodes,
    loopback::{self, Row},
    service::Service,
};
use crate::process::report::TreeMember;

/// Adds the sockets behind the addresses that connected sockets of the tree send to. A socket that is connected to no address
/// has no peer, and an address of another machine has none here.
pub(super) fn look(members: &[TreeMember], held: &Inodes, services: &[Service], ends: &mut Ends) -> Sight {
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
    let Some((rows, sight)) = loopback::rows(members, tables) else { return Sight::Partial };
    for row in rows.iter().filter(|row| held.contains(&row.inode) && is_connected(row)) {
        if services.iter().any(|service| service.is_at(row.remote)) {
            continue;
        }
        for peer in peers(&rows, row).filter(|peer| peer.inode != 0 && !held.contains(&peer.inode)) {
            ends.far.insert(peer.inode, End { address: row.remote.to_string(), taken_by: None });
        }
    }
    sight
}

fn is_connected(row: &Row) -> bool {
    row.remote.port() != 0
}

/// The sockets that get what is sent over this one. Several may share an address; then each may be the one.
fn peers<'r>(rows: &'r [Row], from: &Row) -> impl Iterator<Item = &'r Row> {
    let is_here = is_here(rows, from);
    let (local, remote) = (from.local, from.remote);
    let fit = move |row: &Row| if is_here { fit(row, local, remote) } else { None };
    let best = rows.iter().filter_map(fit).min();
    rows.iter().filter(move |row| best.is_some() && fit(row) == best)
}

/// Whether it is connected to an address of this machine: the kernel gives such a socket the same address at our end, or one
/// of the loopback network at both.
fn is_here(rows: &[Row], from: &Row) -> bool {
    let ip = from.remote.ip();
    ip.is_loopback() || from.local.ip() == ip || rows.iter().any(|row| row.local.ip() == ip)
}

/// How closely a socket fits as the one at `remote`, for a sender at `local`; the kernel takes the least of these.
fn fit(row: &Row, local: SocketAddr, remote: SocketAddr) -> Option<u8> {
    const BACK: u8 = 0;
    const AT_ADDRESS: u8 = 1;
    const AT_ANY_OF_KIND: u8 = 2;
    const AT_ANY: u8 = 3;
    let (ip, wanted) = (row.local.ip(), remote.ip());
    match () {
        () if row.local.port() != remote.port() => None,
        () if is_connected(row) => (row.local == remote && row.remote == local).then_some(BACK),
        () if ip == wanted => Some(AT_ADDRESS),
        () if !ip.is_unspecified() => None,
        () if ip.is_ipv4() == wanted.is_ipv4() => Some(AT_ANY_OF_KIND),
        // One of IPv6 may take what comes over IPv4; not the other way round.
        () => ip.is_ipv6().then_some(AT_ANY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(local: &str, remote: &str, inode: u64) -> Row {
        const CONNECTED: u8 = 1;
        let at = |text: &str| text.parse().expect("an address");
        Row { local: at(local), remote: at(remote), state: CONNECTED, inode }
    }

    fn found(rows: &[Row], from: &Row) -> Vec<u64> {
        peers(rows, from).map(|row| row.inode).collect()
    }

    /// S10.60: the peer of a connected socket is the one that the kernel would give its datagrams to.
    #[test]
    fn a_datagrams_peer_is_the_socket_that_gets_it() {
        let ours = row("127.0.0.1:4000", "127.0.0.1:9", 1);
        let any = row("0.0.0.0:9", "0.0.0.0:0", 2);
        let both = row("[::]:9", "[::]:0", 3);
        let other = row("127.0.0.1:9", "127.0.0.1:4001", 4);
        let back = row("127.0.0.1:9", "127.0.0.1:4000", 5);
        assert_eq!(found(&[ours, both, other], &ours), [3]);
        assert_eq!(found(&[ours, both, any, other], &ours), [2]);
        assert_eq!(found(&[ours, both, any, other, back], &ours), [5]);
        assert!(found(&[ours, other], &ours).is_empty());
    }

    /// S10.60: an address of another machine, such as that of a name server, has no peer here, whatever has its port.
    #[test]
    fn an_address_of_another_machine_has_no_peer_here() {
        let ours = row("10.0.0.7:4000", "10.0.0.1:53", 1);
        let server = row("0.0.0.0:53", "0.0.0.0:0", 2);
        assert!(found(&[ours, server], &ours).is_empty());
        let at_home = row("10.0.0.7:4000", "10.0.0.7:53", 1);
        assert_eq!(found(&[at_home, server], &at_home), [2]);
    }
}
