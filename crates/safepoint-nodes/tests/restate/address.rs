//! The one address of many nodes: each connection is passed on to the first of them that accepts it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub(super) struct NodesAddress {
    pub(super) address: SocketAddr,
    behind: Arc<Mutex<Vec<SocketAddr>>>,
    open: Arc<Mutex<Vec<JoinHandle<()>>>>,
    accepts: JoinHandle<()>,
}

impl NodesAddress {
    pub(super) async fn of(nodes: &[SocketAddr]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let behind = Arc::new(Mutex::new(nodes.to_vec()));
        let open = Arc::<Mutex<Vec<JoinHandle<()>>>>::default();
        let (nodes, passed) = (Arc::clone(&behind), Arc::clone(&open));
        let accepts = tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let nodes = nodes.lock().unwrap().clone();
                passed.lock().unwrap().push(tokio::spawn(pass(from, nodes)));
            }
        });
        Self { address, behind, open, accepts }
    }

    /// A node is gone, with its connections.
    pub(super) fn without(&self, node: SocketAddr) {
        self.behind.lock().unwrap().retain(|address| *address != node);
        self.open.lock().unwrap().drain(..).for_each(|passes| passes.abort());
    }
}

async fn pass(mut from: TcpStream, nodes: Vec<SocketAddr>) {
    for node in nodes {
        if let Ok(mut to) = TcpStream::connect(node).await {
            drop(copy_bidirectional(&mut from, &mut to).await);
            return;
        }
    }
}

impl Drop for NodesAddress {
    fn drop(&mut self) {
        self.accepts.abort();
        self.open.lock().unwrap().drain(..).for_each(|passes| passes.abort());
    }
}
