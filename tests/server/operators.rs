//! What operators expect: an audit log, TLS, and webhooks that are signed and sent again.

use std::{
    io::Write,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt as _;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use safepoint::{store::MemoryStore, tool};
use safepoint_server::{
    Access, AccessScope, AuditLog, HookAttempt, Host, HostServer, NewToken, Principal, Surface, Tls,
    TokenFile, Webhook,
};
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
};
use tokio_rustls::TlsConnector;

use super::{
    client::Client,
    world::{World, says},
};

/// A log that a test can read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn all(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// S13.23: each request is in the log, with who asked what of which session and how that ended; no secret and no content is.
#[tokio::test]
async fn the_audit_log_says_who_asked_what() {
    let log = Lines::default();
    let world =
        World::with(says([Reply::text("One.")]).build(), |access| access.audited(AuditLog::to(log.clone())))
            .await;
    let session = world.session("a secret plan").await;
    world.rest(&session, 1).await;
    let reader = world.client_of(Principal::new("eve", [AccessScope::Read]));
    let stop = format!("/v1/sessions/{session}/stop");
    assert_eq!(reader.post(&stop, &json!({})).await.status, 403);
    let none = Client { token: "spt_0_0".into(), ..world.client.clone() };
    assert_eq!(none.get("/v1/sessions").await.status, 401);
    let missing = format!("/v1/sessions/{session}/items/item-9");
    assert_eq!(world.client.send("DELETE", &missing, &[], None).await.status, 404);
    let all = log.all();
    let of = |route: &str, method: &str| {
        all.iter()
            .find(|line| line["route"] == route && line["method"] == method)
            .unwrap_or_else(|| panic!("{all:?}"))
    };
    let made = of("/v1/sessions", "POST");
    assert_eq!(
        (&made["who"], &made["session"], &made["status"], &made["door"]),
        (&json!("ci"), &json!(session), &json!(201), &json!("v1"))
    );
    assert!(made["token"].is_string() && made["at"].is_string(), "{made}");
    let refused = of("/v1/sessions/{session}/stop", "POST");
    assert_eq!(
        (&refused["who"], &refused["status"], &refused["code"]),
        (&json!("eve"), &json!(403), &json!("scope_missing"))
    );
    let unknown = of("/v1/sessions", "GET");
    assert_eq!(
        (&unknown["who"], &unknown["status"], &unknown["code"]),
        (&Value::Null, &json!(401), &json!("no_token"))
    );
    let item = of("/v1/sessions/{session}/items/{item}", "DELETE");
    assert_eq!((&item["session"], &item["of"]), (&json!(session), &json!("item-9")));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        !text.contains("secret plan") && !text.contains(world.client.token.rsplit('_').next().unwrap()),
        "{text}"
    );
    world.end().await;
}

/// A log that takes nothing.
struct Full;

impl Write for Full {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// S13.23: a server whose log cannot be written is not ready, and says why.
#[tokio::test]
async fn a_server_without_its_audit_log_is_not_ready() {
    let world = World::with(says([]).build(), |access| access.audited(AuditLog::to(Full))).await;
    assert_eq!(world.client.get("/readyz").await.status, 200);
    assert_eq!(world.client.get("/v1/sessions").await.status, 200);
    let ready = world.client.get("/readyz").await;
    assert_eq!((ready.status, &ready.body["status"]), (503, &json!("audit")));
    world.end().await;
}

const CERTIFICATES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/safepoint-http/tests/certificates");

/// Asks over TLS, and reads to the end.
async fn over_tls(address: SocketAddr, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(format!("{CERTIFICATES}/authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream =
        TlsConnector::from(Arc::new(config)).connect(name, stream).in_time("the handshake").await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // How the connection ends is not what is looked at.
    drop(stream.read_to_string(&mut answer).in_time("the answer").await);
    answer
}

/// S13.24, S13.19: with a certificate the server speaks TLS, and answers nothing that came in the clear; a card says so.
#[tokio::test]
async fn with_a_certificate_nothing_is_answered_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::builder(Arc::new(MemoryStore::default()))
        .agent("helper", says([]).build())
        .surfaces("helper", [Surface::A2a])
        .start()
        .await
        .unwrap();
    let tokens = TokenFile::new(folder.path().join("tokens.toml"));
    let token =
        tokens.add(NewToken { principal: Principal::new("ci", AccessScope::ALL), expires: None }).unwrap();
    let tls =
        Tls::files(format!("{CERTIFICATES}/localhost.pem"), format!("{CERTIFICATES}/localhost.key")).unwrap();
    let server = HostServer::bind("127.0.0.1:0".parse().unwrap(), &host, Access::tokens(tokens.path()))
        .await
        .unwrap()
        .tls(tls);
    let address = server.address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served =
        tokio::spawn(async move { server.serve_until(async { drop(stopped.await) }).await.finish().await });
    let place = format!("localhost:{}", address.port());
    let of =
        |path: &str| format!("GET {path} HTTP/1.0\r\nhost: {place}\r\nauthorization: Bearer {token}\r\n\r\n");
    let request = of("/v1/agents");
    let answer = over_tls(address, &request).await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.contains("helper"), "{answer}");
    let card = over_tls(address, &of("/a2a/helper/.well-known/agent-card.json")).await;
    assert!(card.contains(&format!("\"https://{place}/a2a/helper\"")), "{card}");
    let mut clear = TcpStream::connect(address).await.unwrap();
    clear.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    drop(clear.read_to_end(&mut answer).in_time("the end of the connection").await);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
    drop(stop);
    assert_eq!(served.in_time("the end of the server").await.unwrap(), 0);
    host.drain(std::time::Duration::ZERO).await;
}

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

/// S13.25: a question that opens and a session at rest are delivered, signed; what is not taken is sent again with the
/// same id, and what was taken is not.
#[tokio::test]
async fn news_is_signed_and_sent_until_it_is_taken() {
    let (sent, mut attempts) = mpsc::unbounded_channel::<HookAttempt>();
    let answers = Arc::new(Mutex::new(vec![200, 200, 503]));
    let sender = move |attempt: HookAttempt| {
        sent.send(attempt).unwrap();
        let status = answers.lock().unwrap().pop().unwrap_or(200);
        async move { Ok(status) }.boxed()
    };
    let hook = Webhook::new("https://example.com/hook", "s3cret", Arc::new(sender));
    let replies = [Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")];
    let world = World::hooked(says(replies).tool(pay).build(), hook).await;
    let session = world.session("Pay Acme.").await;
    let first = attempts.recv().in_time("the first attempt").await.unwrap();
    let again = attempts.recv().in_time("the second attempt").await.unwrap();
    assert_eq!(first.body, again.body, "it is sent again");
    let header = |attempt: &HookAttempt, wanted: &str| {
        attempt.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone()).unwrap()
    };
    assert_eq!(header(&first, "webhook-id"), header(&again, "webhook-id"));
    let news: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!((&news["type"], &news["approval"]["session"]), (&json!("approval.open"), &json!(session)));
    assert_eq!(news["id"], header(&first, "webhook-id").as_str());
    let signed = super::signature::of(
        b"s3cret",
        &header(&first, "webhook-id"),
        &header(&first, "webhook-timestamp"),
        &first.body,
    );
    assert_eq!(header(&first, "webhook-signature"), signed);
    let approval = &news["approval"];
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", approval["id"].as_str().unwrap());
    let body = json!({"digest": approval["digest"], "decision": "approve"});
    assert_eq!(world.client.post(&path, &body).await.status, 200);
    let rests = attempts.recv().in_time("the rest").await.unwrap();
    let news: Value = serde_json::from_slice(&rests.body).unwrap();
    assert_eq!((&news["type"], &news["session"]["id"]), (&json!("session.rest"), &json!(session)), "{news}");
    assert_eq!((&news["turn"]["id"], &news["turn"]["outcome"]), (&json!("turn-1"), &json!("completed")));
    world.end().await;
    assert!(attempts.try_recv().is_err(), "what was taken is not sent again");
}
