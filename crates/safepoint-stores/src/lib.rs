//! Durable stores for sessions: SQLite, embedded, with no server (S7.9), and PostgreSQL, for many machines. Each store is a feature;
//! `sqlite` is on by default.
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::time::Duration;
//!
//! use safepoint::{raw::store::{Durability, NewSession, Record, Write}, store::{NewNode, OwnerProcess, Store}};
//! use safepoint_stores::SqliteStore;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
//! let session = store.create(NewSession::of("ses_1")).await.unwrap().id;
//! let node = store.join(NewNode::of(OwnerProcess::here(), Duration::from_secs(10))).await.unwrap();
//! let lease = store.acquire(&session, &node).await.unwrap();
//! let said = Record { path: "1".into(), kind: "said".into(), version: 1, bytes: b"hello".to_vec() };
//! store.append(&lease, vec![Write::Record(said.clone())], Durability::Durable).await.unwrap();
//! let page = store.read(&session, 0, 10).await.unwrap();
//! assert_eq!(page.entries[0].record, Ok(said));
//! # });
//! ```

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
