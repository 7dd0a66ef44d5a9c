//! What a server may offer: names, schemas and lists of strangers.

use safepoint::Agent;
use safepoint_testkit::{
    mcp::{HttpServer, List, McpManners, McpSeen, Speaks},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use safepoint_tools::mcp::Server;
use serde_json::json;

use crate::mcp::support::{PATIENCE, Place, call, no_args, stdio, until};

fn odd() -> McpManners {
    McpManners { list: List::Odd, ..McpManners::default() }
}

/// S4.10, S4.11: each wrong tool is refused for what is wrong with it, and the good ones are there: an agent can be built.
#[tokio::test]
async fn a_wrong_tool_costs_itself_and_no_other() {
    let client = stdio(&odd()).connect().await.unwrap();
    let offer = client.offer().await.unwrap();
    let names: Vec<&str> = offer.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names[0], "test__echo");
    assert_eq!(names.len(), 4, "{names:?}");
    for name in &names {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        assert!(is_plain && name.len() <= 64, "{name}");
    }
    let why = |name: &str| {
        let refused = offer.refused.iter().find(|refused| refused.name == name);
        refused.unwrap_or_else(|| panic!("{name} is in {:?}", offer.refused)).why.clone()
    };
    assert!(why("no-schema").contains("no schema"));
    assert!(why("text-schema").contains("no schema"));
    assert!(why("bad-schema").contains("not a JSON Schema"));
    assert!(why("far-schema").contains("not a JSON Schema"), "nothing is fetched for it");
    assert!(why("list-schema").contains("no object"));
    assert!(why("huge-schema").contains("larger than"));
    assert!(why("echo").contains("another tool"));
    assert_eq!(offer.refused.iter().filter(|refused| refused.name.is_empty()).count(), 3);
    assert!(offer.tools[0].spec().description.len() < 5000);
    let model = ScriptedModel::new(Script::of([Reply::text("done")]));
    assert!(Agent::builder(model).tools(offer.tools).try_build().is_ok());
}

/// S4.10: a schema that is nested too deeply to be read costs its own tool, over pipes and over HTTP.
#[tokio::test]
async fn a_schema_that_is_nested_too_deeply_costs_no_other_tool() {
    for speaks in [Speaks::Older, Speaks::Newest] {
        let deep = McpManners { list: List::Deep, speaks, ..McpManners::default() };
        let http = HttpServer::start(deep.clone()).await.unwrap();
        for server in [stdio(&deep), Server::http("test", http.url())] {
            let offer = server.connect().await.unwrap().offer().await.unwrap();
            assert!(offer.tools.iter().any(|tool| tool.spec().name == "test__echo"), "{speaks:?}");
            let refused: Vec<_> = offer.refused.iter().map(|refused| refused.name.as_str()).collect();
            assert_eq!(refused, ["deep"], "{speaks:?}");
        }
    }
}

/// S8.8: a lasting yes binds what a tool works on: the program of its server, with its arguments, and where that runs.
#[tokio::test]
async fn another_server_under_the_same_name_is_another_place() {
    let place = async |server: Server| {
        let tools = server.connect().await.unwrap().tools().await.unwrap();
        tools[0].spec().place.clone().unwrap()
    };
    let same = || stdio(&McpManners::default());
    let first = place(same()).await;
    assert_eq!(first, place(same()).await);
    assert_ne!(first, place(same().args(["--show-output"])).await);
    assert_ne!(first, place(same().cwd("/")).await);
}

#[tokio::test]
async fn a_list_without_an_end_is_cut_off() {
    let endless = McpManners { list: List::Endless, ..McpManners::default() };
    let client = stdio(&endless).connect().await.unwrap();
    let offer = client.offer().await.unwrap();
    assert!((10..=512).contains(&offer.tools.len()), "{}", offer.tools.len());
}

#[tokio::test]
async fn tools_are_chosen_and_renamed() {
    let server = stdio(&McpManners::default()).include(["e*", "fail"]).exclude(["env"]).rename("echo", "say");
    let client = server.connect().await.unwrap();
    let names: Vec<String> =
        client.tools().await.unwrap().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["say", "test__fail"]);
    let agent = crate::mcp::support::agent(&client, "say", json!({"text": "hello"})).await;
    assert!(crate::mcp::support::reported(&agent.run("go").await).good().contains("hello"));
    let wrong = stdio(&McpManners::default()).include(["echo"]).rename("echo", "not a name").connect().await;
    let offer = wrong.unwrap().offer().await.unwrap();
    assert!(offer.tools.is_empty() && offer.refused[0].why.contains("no provider"), "{:?}", offer.refused);
}

/// S4.10: a server that changes its tools says so, on each transport and in each protocol's way; a run keeps those that it
/// was given, the next one gets the new ones.
#[tokio::test]
async fn changed_tools_are_noticed_and_offered_to_the_next_run() {
    for speaks in [Speaks::Older, Speaks::Newest] {
        let manners = McpManners { speaks, ..McpManners::default() };
        let (place, http) = (Place::new(), HttpServer::start(manners.clone()).await.unwrap());
        for server in [place.server(manners), Server::http("test", http.url())] {
            let asked = || place.received(LISTEN) + listened(&http);
            let asked_before = asked();
            let client = server.connect().await.unwrap();
            let before = client.tools().await.unwrap();
            if speaks == Speaks::Newest {
                until("somebody listens", || asked() > asked_before).await;
            }
            assert_eq!(client.changes(), 0);
            assert!(call(&client, "grow", no_args()).await.good().contains("grown"));
            let noticed = tokio::time::timeout(PATIENCE, client.changed(0)).await;
            assert_eq!(noticed, Ok(1), "{speaks:?}");
            let has_new = |tools: &[std::sync::Arc<dyn safepoint::Tool>]| {
                tools.iter().any(|tool| tool.spec().name == "test__grown0")
            };
            assert!(!has_new(&before) && has_new(&client.tools().await.unwrap()));
            assert!(call(&client, "grown0", no_args()).await.good().contains("I am new"));
            client.close().await;
        }
    }
}

const LISTEN: &str = "subscriptions/listen";

fn listened(http: &HttpServer) -> usize {
    let is_one = |seen: &McpSeen| matches!(seen, McpSeen::Got(got) if got["method"] == LISTEN);
    http.seen().iter().filter(|(_, seen)| is_one(seen)).count()
}

/// S4.10: a stream of notices that ends is requested again; notices that may be lost meanwhile count as a
/// change. The client listens no longer once it is closed.
#[tokio::test]
async fn a_lost_stream_of_notices_is_asked_for_again() {
    let newest = McpManners { speaks: Speaks::Newest, ..McpManners::default() };
    let http = HttpServer::start(newest).await.unwrap();
    let client = Server::http("test", http.url()).connect().await.unwrap();
    until("somebody listens", || listened(&http) == 1).await;
    assert_eq!(client.changes(), 0);
    http.hang_up();
    assert_eq!(tokio::time::timeout(PATIENCE, client.changed(0)).await, Ok(1));
    assert_eq!(listened(&http), 2);
    assert!(call(&client, "grow", no_args()).await.good().contains("grown"));
    assert_eq!(tokio::time::timeout(PATIENCE, client.changed(1)).await, Ok(2));
    client.close().await;
    let is_end = |seen: &McpSeen| matches!(seen, McpSeen::GaveUp(request) if request["method"] == LISTEN);
    until("nobody listens", || http.seen().iter().any(|(_, seen)| is_end(seen))).await;
}

#[tokio::test]
async fn a_servers_name_must_be_plain() {
    let wrong = safepoint_tools::mcp::Server::stdio("a b", "true").connect().await.unwrap_err();
    assert!(wrong.is_description(), "{wrong}");
    let wrong = safepoint_tools::mcp::Server::http("a", "ftp://x/").connect().await.unwrap_err();
    assert!(wrong.is_description() && wrong.to_string().contains("ftp:"), "{wrong}");
    let wrong = safepoint_tools::mcp::Server::http("a", "http://x/").header("a b", "c").connect().await;
    assert!(wrong.unwrap_err().to_string().contains("header `a b`"));
}
