//! Where the database is: a connection string, read.
//!
//! **Invariants:** the password is in the settings for the server alone; nothing here shows it, an error neither.

use std::{error::Error as _, fmt, net::IpAddr, time::Duration};

use percent_encoding::percent_decode_str;
use safepoint::{raw::store::Cause, store::Error};
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

/// Where the database is, and how it is reached.
pub(super) struct Address {
    pub(super) config: Config,
    /// The file with the certificates that are trusted, if one is named.
    pub(super) root_file: Option<String>,
}

/// What the string says of TLS, in the words of libpq.
#[derive(Default)]
struct TlsWords {
    mode: Option<String>,
    root_file: Option<String>,
}

/// What is wrong with an address. What cannot be read may be a part of a password, and is not repeated.
fn unread(error: &tokio_postgres::Error) -> &'static str {
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    match why.as_str() {
        "invalid value for option `port`" => {
            "its port is no number up to 65535; a `:` or `/` of a user's name or a password is written as `%3A` or `%2F`, and `@` and `?` as `%40` and `%3F`"
        }
        "invalid value for option `connect_timeout`" => "its `connect_timeout` is a number of seconds",
        why if why.starts_with("invalid value for option") => {
            "the value of a setting behind `?` cannot be read"
        }
        why if why.starts_with("unknown option") => {
            "a setting behind `?` cannot be read, since there is none of that name; a `?` of a password is written as `%3F`"
        }
        _ => {
            "a part of it cannot be read: letters such as `@ : / ?` in a user's name or a password are written as `%40`, `%3A`, `%2F`, `%3F`"
        }
    }
}

impl Address {
    /// Reads a string of the form `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`.
    pub(super) fn read(address: &str) -> Result<Self, Error> {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme));
        if !is_url {
            return Err(refused("it does not begin with `postgres://`"));
        }
        let (rest, words) = without_tls_words(address)?;
        let config: Config = rest.parse().map_err(|error: tokio_postgres::Error| refused(unread(&error)))?;
        let mut read = Self { config, root_file: words.root_file };
        read.must_be_whole()?;
        read.choose_tls(words.mode.as_deref())?;
        read.bound_waits();
        Ok(read)
    }

    fn must_be_whole(&self) -> Result<(), Error> {
        let is_odd = |part: &str| part.contains('@');
        let has_odd_host =
            self.config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if is_odd(name)));
        if has_odd_host || self.config.get_dbname().is_some_and(is_odd) {
            return Err(refused("there is an `@` too many: in a password it is written as `%40`"));
        }
        if self.config.get_hosts().is_empty() {
            return Err(refused(
                "it names no host; for a socket give its folder, as in `postgres:///DATABASE?host=/run/postgresql`",
            ));
        }
        Ok(())
    }

    /// On this machine there is no TLS unless it is asked for. To others there is no way without.
    fn choose_tls(&mut self, mode: Option<&str>) -> Result<(), Error> {
        let is_here = self.config.get_hosts().iter().all(is_here)
            && self.config.get_hostaddrs().iter().all(IpAddr::is_loopback);
        let is_tls = match mode {
            Some("require" | "verify-ca" | "verify-full") => true,
            Some("disable") if !is_here => {
                let why = "`sslmode=disable` is taken for this machine alone: to another one everything would be readable on the way, \
                     the password too";
                return Err(refused(why));
            }
            None | Some("disable" | "allow" | "prefer") => !is_here,
            Some(_) => {
                return Err(refused(
                    "`sslmode` is `disable`, `require` or `verify-full`; TLS is always verified",
                ));
            }
        };
        self.config.ssl_mode(if is_tls { SslMode::Require } else { SslMode::Disable });
        Ok(())
    }

    /// A link that is cut is noticed in two seconds, unless the string says otherwise.
    fn bound_waits(&mut self) {
        const SOON: Duration = Duration::from_secs(2);
        let config = &mut self.config;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(SOON);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SOON);
        }
        config.keepalives_idle(SOON).keepalives_interval(SOON).keepalives_retries(2);
        if config.get_application_name().is_none() {
            config.application_name("safepoint");
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        for (place, host) in hosts.iter().enumerate() {
            let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
            let comma = if place == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
                #[cfg(unix)]
                Host::Unix(folder) => write!(f, "{comma}{}:{port}", folder.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// The string without what it says of TLS, which the layer below does not know, and that.
fn without_tls_words(address: &str) -> Result<(String, TlsWords), Error> {
    let mut words = TlsWords::default();
    let Some((before, query)) = address.rsplit_once('?') else { return Ok((address.to_owned(), words)) };
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = || {
            let value = percent_decode_str(value).decode_utf8();
            value.map(String::from).map_err(|_not_text| refused("a part of it is not UTF-8"))
        };
        match name {
            "sslmode" => words.mode = Some(value()?),
            "sslrootcert" => words.root_file = Some(value()?),
            _ => kept.push(pair),
        }
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("{before}{query}"), words))
}

fn refused(why: &str) -> Error {
    Error::Failed(Cause::new(format!("the address of the database cannot be used: {why}")))
}
