//! The server, asked without the store.

use super::cluster::Cluster;

impl Cluster {
    /// A connection to it, as who may do everything.
    pub(crate) async fn connect(&self) -> tokio_postgres::Client {
        let (client, connection) =
            tokio_postgres::connect(&self.address(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(async move {
            if connection.await.is_err() {
                // The test that uses it sees that.
            }
        });
        client
    }

    /// Ends the connections of an application. How many there were.
    pub(crate) async fn end_connections(&self, application: &str) -> i64 {
        const END: &str =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
        self.connect().await.query_one(END, &[&application]).await.unwrap().get(0)
    }
}
