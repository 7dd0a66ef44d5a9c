//! TCP within this machine: a connection is there twice, once from each end.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::{
    End, Ends, Sight,
    inodes::{Inode, Inodes},
    service::Service,
};
use crate::process::report::TreeMember;

const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// One line of the kernel's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: u8,
    pub(super) inode: Inode,
}

/// Adds the far ends of the connections that are held.
pub(super) fn look(members: &[TreeMember], held: &Inodes, services: &[Service], ends: &mut Ends) -> Sight {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let Some((rows, sight)) = rows(members, tables) else { return Sight::Partial };
    let by_ends: HashMap<_, _> = rows.iter().map(|row| ((row.local, row.remote), row.inode)).collect();
    for row in rows.iter().filter(|row| held.contains(&row.inode) && row.state != LISTEN) {
        if services.iter().any(|service| service.is_at(row.remote)) {
            continue;
        }
        match by_ends.get(&(row.remote, row.local)) {
            Some(far) if held.contains(far) => {}
            // No process has taken it yet, or has it any more.
            Some(0) => {}
            Some(far) => {
                let (address, taken_by) = (row.remote.to_string(), taker(&rows, row.remote));
                ends.far.insert(*far, End { address, taken_by });
            }
            None if row.state == ESTABLISHED && row.remote.ip().is_loopback() => {
                ends.nameless.push(row.remote.to_string());
            }
            None => {}
        }
    }
    sight
}

/// Who takes calls at this address.
fn taker(rows: &[Row], at: SocketAddr) -> Option<Inode> {
    let takes = |row: &&Row| {
        let is_there = row.local.ip() == at.ip() || row.local.ip().is_unspecified();
        row.state == LISTEN && row.local.port() == at.port() && is_there
    };
    rows.iter().find(takes).map(|row| row.inode)
}

/// What these lists of the kernel's say of the network that the tree is in; none where they cannot be read.
pub(super) fn rows(members: &[TreeMember], tables: [&str; 2]) -> Option<(Vec<Row>, Sight)> {
    let network = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let here = fs::read_link("/proc/self/ns/net").ok();
    // Of another network not everything can be asked for.
    let is_here = members.iter().all(|member| here.is_some() && network(member.pid) == here);
    let tables: Vec<String> = tables.into_iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    let rows = tables.iter().flat_map(|table| table.lines().skip(1).filter_map(row)).collect();
    let sight = if is_here { Sight::Whole } else { Sight::Partial };
    (!tables.is_empty()).then_some((rows, sight))
}

fn row(line: &str) -> Option<Row> {
    const INODE_AFTER_STATE: usize = 5;
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(INODE_AFTER_STATE)?.parse().ok()?;
    Some(Row { local, remote, state, inode })
}

/// An address as the kernel writes it: words of four bytes, each as this machine holds it. One of IPv4 that is written as
/// one of IPv6 is one of IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    const WORD: usize = 8;
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = ip.get(at * WORD..(at + 1) * WORD)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() / WORD {
        1 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        4 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_list_is_read() {
        let line = "   1: 0100007F:ADD4 0100007F:AF39 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 \
                    0000000000000000 20 4 30 10 -1";
        let read = row(line).expect("it is a line");
        let expected = |port| SocketAddr::from(([127, 0, 0, 1], port));
        if cfg!(target_endian = "little") {
            assert_eq!((read.local, read.remote), (expected(0xADD4), expected(0xAF39)));
        }
        assert_eq!((read.state, read.inode), (ESTABLISHED, 4242));
        assert_eq!(row("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn an_address_of_either_kind_is_the_same_address() {
        if cfg!(target_endian = "little") {
            assert_eq!(address("0000000000000000FFFF00000100007F:0050"), address("0100007F:0050"));
            let six = address("00000000000000000000000001000000:0050").expect("an address");
            assert!(six.ip().is_loopback() && six.is_ipv6());
        }
        assert_eq!(address("0100:0050"), None);
    }
}
