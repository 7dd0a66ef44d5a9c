//! Who may do what: tokens, scopes, hosts, origins, types, and what does not exist for a token.

use std::sync::Arc;

use futures_util::future::join_all;
use safepoint::store::{MemoryStore, Store};
use safepoint_server::{AccessScope, NewToken, Principal, Surface, TokenFile};
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};

use super::world::{World, says, served};

/// S13.10: without a valid token nothing is read or begun, on the loopback too.
#[tokio::test]
async fn without_a_token_nothing_is_read() {
    let world = World::of(says([]).build()).await;
    let session = world.empty().await;
    let expired = world.tokens.add(NewToken {
        principal: Principal::new("old", AccessScope::ALL),
        expires: Some("2020-01-01T00:00:00Z".parse().unwrap()),
    });
    let expired = format!("Bearer {}", expired.unwrap());
    let altered = format!("Bearer {}0", world.client.token);
    for given in
        ["", "Bearer", "Bearer spt_a_b", &*expired, &*altered, &*format!("Basic {}", world.client.token)]
    {
        for (method, path) in [
            ("GET", "/v1/sessions".to_owned()),
            ("POST", "/v1/sessions".to_owned()),
            ("GET", format!("/v1/sessions/{session}/events?access_token={}", world.client.token)),
            ("GET", "/metrics".to_owned()),
            ("GET", "/v1/nothing".to_owned()),
        ] {
            let refused = world.client.send(method, &path, &[("authorization", given)], None).await;
            assert_eq!((refused.status, refused.code()), (401, "no_token"), "{given}: {method} {path}");
        }
    }
    for path in ["/livez", "/readyz"] {
        let open = world.client.send("GET", path, &[("authorization", "")], None).await;
        assert_eq!(open.status, 200, "{path}");
    }
    world.end().await;
}

/// S13.10: each route needs one scope, and no scope implies another.
#[tokio::test]
async fn each_route_needs_its_scope() {
    use AccessScope::{Admin, Approve, Read, Stop, Talk};
    let world = World::of(says([]).build()).await;
    let session = world.empty().await;
    let of = |path: &str| format!("/v1/sessions/{session}{path}");
    let routes = [
        (Read, "GET", "/v1/agents".to_owned()),
        (Read, "GET", "/v1/sessions".to_owned()),
        (Read, "GET", of("")),
        (Read, "GET", of("/items/item-1")),
        (Read, "GET", of("/stops/1")),
        (Read, "GET", of("/turns/turn-1")),
        (Read, "GET", of("/timeline")),
        (Read, "GET", of("/approvals")),
        (Read, "GET", "/v1/approvals".to_owned()),
        (Read, "GET", "/v1/openapi.json".to_owned()),
        (Talk, "POST", "/v1/sessions".to_owned()),
        (Talk, "POST", of("/items")),
        (Talk, "DELETE", of("/items/item-1")),
        (Talk, "POST", of("/resume")),
        (Stop, "POST", of("/stop")),
        (Approve, "POST", of("/approvals/apr_1/decision")),
        (Admin, "GET", "/metrics".to_owned()),
        (Admin, "DELETE", of("")),
    ];
    for scope in AccessScope::ALL {
        let client = world.client_of(Principal::new(format!("only-{scope}"), [scope]).seeing_all());
        for (needed, method, path) in routes.iter().filter(|(needed, ..)| *needed != scope) {
            let refused = client.send(method, path, &[], None).await;
            assert_eq!((refused.status, refused.code()), (403, "scope_missing"), "{scope}: {method} {path}");
            assert_eq!(refused.body["scope"], needed.as_str());
        }
        for (_, method, path) in routes.iter().filter(|(needed, ..)| *needed == scope) {
            let reply = client.send(method, path, &[], None).await;
            assert!(![401, 403].contains(&reply.status), "{scope}: {method} {path}: {reply:?}");
        }
    }
    world.end().await;
}

/// S13.10: another principal's session does not exist for a token, in no route, and neither does an agent that is not its own.
#[tokio::test]
async fn what_a_token_may_not_see_does_not_exist() {
    let world = World::of(says([Reply::text("One.")]).build()).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    let other = world.client_of(Principal::new("other", AccessScope::ALL));
    let none = other.get("/v1/sessions/ses_none").await;
    let of = |path: &str| format!("/v1/sessions/{session}{path}");
    for (method, path) in [
        ("GET", of("")),
        ("GET", of("/events")),
        ("GET", of("/timeline")),
        ("GET", of("/items/item-1")),
        ("GET", of("/turns/turn-1")),
        ("POST", of("/stop")),
        ("POST", of("/resume")),
        ("DELETE", of("")),
    ] {
        let refused = other.send(method, &path, &[], None).await;
        assert_eq!((refused.status, &refused.body), (404, &none.body), "{method} {path}");
    }
    assert_eq!(other.get("/v1/sessions").await.body["data"], json!([]));
    let elsewhere = world.client_of(Principal::new("ci", AccessScope::ALL).only_agents(["another"]));
    assert_eq!(elsewhere.get(&of("")).await.status, 404);
    assert_eq!(elsewhere.get("/v1/agents").await.body["data"], json!([]));
    let refused = elsewhere.post("/v1/sessions", &json!({"agent": "helper"})).await;
    assert_eq!((refused.status, refused.code()), (404, "no_such_agent"));
    assert_eq!(refused.body["detail"], "agent not found; this token may use: none");
    let refused = other.post("/v1/sessions", &json!({"agent": "helpr"})).await;
    assert_eq!(refused.body["detail"], "agent not found; this token may use: helper");
    world.end().await;
}

/// S13.10: host, origin and type are checked before the body, and before the token.
#[tokio::test]
async fn a_foreign_host_an_origin_and_a_type_are_refused() {
    let world = World::of(says([]).build()).await;
    let port = world.client.address.port();
    let body = json!({});
    let post =
        async |more: &[(&str, &str)]| world.client.send("POST", "/v1/sessions", more, Some(&body)).await;
    for host in
        ["evil.example", &*format!("127.0.0.1.evil.example:{port}"), "127.0.0.1:1", "localhost", "127.0.0.1"]
    {
        let refused = post(&[("host", host), ("authorization", "")]).await;
        assert_eq!((refused.status, refused.code()), (421, "host"), "{host}");
    }
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        assert_eq!(post(&[("host", &host)]).await.status, 201, "{host}");
    }
    for origin in ["http://evil.example", "null", &*format!("http://localhost:{port}")] {
        let refused = post(&[("origin", origin), ("authorization", "")]).await;
        assert_eq!((refused.status, refused.code()), (403, "origin"), "{origin}");
    }
    assert_eq!(post(&[("origin", &format!("http://127.0.0.1:{port}"))]).await.status, 201);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let refused = post(&[("content-type", kind), ("authorization", "")]).await;
        assert_eq!((refused.status, refused.code()), (415, "media_type"), "{kind}");
    }
    let large = json!({"item": {"text": "x".repeat(2 << 20)}});
    let refused = world.client.post("/v1/sessions", &large).await;
    assert_eq!((refused.status, refused.code()), (413, "too_large"));
    world.end().await;
}

/// S13.10: a token is shown once: its file has no secret, and only its owner reads it. One that is revoked is none.
#[tokio::test]
async fn the_file_of_tokens_has_no_secret() {
    let world = World::of(says([]).build()).await;
    let text = std::fs::read_to_string(world.tokens.path()).unwrap();
    let secret = world.client.token.rsplit('_').next().unwrap();
    assert!(!text.contains(secret), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(world.tokens.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let client = world.client_of(Principal::new("gone", AccessScope::ALL));
    assert_eq!(client.get("/v1/agents").await.status, 200);
    let rows = world.tokens.rows().unwrap();
    let row = rows.iter().find(|row| row.name == "gone").unwrap();
    assert!(world.tokens.revoke(&row.id).unwrap());
    assert_eq!(client.get("/v1/agents").await.status, 401);
    world.end().await;
}

/// S13.45: a stream whose token is revoked ends, and others do not.
#[tokio::test]
async fn a_stream_does_not_outlive_its_token() {
    let world = World::of(says([Reply::text("Done.")]).build()).await;
    let session = world.empty().await;
    let client = world.client_of(Principal::new("gone", AccessScope::ALL).seeing_all());
    let (mut gone, mut stays) = (client.events(&session, "").await, world.client.events(&session, "").await);
    let rows = world.tokens.rows().unwrap();
    let row = rows.iter().find(|row| row.name == "gone").unwrap();
    assert!(world.tokens.revoke(&row.id).unwrap());
    gone.rest().await;
    world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "go"})).await;
    stays.until("turn_ended").await;
    world.end().await;
}

/// S13.51: what waits for a token that is revoked is answered as a request without one, by each protocol and also where its body is still
/// to come; what it waited for continues.
#[tokio::test]
async fn a_request_does_not_wait_longer_than_its_token_is_valid() {
    let (model, agent) = served([]).await;
    let mut gates = [(); 3].map(|()| model.gate());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let world = World::offered(agent, store, folder, &[Surface::Responses, Surface::A2a]).await;
    let client = world.client_of(Principal::new("gone", AccessScope::ALL));
    let made = client.post("/v1/sessions", &json!({"item": {"text": "go"}})).await;
    let session = made.body["id"].as_str().unwrap().to_owned();
    let item = format!("/v1/sessions/{session}/items/item-1?wait=rest&timeout_ms=120000");
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]});
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let body_to_come = [("content-type", "application/json"), ("content-length", "10")];
    let asks = [
        ("GET", &*item, &[][..], None),
        ("POST", "/openai/v1/responses", &[][..], Some(json!({"model": "helper", "input": "go"}))),
        ("POST", "/a2a/helper", &[("a2a-version", "1.0")][..], Some(rpc)),
        ("POST", "/v1/sessions", &body_to_come[..], None),
    ];
    let answers =
        asks.iter().map(|(method, path, head, body)| client.send(method, path, head, body.as_ref()));
    let revoked = async {
        for gate in &mut gates {
            gate.request().in_time("the request of a turn").await;
        }
        let rows = world.tokens.rows().unwrap();
        let row = rows.iter().find(|row| row.name == "gone").unwrap();
        assert!(world.tokens.revoke(&row.id).unwrap());
    };
    let (answers, ()) = tokio::join!(join_all(answers), revoked);
    for (answer, (_, path, ..)) in answers.iter().zip(&asks) {
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        assert!(answer.body.to_string().contains("no_token"), "{path}: {answer:?}");
    }
    for gate in &mut gates {
        gate.headers();
        gate.script(&Reply::text("Done."));
        gate.finish();
    }
    assert_eq!(world.rest(&session, 1).await["outcome"], "completed");
    world.end().await;
}

/// S13.49: a file that breaks has no token, also none that it had before; why is said once for each reason, with the file and the line,
/// and without a token that was written there.
#[tokio::test]
async fn a_file_of_tokens_that_breaks_has_none() {
    let world = World::of(says([]).build()).await;
    let (path, token) = (world.tokens.path().to_owned(), &world.client.token);
    let (say, said) = std::sync::mpsc::channel();
    let file = TokenFile::new(&path).on_broken(move |error| say.send(error.to_string()).unwrap());
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(file.principal(token).is_some());
    let named = whole.lines().position(|line| line.starts_with("name =")).unwrap();
    let unnamed = whole.lines().filter(|line| !line.starts_with("name =")).collect::<Vec<_>>().join("\n");
    let broken = [
        (format!("{whole}name ="), whole.lines().count() + 1),
        (unnamed, 1),
        (format!("# The token of all.\ntoken = {token:?}\n"), 2),
        (whole.replace("name =", "nmae ="), named + 1),
    ];
    for (text, line) in &broken {
        std::fs::write(&path, text).unwrap();
        assert!(file.principal(token).is_none() && file.principal(token).is_none());
        assert_eq!(world.client.get("/v1/agents").await.status, 401);
        let all: Vec<String> = said.try_iter().collect();
        let [why] = &*all else { panic!("it is said once: {all:?}") };
        assert!(why.starts_with(&format!("{}, line {line}: ", path.display())), "{why}");
        assert!(!why.contains(token.rsplit('_').next().unwrap()), "{why}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(file.principal(token).is_some());
    assert_eq!(world.client.get("/v1/agents").await.status, 200);
    std::fs::remove_file(&path).unwrap();
    assert!(
        file.principal(token).is_none() && said.try_recv().is_err(),
        "one that is not there is not broken"
    );
    world.end().await;
}

/// S13.49: a digest that is none makes a file that cannot be read, with its line and without what is written there; one in capitals is one.
#[tokio::test]
async fn a_file_of_tokens_with_a_digest_that_is_none_cannot_be_read() {
    let world = World::of(says([]).build()).await;
    let (path, token) = (world.tokens.path(), &world.client.token);
    let whole = std::fs::read_to_string(path).unwrap();
    let row = whole.lines().position(|line| line.starts_with("sha256 =")).unwrap();
    let digest = whole.lines().nth(row).unwrap().split('"').nth(1).unwrap();
    let secret = token.rsplit('_').next().unwrap();
    let short = &digest[1..];
    for wrong in ["", short, &*format!("{digest}0"), &*format!("{short}g"), &*format!("{short}ß"), token] {
        std::fs::write(path, whole.replace(digest, wrong)).unwrap();
        let why = world.tokens.rows().unwrap_err().to_string();
        let wanted = format!("{}, line {}: `sha256` is not the 64", path.display(), row + 1);
        assert!(why.starts_with(&wanted) && !why.contains(secret), "{why}");
        assert_eq!(world.client.get("/v1/agents").await.status, 401, "{wrong}");
    }
    std::fs::write(path, whole.replace(digest, &digest.to_ascii_uppercase())).unwrap();
    assert_eq!(world.client.get("/v1/agents").await.status, 200);
    world.end().await;
}

/// S13.10: the browser of a page elsewhere that may call is answered what it asks before, and lets the page read every answer;
/// that of another page is refused, and what no route has is a problem too.
#[tokio::test]
async fn a_page_that_may_call_can_call() {
    let page = "https://app.example.com";
    let world = World::with(says([]).build(), |access| access.origin(page)).await;
    let asks = [("origin", page), ("access-control-request-method", "POST"), ("authorization", "")];
    let asked = world.client.send("OPTIONS", "/v1/sessions", &asks, None).await;
    let head = asked.head.to_ascii_lowercase();
    assert_eq!(asked.status, 204, "{head}");
    for wanted in ["access-control-allow-origin: https://app.example.com", "vary: origin", "idempotency-key"]
    {
        assert!(head.contains(wanted), "{wanted} is not in {head}");
    }
    let other = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    let refused = world.client.send("OPTIONS", "/v1/sessions", &other, None).await;
    assert_eq!((refused.status, refused.code()), (403, "origin"));
    let of_page = [("origin", page)];
    for (method, path, status) in [
        ("GET", "/v1/sessions", 200),
        ("GET", "/v1/sessions/ses_none", 404),
        ("PUT", "/v1/sessions", 405),
        ("GET", "/v1/sessions/%ff", 404),
        ("GET", "/v1/nothing", 404),
    ] {
        let answered = world.client.send(method, path, &of_page, None).await;
        assert_eq!(answered.status, status, "{method} {path}");
        assert!(status == 200 || !answered.code().is_empty(), "{method} {path}: {answered:?}");
        let head = answered.head.to_ascii_lowercase();
        assert!(
            head.contains("access-control-allow-origin: https://app.example.com"),
            "{method} {path}: {head}"
        );
        let own = world.client.send(method, path, &[], None).await;
        assert!(!own.head.to_ascii_lowercase().contains("access-control"), "{method} {path}");
    }
    let none = world.client.send("PUT", "/v1/sessions", &[("authorization", "")], None).await;
    assert_eq!((none.status, none.code()), (401, "no_token"));
    world.end().await;
}

/// S13.36: a body that is JSON and no object is refused in the words of its surface, which say what is expected; nothing was begun.
#[tokio::test]
async fn a_body_that_is_no_object_is_refused() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let surfaces = [Surface::Responses, Surface::A2a, Surface::Mcp];
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let world = World::offered(says([]).build(), Arc::clone(&store), folder, &surfaces).await;
    let session = world.empty().await;
    let own = ["", "/items", "/stop"].map(|of| format!("/v1/sessions/{session}{of}"));
    let own = own.map(|path| if path.ends_with(&session) { "/v1/sessions".to_owned() } else { path });
    let words = "the body is no JSON object, which is expected";
    let head = [("a2a-version", "1.0"), ("accept", "application/json, text/event-stream")];
    for body in [json!([]), json!(["helper"]), json!("x"), json!(7), Value::Null] {
        for path in &own {
            let refused = world.client.send("POST", path, &head, Some(&body)).await;
            assert_eq!(
                (refused.status, refused.code()),
                (400, "invalid_body"),
                "{path}: {body}: {refused:?}"
            );
            assert_eq!(refused.body["detail"], words);
        }
        let errors = [
            ("/openai/v1/responses", 400, "/error/code", json!("invalid_body")),
            ("/openai/v1/conversations", 400, "/error/code", json!("invalid_body")),
            ("/a2a/helper/message:send", 400, "/error/details/0/metadata/code", json!("invalid_body")),
            ("/a2a/helper", 200, "/error/code", json!(-32600)),
            ("/mcp/helper", 400, "/error/data/code", json!("invalid_body")),
        ];
        for (path, status, place, code) in errors {
            let refused = world.client.send("POST", path, &head, Some(&body)).await;
            assert_eq!(
                (refused.status, refused.body.pointer(place)),
                (status, Some(&code)),
                "{path}: {body}: {refused:?}"
            );
            assert_eq!(refused.body["error"]["message"], words, "{path}");
        }
    }
    assert_eq!(store.list(10, None).await.unwrap().len(), 1);
    world.end().await;
}
