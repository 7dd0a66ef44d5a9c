//! The HTTP client that models, remote agents and tools share: one pool of connections over hyper, HTTP/1.1 and HTTP/2,
//! proxies, and the certificates that the platform trusts.
//!
//! A client follows no redirect, keeps no cookies, and has no time limit but that of a connection. It sends nothing
//! twice: only a request of which nothing was written, because a connection of the pool had ended, goes over a new
//! connection.
//!
//! Dropping what waits ends the exchange on the wire. With HTTP/1.1 the connection is closed, unless the answer was read
//! to its end. With HTTP/2 the stream is reset.
//!
//! ```no_run
//! # async fn ask() -> Result<(), safepoint_http::HttpError> {
//! let client = safepoint_http::shared()?;
//! let address = url::Url::parse("https://example.com/").expect("it is an address");
//! let mut answer = client.get(&address).send().await?;
//! while let Some(bytes) = answer.chunk().await? {
//!     println!("{} bytes", bytes.len());
//! }
//! # Ok(()) }
//! ```

mod body;
mod client;
mod connect;
mod error;
mod pool;
mod request;
mod response;
mod settings;
mod target;

pub use body::Body;
pub use client::{HttpClient, shared};
pub use error::HttpError;
pub use request::{Request, apart};
pub use response::Response;
pub use settings::{Proxy, Settings};
