//! Which server the connections lead to, and since when without a gap.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use deadpool_postgres::{ClientWrapper, HookError};

use super::lock;

/// The least version of the server, as it counts.
const OLDEST: i32 = 150_000;

/// What is known of the server.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// Held to look at it or to change it, never across an await; no other lock is taken under it.
    known: Mutex<KnownServer>,
}

#[derive(Debug, Default)]
struct KnownServer {
    /// Names the cluster, for as long as it exists.
    system: Option<i64>,
    /// Another one after each failover.
    timeline: String,
    /// When it last could not be reached, or was found to be another one.
    gap: Option<Instant>,
    /// Whether the last request found it away.
    is_away: bool,
    /// How many connections were made to it.
    connections: u64,
}

impl Identity {
    /// For a new connection: it must lead to the cluster of the others. After a failover it is as after a restart.
    pub(super) async fn must_be_same(&self, client: &ClientWrapper) -> Result<(), HookError> {
        const WHO: &str = "SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), \
             current_setting('server_version_num')::integer, current_setting('server_encoding') FROM pg_control_system()";
        let who = client.query_one(WHO, &[]).await.map_err(HookError::Backend)?;
        let (version, encoding): (i32, String) = (get(&who, 2)?, get(&who, 3)?);
        if version < OLDEST {
            return Err(HookError::message("the store needs PostgreSQL 15 or a later one"));
        }
        if encoding != "UTF8" {
            let why = format!(
                "the database has the encoding {encoding}, and the store needs UTF8: create one with that encoding from `template0`"
            );
            return Err(HookError::message(why));
        }
        self.see(get(&who, 0)?, get(&who, 1)?)
    }

    fn see(&self, system: i64, timeline: String) -> Result<(), HookError> {
        let mut known = lock(&self.known);
        if known.system.is_some_and(|before| before != system) {
            return Err(HookError::message(
                "the address leads to another database than before: open the store anew",
            ));
        }
        if known.system.is_some() && known.timeline != timeline {
            known.gap = Some(Instant::now());
        }
        (known.system, known.timeline) = (Some(system), timeline);
        known.connections += 1;
        Ok(())
    }

    /// How many connections were made. While this is the same, each request is asked of the server that has answered the ones
    /// before, and it has not crashed in between: that ends all of its connections.
    pub(super) fn connections(&self) -> u64 {
        lock(&self.known).connections
    }

    /// The server could not be reached, perhaps by no process.
    pub(super) fn gap(&self) {
        let mut known = lock(&self.known);
        (known.gap, known.is_away) = (Some(Instant::now()), true);
    }

    /// The server has answered.
    pub(super) fn answers(&self) {
        lock(&self.known).is_away = false;
    }

    pub(super) fn is_away(&self) -> bool {
        lock(&self.known).is_away
    }

    /// Whether it could be reached for so long.
    pub(super) fn is_calm_for(&self, time: Duration) -> bool {
        lock(&self.known).gap.is_none_or(|gap| gap.elapsed() > time)
    }
}

fn get<T: for<'a> tokio_postgres::types::FromSql<'a>>(
    row: &tokio_postgres::Row,
    at: usize,
) -> Result<T, HookError> {
    row.try_get(at).map_err(HookError::Backend)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.54: after a failover no node is buried before each could beat again, and another database is refused.
    #[test]
    fn another_timeline_is_a_gap_and_another_system_is_refused() {
        let identity = Identity::default();
        identity.see(7, "00000001".into()).unwrap();
        identity.see(7, "00000001".into()).unwrap();
        assert!(identity.is_calm_for(Duration::from_secs(60)), "nothing has changed");
        identity.see(7, "00000002".into()).unwrap();
        assert!(!identity.is_calm_for(Duration::from_secs(60)), "it was promoted just now");
        assert!(identity.see(8, "00000002".into()).is_err());
    }
}
