//! The database around the store: addresses, passwords, TLS, roles, schemas, sizes: S7.55-S7.57.

use std::{fs, path::Path, process::Command};

use safepoint::{
    raw::store::{ApprovalClose, Durability, NewApproval, NewItem, NewSession, Pushed, Record, Write},
    store::{Error, NewNode, OwnerProcess, Store},
};
use safepoint_stores::{
    PostgresStore,
    postgres::{Migration, PostgresOptions},
};
use safepoint_testkit::store_suite::{acquire, item, owner, record};
use std::time::Duration;

use super::{
    cluster::Cluster,
    support::{fresh, open, options, schema, world},
};

const TTL: Duration = Duration::from_secs(60);
/// No other text of these tests is like it.
const PASSWORD: &str = "tr0ub4dor";

fn refused(opened: Result<PostgresStore, Error>) -> String {
    let error = opened.unwrap_err();
    let words = format!("{error} {error:?}");
    assert!(!words.contains(PASSWORD), "the password is shown: {words}");
    words
}

/// S7.55: an address that cannot be used says why, and shows nothing of a password; nor does the store, or one that is refused.
#[test]
fn an_address_that_cannot_be_used_says_why_without_the_password() {
    for (address, why) in [
        ("mysql://u@localhost/db".to_owned(), "postgres://"),
        (format!("postgres://u:{PASSWORD}@localhost:port/db"), "%3F"),
        (format!("postgres://u:x@{PASSWORD}@localhost/db"), "%40"),
        (format!("postgres://u:{PASSWORD}@localhost/db?colour={PASSWORD}"), "cannot be read"),
        (format!("postgres://u:{PASSWORD}@db.example/db?sslmode=disable"), "this machine"),
        (format!("postgres://u:{PASSWORD}@db.example/db?sslmode=maybe"), "sslmode"),
        (format!("postgres://u:{PASSWORD}@db.example/db?sslrootcert=/no/such/file"), "sslrootcert"),
    ] {
        let words = refused(PostgresStore::open(&address));
        assert!(words.contains(why), "{words}");
    }
    let mut options = PostgresOptions::default();
    options.patience = Duration::from_millis(1);
    let nowhere = format!("postgres://u:{PASSWORD}@127.0.0.1:1/db");
    assert!(refused(PostgresStore::open_with(&nowhere, options)).contains("cannot be reached"));
}

/// A certificate for this machine, and its key, both made here.
/// S7.55: what the server refuses is said with what to do about it.
#[test]
fn a_refusal_of_the_server_says_what_to_do() {
    let cluster = Cluster::shared();
    let address = |user: &str, port: u16, database: &str| {
        let mut options = PostgresOptions::default();
        options.patience = Duration::from_millis(1);
        PostgresStore::open_with(&format!("postgres://{user}@127.0.0.1:{port}/{database}"), options)
    };
    let (port, closed) = (cluster.port(), 1);
    for (opened, advice) in [
        (address("postgres", port, "nowhere"), "createdb"),
        (address("absent", port, "postgres"), "pg_hba.conf"),
        (address("postgres", closed, "postgres"), "does it listen at that port?"),
        (PostgresStore::open("postgres://a@127.0.0.1:99999/x"), "its port"),
        (PostgresStore::open("postgres://a@127.0.0.1/x?connect_timeout=abc"), "connect_timeout"),
        (PostgresStore::open("postgres://a@127.0.0.1/x?hunter=2"), "behind `?`"),
    ] {
        let why = refused(opened);
        assert!(why.contains(advice) && !why.contains("hunter"), "{why}");
    }
}

fn certificate(folder: &Path) {
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(folder.join("server.key"))
        .arg("-out")
        .arg(folder.join("server.crt"));
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// S7.55: TLS is verified, by the certificates of the file that is named or by those that browsers trust; and the password that was
/// checked is shown nowhere.
#[tokio::test]
async fn tls_is_verified_and_a_password_is_not_shown() {
    let cluster = Cluster::start(&[]);
    certificate(cluster.folder());
    let data = cluster.folder().join("data");
    for file in ["server.key", "server.crt"] {
        fs::copy(cluster.folder().join(file), data.join(file)).unwrap();
        cluster.give(&data.join(file));
    }
    fs::write(data.join("pg_hba.conf"), "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        .unwrap();
    let role = format!("CREATE ROLE agents LOGIN PASSWORD '{PASSWORD}'; CREATE DATABASE agents OWNER agents");
    for statement in role.split("; ") {
        cluster.connect().await.batch_execute(statement).await.unwrap();
    }
    cluster.connect().await.batch_execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    cluster.control(&["restart", "--mode=fast"]);
    let address = |password: &str, rest: &str| {
        format!("postgres://agents:{password}@localhost:{}/agents?sslmode=require{rest}", cluster.port)
    };
    let trusted = format!("&sslrootcert={}", cluster.folder().join("server.crt").display());
    let mut short = PostgresOptions::default();
    short.patience = Duration::from_millis(100);
    let unknown = refused(PostgresStore::open_with(&address(PASSWORD, ""), short.clone()));
    assert!(unknown.contains("certificate"), "{unknown}");
    let elsewhere = address(PASSWORD, &trusted).replace("localhost", "127.0.0.1");
    let other_name = refused(PostgresStore::open_with(&elsewhere, short.clone()));
    assert!(other_name.contains("certificate"), "{other_name}");
    let plain = address(PASSWORD, "").replace("require", "disable");
    assert!(refused(PostgresStore::open_with(&plain, short.clone())).contains("pg_hba"));
    let wrong = refused(PostgresStore::open_with(&address("wrong", &trusted), short));
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    let store = PostgresStore::open(&address(PASSWORD, &trusted)).unwrap();
    let shown = format!("{store:?}");
    assert!(!shown.contains(PASSWORD) && shown.contains("localhost"), "{shown}");
    store.create(NewSession::of("a")).await.unwrap();
    assert_eq!(store.list(10, None).await.unwrap().len(), 1);
    store.close();
}

/// S7.55: a store of a later release is left alone, and so are tables of something else; one that is only to be checked is not made.
#[tokio::test]
async fn a_schema_that_is_not_ours_is_left_alone() {
    let (_, _, outside) = world();
    let (newer, foreign, absent) = (schema(), schema(), schema());
    let database = Cluster::shared().connect().await;
    let at = |schema: &str| PostgresStore::open_with(&Cluster::shared().address(), options(schema, &outside));
    at(&newer).unwrap().close();
    at(&newer).unwrap().close();
    database.batch_execute(&format!("UPDATE {newer}.meta SET version = 99")).await.unwrap();
    assert!(matches!(at(&newer).unwrap_err(), Error::Newer { found: 99, .. }));
    database
        .batch_execute(&format!("CREATE SCHEMA {foreign}; CREATE TABLE {foreign}.books (id int)"))
        .await
        .unwrap();
    assert!(refused(at(&foreign)).contains("another program"));
    let books = format!("CREATE TABLE {foreign}.meta (id int); CREATE TABLE {foreign}.nodes (id int)");
    database.batch_execute(&books).await.unwrap();
    assert!(
        refused(at(&foreign)).contains("another program"),
        "also where a table has the name of one of ours"
    );
    let mut check = options(&absent, &outside);
    check.migration = Migration::CheckOnly;
    assert!(refused(PostgresStore::open_with(&Cluster::shared().address(), check)).contains("version 0"));
    let made =
        database.query_one("SELECT count(*) FROM pg_namespace WHERE nspname = $1", &[&absent]).await.unwrap();
    assert_eq!(made.get::<_, i64>(0), 0, "nothing was made");
}

/// S7.55: many that open a new store at once make its tables once.
#[test]
fn tables_are_made_once() {
    let (_, _, outside) = world();
    let schema = schema();
    std::thread::scope(|threads| {
        let opens: Vec<_> = (0..6).map(|_| threads.spawn(|| open(&schema, &outside).close())).collect();
        opens.into_iter().for_each(|opened| opened.join().unwrap());
    });
}

/// The statements of the guide for a role that uses a store, and does not make it.
fn grants(schema: &str) -> String {
    let guide = include_str!("../../../../docs/guides/postgres.md");
    let (_, grants) = guide.split_once("<!-- grants -->\n```sql\n").unwrap();
    let (grants, _) = grants.split_once("```").unwrap();
    grants
        .replace("SCHEMA safepoint", &format!("SCHEMA {schema}"))
        .replace("agents_node", &format!("{schema}_node"))
}

/// S7.55: a role with the rights that the guide names can do all that a store does, and cannot change its tables.
#[tokio::test]
async fn a_role_that_the_guide_describes_is_enough() {
    let (_, _, outside) = world();
    let schema = schema();
    open(&schema, &outside).close();
    let database = Cluster::shared().connect().await;
    let role = format!("{schema}_node");
    database.batch_execute(&format!("CREATE ROLE {role} LOGIN; {}", grants(&schema))).await.unwrap();
    let address = Cluster::shared().address().replace("postgres://postgres@", &format!("postgres://{role}@"));
    let mut checks = options(&schema, &outside);
    checks.migration = Migration::CheckOnly;
    let store = PostgresStore::open_with(&address, checks).unwrap();
    let session =
        store.create(NewSession { items: vec![item("1", "hello")], ..NewSession::of("a") }).await.unwrap().id;
    assert_eq!(store.due(10, Vec::new()).await.unwrap().len(), 1);
    let lease = acquire(&store, &session, owner(1), TTL).await.unwrap();
    let writes = vec![Write::TakeItem(1), Write::Record(record("said"))];
    store.append(&lease, writes, Durability::Durable).await.unwrap();
    store.append(&lease, vec![Write::Record(record("more"))], Durability::Recorded).await.unwrap();
    store.beat(lease.node(), 1).await.unwrap();
    assert_eq!(store.bury().await.unwrap(), []);
    safepoint_testkit::store_suite::give_back(&store, &lease).await.unwrap();
    assert_eq!(store.read(&session, 0, 10).await.unwrap().entries.len(), 2);
    store.remove(&session).await.unwrap();
    store.close();
    let changed = database.batch_execute(&format!("SET ROLE {role}; DROP TABLE {schema}.records")).await;
    assert!(changed.is_err(), "the tables are their owner's");
}

/// S7.56: what is too large is refused, with what to do, and nothing of it is written.
#[tokio::test]
async fn what_is_too_large_is_refused_with_what_to_do() {
    let (_, _, outside) = world();
    let [store, _] = fresh(outside);
    let session = store.create(NewSession::of("a")).await.unwrap().id;
    let lease = acquire(&*store, &session, owner(1), TTL).await.unwrap();
    let mebibytes = |count: usize| vec![7; count << 20];
    let append = |writes| store.append(&lease, writes, Durability::Durable);
    let large = Record { bytes: [mebibytes(64), vec![7]].concat(), ..record("") };
    let question = NewApproval {
        id: "q".into(),
        run: "run".into(),
        call: "call".into(),
        digest: String::new(),
        expires: jiff::Timestamp::MAX,
        bytes: [mebibytes(8), vec![7]].concat(),
    };
    let long = "x".repeat(513);
    let errors = [
        append(vec![Write::Record(record("one")), Write::Record(large)]).await.unwrap_err(),
        append(vec![Write::OpenApproval(question)]).await.unwrap_err(),
        store
            .push(&session, NewItem { bytes: [mebibytes(8), vec![7]].concat(), ..item("1", "") })
            .await
            .unwrap_err(),
        store.push(&session, item(&long, "")).await.unwrap_err(),
        store.create(NewSession::of(long.clone())).await.unwrap_err(),
        store.join(NewNode { name: long, ..NewNode::of(OwnerProcess::here(), TTL) }).await.unwrap_err(),
    ];
    for error in errors {
        let words = error.to_string();
        assert!(matches!(error, Error::Failed(_)) && words.contains("the most: "), "{words}");
    }
    assert_eq!(store.open(&session).await.unwrap().head, 0);
    let whole = Record { bytes: mebibytes(16), ..record("") };
    append(vec![Write::Record(whole.clone())]).await.unwrap();
    append(vec![Write::Record(record("small")), Write::Record(whole)]).await.unwrap();
    let page = store.read(&session, 0, 10).await.unwrap();
    assert_eq!(
        (page.entries.len(), page.next),
        (1, Some(1)),
        "a page has a bound in bytes, and one record at least"
    );
    let page = store.read(&session, 1, 10).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (2, None));
    assert_eq!(
        store.push(&session, NewItem { bytes: mebibytes(8), ..item("1", "") }).await.unwrap(),
        Pushed::Accepted(1)
    );
}

/// S7.56: a page has a bound in records.
#[tokio::test]
async fn a_page_ends_somewhere() {
    let (_, _, outside) = world();
    let [store, _] = fresh(outside);
    let records = (0..1_500).map(|number| record(&number.to_string())).collect();
    let session = store.create(NewSession { records, ..NewSession::of("a") }).await.unwrap().id;
    let page = store.read(&session, 0, usize::MAX).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (1_024, Some(1_024)));
    let rest = store.read(&session, 1_024, usize::MAX).await.unwrap();
    assert_eq!((rest.entries.len(), rest.next), (476, None));
    assert!(matches!(store.check(&session).await.unwrap(), safepoint::raw::store::ChainCheck::Intact(_)));
}

/// S7.57: a text with NUL, anywhere, is kept as it is.
#[tokio::test]
async fn a_text_with_nul_is_kept_as_it_is() {
    const ODD: &str = "a\0b\u{1}c'\"\\";
    let (_, _, outside) = world();
    let [store, other] = fresh(outside);
    let new = NewSession {
        title: ODD.into(),
        label: ODD.into(),
        setup: ODD.into(),
        pool: ODD.into(),
        items: vec![item(ODD, ODD)],
        ..NewSession::of(ODD)
    };
    let row = store.create(new).await.unwrap();
    let session = row.id.clone();
    assert_eq!(session.as_str(), ODD);
    assert_eq!(other.list(10, None).await.unwrap(), [row]);
    let node = NewNode {
        id: ODD.into(),
        name: ODD.into(),
        pools: vec![ODD.into()],
        address: Some(ODD.into()),
        ..NewNode::of(owner(1), TTL)
    };
    let lease = store.join(node.clone()).await.unwrap();
    assert_eq!(other.nodes().await.unwrap()[0].node, node);
    assert_eq!(other.due(1, vec![ODD.into()]).await.unwrap()[0].pool, ODD);
    let lease = store.acquire(&session, &lease).await.unwrap();
    let said = Record { path: ODD.into(), kind: ODD.into(), ..record("said") };
    let asked = NewApproval {
        id: ODD.into(),
        run: ODD.into(),
        call: ODD.into(),
        digest: ODD.into(),
        expires: jiff::Timestamp::MAX,
        bytes: vec![],
    };
    store
        .append(
            &lease,
            vec![Write::Record(said.clone()), Write::OpenApproval(asked.clone())],
            Durability::Durable,
        )
        .await
        .unwrap();
    assert_eq!(other.read(&session, 0, 1).await.unwrap().entries[0].record, Ok(said));
    assert_eq!(other.approvals(&session).await.unwrap()[0].asked.id, asked.id);
    assert_eq!(other.open_approvals(1, None).await.unwrap()[0].session, session);
    assert_eq!(other.push(&session, item(ODD, ODD)).await.unwrap(), Pushed::Same(1));
    let writes = vec![
        Write::CloseApproval(ODD.into(), ApprovalClose::Withdrawn),
        Write::Title(ODD.into()),
        Write::RemoveItem(1),
    ];
    store.append(&lease, writes, Durability::Durable).await.unwrap();
    assert_eq!(other.tenures(&session).await.unwrap()[0].node, node.id);
}
