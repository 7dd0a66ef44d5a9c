//! Services of this machine that a command calls and that do none of its work, as their user declares them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

/// Where such a service is: a call of it is not among what may continue. Written as `PORT`, `HOST:PORT` (an address,
/// or `localhost`), or as the path of a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service(At);

/// Exhaustive: by TCP on this machine, at one address of it, or by a socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    Port(u16),
    Address(SocketAddr),
    Path(String),
}

impl Service {
    /// Whether this is the far end of a call to it.
    pub(super) fn is_at(&self, remote: SocketAddr) -> bool {
        match &self.0 {
            At::Port(port) => remote.ip().is_loopback() && remote.port() == *port,
            At::Address(address) => remote == *address,
            At::Path(_) => false,
        }
    }

    /// The same by the name of a socket.
    pub(super) fn is_named(&self, name: &str) -> bool {
        matches!(&self.0, At::Path(path) if path == name)
    }
}

/// What is written is the place of no service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no service of this machine: write PORT, HOST:PORT or the path of a socket")]
pub struct NoService(String);

impl FromStr for Service {
    type Err = NoService;

    fn from_str(text: &str) -> Result<Self, NoService> {
        let no = || NoService(text.to_owned());
        if text.len() > 1 && text.starts_with(['/', '@']) {
            return Ok(Self(At::Path(text.to_owned())));
        }
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self(At::Port(port)));
        }
        let address: SocketAddr = text.parse().map_err(|_no_address| no())?;
        let ip = address.ip().to_canonical();
        let is_any = ip == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || address.port() == 0;
        if is_any { Err(no()) } else { Ok(Self(At::Address(SocketAddr::new(ip, address.port())))) }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            At::Port(port) => write!(f, "{port}"),
            At::Address(address) => address.fmt(f),
            At::Path(path) => f.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.61
    #[test]
    fn a_service_is_known_by_where_it_is() {
        let at = |text: &str| text.parse::<Service>();
        let remote = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert!(at("11434").expect("a port").is_at(remote("[::1]:11434")));
        assert!(!at("11434").expect("a port").is_at(remote("10.0.0.1:11434")), "not on this machine");
        assert_eq!(at("localhost:80"), at("80"));
        let one = at("127.0.0.1:80").expect("an address");
        assert!(one.is_at(remote("127.0.0.1:80")) && !one.is_at(remote("127.0.0.2:80")));
        assert!(at("/run/x.sock").expect("a path").is_named("/run/x.sock"));
        for none in ["", "/", "model", "host:80", "0.0.0.0:80", "127.0.0.1:0", "99999"] {
            assert!(at(none).is_err(), "{none}");
        }
    }
}
