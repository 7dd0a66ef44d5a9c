//! A filter of system calls: sockets, and calls that reach around the other layers.
//!
//! **Invariants** A call in the form of another processor, or in another form of this one, is not let past the filter.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule,
};

use super::{Failed, during};
use crate::{layers::Layer, opening::Opening, plan::Plan};

type Rules = BTreeMap<i64, Vec<Rule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

/// The bits of a socket's kind that are its type.
const TYPE: u64 = 0xf;
/// Each namespace that a process can be put into when it is made.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// The one that only `unshare` can make.
const TIME: u64 = 0x80;
/// The user as a whole, where a process could be meant.
const PRIORITY_OF_USER: u64 = 2;
/// The same of another call.
const IO_PRIORITY_OF_USER: u64 = 3;

/// Applies the filters to this process and all that it starts.
pub(super) fn filter(plan: &Plan) -> Result<(), Failed> {
    let has_network = plan.holds(Layer::Namespaces) || plan.opening == Some(Opening::Network);
    let filters = filters(has_network).map_err(during("make the filter of system calls"))?;
    let apply = |filter: &BpfProgram| seccompiler::apply_filter(filter);
    filters.iter().try_for_each(apply).map_err(during("filter system calls"))
}

fn filters(has_network: bool) -> Built<Vec<BpfProgram>> {
    let mut refused = sockets(has_network)?;
    refused.extend(reaches()?);
    // These are said not to be there, so that programs do what they did before them.
    let absent: Rules =
        [libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register]
            .map(|call| (call, Vec::new()))
            .into();
    let mut filters = vec![program(refused, libc::EPERM)?, program(absent, libc::ENOSYS)?];
    filters.extend(other_forms());
    Ok(filters)
}

fn program(rules: Rules, errno: i32) -> Built<BpfProgram> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Which sockets there are: those of a network, if it has one, and pairs. A socket of files or names could be connected to
/// another program, and so could a pair of datagrams.
fn sockets(has_network: bool) -> Built<Rules> {
    let family = |family: i32| family.unsigned_abs().into();
    let mut rules = Rules::new();
    if has_network {
        let other =
            [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|known| arg(0, Is::Ne, family(known)));
        let other = other.into_iter().collect::<Built<Vec<_>>>()?;
        let netlink = vec![
            arg(0, Is::Eq, family(libc::AF_NETLINK))?,
            arg(2, Is::Ne, libc::NETLINK_ROUTE.unsigned_abs().into())?,
        ];
        rules.insert(libc::SYS_socket, vec![Rule::new(other)?, Rule::new(netlink)?]);
    } else {
        rules.insert(libc::SYS_socket, Vec::new());
    }
    let connectable = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM];
    let connectable = connectable.map(|kind| when(1, Is::MaskedEq(TYPE), kind.unsigned_abs().into()));
    let foreign = when(0, Is::Ne, family(libc::AF_UNIX));
    rules.insert(libc::SYS_socketpair, connectable.into_iter().chain([foreign]).collect::<Built<_>>()?);
    Ok(rules)
}

/// Calls by which a process reaches what the other layers do not cover: keys, namespaces, the input of a terminal, limits
/// and priorities of other processes, and parts of the kernel that no build needs.
fn reaches() -> Built<Rules> {
    let always = [
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_setns,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_open_by_handle_at,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_mount_setattr,
    ];
    let mut rules: Rules = always.map(|call| (call, Vec::new())).into();
    let namespaces = NAMESPACES.map(|flag| u64::from(flag.unsigned_abs()));
    let flagged = |flag: u64| when(0, Is::MaskedEq(flag), flag);
    rules.insert(libc::SYS_clone, namespaces.into_iter().map(flagged).collect::<Built<_>>()?);
    rules.insert(libc::SYS_unshare, namespaces.into_iter().chain([TIME]).map(flagged).collect::<Built<_>>()?);
    let typed = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| when(1, Is::Eq, request));
    rules.insert(libc::SYS_ioctl, typed.into_iter().collect::<Built<_>>()?);
    // Reading them is let be.
    let set = Condition::new(2, Width::Qword, Is::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![Rule::new(vec![arg(0, Is::Ne, 0)?, set])?]);
    for (call, of_user) in
        [(libc::SYS_setpriority, PRIORITY_OF_USER), (libc::SYS_ioprio_set, IO_PRIORITY_OF_USER)]
    {
        rules.insert(call, vec![when(0, Is::Eq, of_user)?, when(1, Is::Ne, 0)?]);
    }
    Ok(rules)
}

fn when(index: u8, is: Is, value: u64) -> Built<Rule> {
    Rule::new(vec![arg(index, is, value)?])
}

fn arg(index: u8, is: Is, value: u64) -> Built<Condition> {
    Condition::new(index, Width::Dword, is, value)
}

/// The calls of x32, which have other numbers on the same processor: none of them is there.
#[cfg(target_arch = "x86_64")]
fn other_forms() -> Option<BpfProgram> {
    use seccompiler::sock_filter;
    const FIRST: u32 = 0x4000_0000;
    const NUMBER_OFFSET: u32 = 0;
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jf: u8, k: u32| sock_filter {
        code: u16::try_from(code).expect("the codes are small"),
        jt: 0,
        jf,
        k,
    };
    Some(vec![
        step(load, 0, NUMBER_OFFSET),
        step(at_least, 1, FIRST),
        step(end, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        step(end, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn other_forms() -> Option<BpfProgram> {
    None
}
