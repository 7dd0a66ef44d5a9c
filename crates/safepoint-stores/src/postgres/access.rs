//! How the database of a store is reached, for what else lies in it.

use std::fmt;

use safepoint::store::Error;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{address::Address, tls};

/// What makes connections to a database as [`PostgresStore`](super::PostgresStore) does: its address is read in the same way, links that
/// are cut are noticed as soon, and TLS is verified or none.
///
/// ```
/// use safepoint_stores::postgres::PostgresAccess;
/// let access = PostgresAccess::read("postgres://agents:secret@localhost/agents")?;
/// assert!(!format!("{access:?}").contains("secret"));
/// # Ok::<(), safepoint::store::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresAccess {
    /// Where the database is. It has the password.
    pub config: Config,
    /// What it is reached by. Where the address wants no TLS, this is not used.
    pub tls: MakeRustlsConnect,
    shown: String,
}

impl PostgresAccess {
    /// Reads the address of a database.
    ///
    /// # Errors
    /// What is wrong with it, or with the certificates that it names. No error shows the password.
    pub fn read(address: &str) -> Result<Self, Error> {
        let address = Address::read(address)?;
        let (tls, shown) = (tls::connector(&address)?, address.to_string());
        Ok(Self { config: address.config, tls, shown })
    }
}

impl fmt::Debug for PostgresAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresAccess").field("address", &self.shown).finish_non_exhaustive()
    }
}
