//! A login at a server of tools, against an authorization server that checks what the standards say it checks.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::safepoint;

/// What the servers know, and how they behave.
#[derive(Default)]
struct Known {
    /// Challenges by code.
    codes: HashMap<String, String>,
    access: String,
    refresh: String,
    given: usize,
    /// How long tokens last, in seconds.
    lasts: u64,
    has_pkce: bool,
}

/// An authorization server and a server of tools behind it, on one port.
struct World {
    place: tempfile::TempDir,
    base: String,
    known: Arc<Mutex<Known>>,
}

impl World {
    fn new(lasts: u64, has_pkce: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let known = Arc::new(Mutex::new(Known { lasts, has_pkce, ..Known::default() }));
        let (shared, at) = (Arc::clone(&known), base.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (shared, at) = (Arc::clone(&shared), at.clone());
                std::thread::spawn(move || serve(socket, &shared, &at));
            }
        });
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(".config/safepoint");
        fs::create_dir_all(&folder).unwrap();
        let entry = format!("[mcp.shop]\nurl = \"{base}/mcp\"\nprotocol = \"2025-11-25\"\n");
        fs::write(folder.join("config.toml"), entry).unwrap();
        Self { place, base, known }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = safepoint(args);
        command.env("HOME", self.place.path());
        command
    }

    fn ask(&self, args: &[&str]) -> (Option<i32>, String) {
        said(&self.command(args).output().unwrap())
    }

    /// Logs in; `browser` gets the address, and the one that the program listens at.
    fn login(&self, browser: impl FnOnce(&str, &str)) -> (Option<i32>, String) {
        let mut child = self
            .command(&["mcp", "login", "shop", "--no-browser", "--timeout", "30s"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut text = String::new();
        while let Some(Ok(line)) = lines.next() {
            text.push_str(&line);
            text.push('\n');
            if let Some(rest) = line.strip_prefix(&self.base) {
                let address = format!("{}{rest}", self.base);
                let callback = query(rest)["redirect_uri"].clone();
                browser(&address, &callback);
                break;
            }
        }
        text.extend(lines.map_while(Result::ok).map(|line| line + "\n"));
        let output = child.wait_with_output().unwrap();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text)
    }

    fn tokens(&self) -> [String; 2] {
        let known = self.known.lock().unwrap();
        [known.access.clone(), known.refresh.clone()]
    }
}

fn said(output: &Output) -> (Option<i32>, String) {
    let all = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&all).into_owned())
}

/// As a browser does: what is asked for, and what that leads to.
fn open(address: &str, _callback: &str) {
    let (head, _) = get(address);
    let to = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned();
    let (head, page) = get(&to);
    assert!(head.starts_with("HTTP/1.1 200") && page.contains("You can close this page"), "{head}{page}");
}

fn get(address: &str) -> (String, String) {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    socket
        .write_all(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

fn query(text: &str) -> HashMap<String, String> {
    let pairs = text.split_once('?').map_or(text, |(_, pairs)| pairs);
    pairs
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), decoded(value)))
        .collect()
}

/// A request as it came.
struct Asked {
    method: String,
    target: String,
    bearer: String,
    body: String,
}

impl Asked {
    fn read(socket: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let (mut length, mut bearer) = (0, String::new());
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => value.clone_into(&mut bearer),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, target, bearer, body: String::from_utf8(body).unwrap() })
    }
}

/// One request of each connection.
fn serve(socket: TcpStream, known: &Mutex<Known>, base: &str) {
    let Some(asked) = Asked::read(&socket) else { return };
    let (status, more, answer) = answer(&asked, known, base);
    let text = if answer.is_null() { String::new() } else { answer.to_string() };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    if (&socket).write_all(format!("{head}{text}").as_bytes()).is_err() {
        // The program has gone.
    }
}

/// The status, more headers, and the body.
fn answer(asked: &Asked, known: &Mutex<Known>, base: &str) -> (&'static str, String, Value) {
    let none = String::new();
    match (asked.method.as_str(), asked.target.split('?').next().unwrap()) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => {
            let resource = format!("{base}/mcp");
            let about =
                json!({"resource": resource, "authorization_servers": [base], "scopes_supported": ["buy"]});
            ("200 OK", none, about)
        }
        ("GET", "/.well-known/oauth-authorization-server") => ("200 OK", none, metadata(known, base)),
        ("POST", "/register") => ("201 Created", none, json!({"client_id": "client-1"})),
        ("GET", "/authorize") => {
            let asked = query(&asked.target);
            assert_eq!((&*asked["response_type"], &*asked["code_challenge_method"]), ("code", "S256"));
            assert_eq!((&*asked["scope"], &asked["resource"]), ("buy", &format!("{base}/mcp")));
            known.lock().unwrap().codes.insert("code-1".into(), asked["code_challenge"].clone());
            let to = format!("location: {}?code=code-1&state={}\r\n", asked["redirect_uri"], asked["state"]);
            ("302 Found", to, Value::Null)
        }
        ("POST", "/token") => match tokens(&mut known.lock().unwrap(), &query(&asked.body)) {
            Some(given) => ("200 OK", none, given),
            None => ("400 Bad Request", none, json!({"error": "invalid_grant"})),
        },
        ("POST", "/mcp") if may_enter(asked, known) => {
            match tools(&serde_json::from_str(&asked.body).unwrap()) {
                Some(answer) => ("200 OK", none, answer),
                None => ("202 Accepted", none, Value::Null),
            }
        }
        ("POST", "/mcp") => {
            let at = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let header = format!("www-authenticate: Bearer resource_metadata=\"{at}\"\r\n");
            ("401 Unauthorized", header, Value::Null)
        }
        _ => ("404 Not Found", none, Value::Null),
    }
}

fn may_enter(asked: &Asked, known: &Mutex<Known>) -> bool {
    let access = &known.lock().unwrap().access;
    !access.is_empty() && asked.bearer == format!("Bearer {access}")
}

fn metadata(known: &Mutex<Known>, base: &str) -> Value {
    let methods = if known.lock().unwrap().has_pkce { json!(["S256"]) } else { json!(["plain"]) };
    json!({
        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
        "code_challenge_methods_supported": methods,
    })
}

/// Each code and each refresh token is good for once.
fn tokens(known: &mut Known, asked: &HashMap<String, String>) -> Option<Value> {
    assert_eq!(asked["client_id"], "client-1");
    match asked["grant_type"].as_str() {
        "authorization_code" => {
            let challenge = known.codes.remove(&asked["code"])?;
            let verified = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
            (verified == challenge).then_some(())?;
        }
        "refresh_token" => (asked["refresh_token"] == known.refresh).then_some(())?,
        _ => return None,
    }
    known.given += 1;
    (known.access, known.refresh) =
        (format!("access-secret-{}", known.given), format!("refresh-secret-{}", known.given));
    Some(json!({
        "access_token": known.access, "refresh_token": known.refresh, "token_type": "Bearer", "expires_in": known.lasts,
    }))
}

/// A server with one tool.
fn tools(asked: &Value) -> Option<Value> {
    let id = asked.get("id")?;
    let result = match asked["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "buy", "description": "Buys", "inputSchema": {"type": "object"}}]})
        }
        _ => json!({}),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// S12.63: the login is made with PKCE, kept for its user alone, used, and forgotten; no token is shown.
#[test]
fn a_login_is_made_used_and_forgotten_and_shows_no_token() {
    let world = World::new(3600, true);
    let (code, text) = world.ask(&["mcp", "ls"]);
    assert!(code == Some(1) && text.contains("mcp login"), "{text}");
    let (code, text) = world.login(open);
    assert!(code == Some(0) && text.contains("logged in at shop"), "{text}");
    let folder = world.place.path().join(".local/share/safepoint/logins");
    let file = fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .find(|entry| entry.path().extension().unwrap() == "json")
        .unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (code, listed) = world.ask(&["mcp", "ls"]);
    assert!(code == Some(0) && listed.contains("shop__buy"), "{listed}");
    for token in world.tokens() {
        assert!(!text.contains(&token) && !listed.contains(&token), "{text}{listed}");
    }
    let (code, text) = world.ask(&["mcp", "logout", "shop"]);
    assert!(code == Some(0) && text.contains("is removed"), "{text}");
    assert_eq!(world.ask(&["mcp", "ls"]).0, Some(1));
}

/// S12.63: a token that expires is renewed before it is used, and what was given in its place is kept.
#[test]
fn a_login_is_renewed_before_it_expires() {
    let world = World::new(1, true);
    assert_eq!(world.login(open).0, Some(0));
    let before = world.tokens();
    for _twice in 0..2 {
        let (code, listed) = world.ask(&["mcp", "ls"]);
        assert!(code == Some(0) && listed.contains("shop__buy"), "{listed}");
    }
    assert_ne!(world.tokens(), before);
    world.known.lock().unwrap().refresh = "revoked".into();
    let (code, text) = world.ask(&["mcp", "ls"]);
    assert!(code == Some(1) && text.contains("safepoint mcp login shop"), "{text}");
}

/// S12.63: an answer with another state is none, and a server without PKCE gets no login.
#[test]
fn a_foreign_answer_is_no_login() {
    let world = World::new(3600, true);
    let (code, text) = world.login(|address, callback| {
        let (head, _) = get(&format!("{callback}?code=stolen&state=guessed"));
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        let state = &query(address)["state"];
        get(&format!("{callback}?error=access_denied&state={state}"));
    });
    assert!(code == Some(1) && text.contains("it was refused: access_denied"), "{text}");
    let world = World::new(3600, false);
    let (code, text) = world.login(|_, _| panic!("nothing is opened"));
    assert!(code == Some(1) && text.contains("PKCE"), "{text}");
}
