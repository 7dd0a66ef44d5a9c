//! What a server may offer: names, schemas and lists of strangers.

use safepoint::Agent;
use safepoint_testkit::{
    mcp::{List, Manners},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

use crate::mcp::support::{call, no_args, stdio};

fn odd() -> Manners {
    Manners { list: List::Odd, ..Manners::default() }
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

#[tokio::test]
async fn a_list_without_an_end_is_cut_off() {
    let endless = Manners { list: List::Endless, ..Manners::default() };
    let client = stdio(&endless).connect().await.unwrap();
    let offer = client.offer().await.unwrap();
    assert!((10..=512).contains(&offer.tools.len()), "{}", offer.tools.len());
}

#[tokio::test]
async fn tools_are_chosen_and_renamed() {
    let server = stdio(&Manners::default()).include(["e*", "fail"]).exclude(["env"]).rename("echo", "say");
    let client = server.connect().await.unwrap();
    let names: Vec<String> =
        client.tools().await.unwrap().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["say", "test__fail"]);
    let agent = crate::mcp::support::agent(&client, "say", json!({"text": "hello"})).await;
    assert!(crate::mcp::support::told(&agent.run("go").await).good().contains("hello"));
    let wrong = stdio(&Manners::default()).include(["echo"]).rename("echo", "not a name").connect().await;
    let offer = wrong.unwrap().offer().await.unwrap();
    assert!(offer.tools.is_empty() && offer.refused[0].why.contains("no provider"), "{:?}", offer.refused);
}

/// S4.10: a server that changes its tools says so; a run keeps those that it was given, the next one gets the new ones.
#[tokio::test]
async fn changed_tools_are_noticed_and_offered_to_the_next_run() {
    let client = stdio(&Manners::default()).connect().await.unwrap();
    let before = client.tools().await.unwrap();
    assert_eq!(client.changes(), 0);
    assert!(call(&client, "grow", no_args()).await.good().contains("grown"));
    assert_eq!(client.changed(0).await, 1);
    let has_new = |tools: &[std::sync::Arc<dyn safepoint::Tool>]| {
        tools.iter().any(|tool| tool.spec().name == "test__grown0")
    };
    assert!(!has_new(&before) && has_new(&client.tools().await.unwrap()));
    assert!(call(&client, "grown0", no_args()).await.good().contains("I am new"));
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
