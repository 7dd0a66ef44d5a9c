//! How requests travel: through a proxy, with headers, within a time.

use std::time::Duration;

use futures_util::StreamExt as _;
use safepoint::{
    Agent, History, Model as _,
    history::Message,
    model::{Delta, ModelError, ModelErrorKind, ModelSpec},
};
use safepoint_models::{Patience, Retry, Transport, openai};
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};

const SOON: Duration = Duration::from_secs(20);

async fn replies(model: openai::OpenAi) -> Vec<Result<Delta, ModelError>> {
    let mut history = History::new();
    history.push(Message::User("hello".into()));
    model.open(ModelSpec::default()).stream(&history).collect().await
}

/// S12.41: the proxy gets the request, with the headers of the transport and of the model.
#[tokio::test]
async fn a_request_goes_through_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://ann:hunter2@{}", listener.local_addr().unwrap());
    let served = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0);
        }
        let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        socket.write_all(refusal.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&head).into_owned()
    };
    let transport = Transport::new().proxy(proxy).header("x-of-transport", "1");
    let model =
        openai::model("m").base_url("http://name.invalid/v1").header("x-of-model", "2").transport(transport);
    assert!(!format!("{model:?}").contains("hunter2"));
    let (head, replies) = timeout(SOON, async { tokio::join!(served, replies(model)) }).await.unwrap();
    assert!(head.starts_with("POST http://name.invalid/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    for line in ["x-of-transport: 1", "x-of-model: 2", "proxy-authorization: Basic YW5uOmh1bnRlcjI="] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert_eq!(replies.last().unwrap().as_ref().unwrap_err().status(), Some(400));
}

/// S12.41: what an exception names is reached directly, and so is everything where no proxy is wanted.
#[tokio::test]
async fn an_exception_is_reached_directly() {
    let server = ModelServer::start(Script::of(["one", "two"].map(Reply::text))).await.unwrap();
    let nobody = "http://127.0.0.1:1";
    for transport in
        [Transport::new().proxy_except(nobody, "127.0.0.1"), Transport::new().proxy(nobody).direct()]
    {
        let model = openai::model("m").base_url(server.url()).transport(transport);
        let ended = replies(model).await;
        assert!(matches!(ended.last(), Some(Ok(Delta::Ended(_)))), "{ended:?}");
    }
}

/// S12.41: a server that stays silent is given up after the read timeout.
#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let patience = Patience { retry: Retry::never(), ..Patience::default() };
    let transport = Transport::new().direct().read_timeout(Duration::from_millis(50));
    let model = openai::model("m").base_url(url).patience(patience).transport(transport);
    let replies = timeout(SOON, replies(model)).await.unwrap();
    assert_eq!(replies.last().unwrap().as_ref().unwrap_err().kind(), ModelErrorKind::StreamIdle);
}

/// S12.41: what cannot be set up is an error when the agent is built.
#[test]
fn an_agent_is_not_built_with_a_proxy_that_is_none() {
    let model = openai::model("m").transport(Transport::new().proxy("nonsense"));
    let error = Agent::builder(model).try_build().unwrap_err().to_string();
    assert!(error.contains("proxy") && error.contains("http://proxy.example:3128"), "{error}");
}
