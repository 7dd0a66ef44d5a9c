//! The events of a response as a stream, and clients that come back to it.

use super::*;

/// What a client knows that has read these events.
fn read(events: &[Sent]) -> (Vec<(u64, String)>, String) {
    let is_delta = |sent: &&Sent| sent.event == "response.output_text.delta";
    let said = events.iter().filter(is_delta).map(|sent| sent.data["delta"].as_str().unwrap()).collect();
    let others = events.iter().filter(|sent| !is_delta(sent));
    (others.map(|sent| (number(sent), sent.event.clone())).collect(), said)
}

/// S13.16: a client that comes back with any number gets every later event exactly once: live, when all is over, and from the next
/// owner of the session.
#[tokio::test]
async fn a_client_that_comes_back_at_any_number_gets_each_later_event_once() {
    let words = "Lisbon is the capital of Portugal, and Não the word for no.";
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent.clone()).await;
    let made = begun(&world.client, "go").await;
    drop(gate.request().await);
    gate.headers();
    gate.script(&Reply::text(words).paced(3, Duration::ZERO));
    let path = format!("{RESPONSES}/{}?stream=true", made["id"].as_str().unwrap());
    let mut stream = world.client.stream("GET", &path, &[], None).await;
    while !gate.send_next_until(b"tal") {}
    let mut all = Vec::new();
    while !read(&all).1.ends_with("tal") {
        all.push(stream.next().await.expect("the text streams"));
    }
    // One that has read a part of what is there.
    let from = number(all.last().unwrap()) - 4;
    let late = format!("{path}&starting_after={from}");
    let mut late = world.client.stream("GET", &late, &[], None).await;
    let first = late.next().await.unwrap();
    assert_eq!(first.data["delta"], "ital", "{first:?}");
    gate.finish();
    all.extend(stream.rest().await);
    let (others, said) = read(&all);
    assert_eq!((&*said, all.last().unwrap().event.as_str()), (words, "response.completed"), "{all:#?}");
    assert!(all.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{all:#?}");
    assert_eq!(number(&all[0]), 0);
    let behind = |from: u64| {
        let (later, before): (Vec<Sent>, Vec<Sent>) =
            all.iter().cloned().partition(|sent| number(sent) > from);
        (read(&later), read(&before).1)
    };
    let more = late.rest().await;
    let at = words.find("capital").unwrap() + "capital".len();
    assert_eq!(read(&more).1, words[at..], "{more:#?}");
    assert_eq!(
        read(&more).0,
        read(&all).0.into_iter().filter(|(number, _)| *number > from).collect::<Vec<_>>()
    );
    for sent in &all {
        let from = number(sent);
        let again = events(&world.client, &made["id"], Some(from)).await;
        assert_eq!(read(&again), behind(from).0, "behind {from}");
    }
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    for sent in &all {
        let from = number(sent);
        let again = events(&world.client, &made["id"], Some(from)).await;
        assert_eq!(read(&again), behind(from).0, "after a restart, behind {from}");
    }
    assert_eq!(read(&events(&world.client, &made["id"], None).await), (others, said));
    world.end().await;
}

/// S13.16: the calls of a turn are in the stream of its response, each with its arguments and its result, and the object has the same.
#[tokio::test]
async fn the_stream_of_a_response_has_its_calls() {
    let agent = super::questions::payer_of(safepoint::approval::ApprovalMode::Auto);
    let world = World::of(agent).await;
    let body = json!({"model": "helper", "input": "Pay.", "stream": true});
    let all = world.client.stream("POST", RESPONSES, &[], Some(&body)).await.rest().await;
    let names: Vec<&str> = all.iter().map(|sent| sent.event.as_str()).collect();
    let begins =
        ["response.created", "response.queued", "response.in_progress", "response.output_item.added"];
    assert_eq!(names[..4], begins, "{names:?}");
    for name in
        ["response.mcp_call.in_progress", "response.mcp_call_arguments.done", "response.mcp_call.completed"]
    {
        assert_eq!(names.iter().filter(|sent| **sent == name).count(), 1, "{names:?}");
    }
    let last = &all.last().unwrap().data["response"];
    let call = &last["output"][0];
    assert_eq!(
        (&call["type"], &call["status"], &call["output"]),
        (&json!("mcp_call"), &json!("completed"), &json!("paid 12000")),
        "{last}"
    );
    assert_eq!((&call["arguments"], &*text(last)), (&json!(r#"{"cents":12000}"#), "Done."));
    let done: Vec<Value> = all
        .iter()
        .filter(|sent| sent.event == "response.output_item.done")
        .map(|sent| sent.data["item"].clone())
        .collect();
    assert_eq!(Value::from(done), last["output"]);
    assert_eq!(retrieved(&world.client, &last["id"]).await["output"], last["output"]);
    world.end().await;
}

/// S13.16, S13.2: a client that goes away from a response that is kept stops nothing, in the foreground too.
#[tokio::test]
async fn a_client_that_goes_away_from_what_is_kept_stops_nothing() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let body = json!({"model": "helper", "input": "go", "stream": true});
    let mut stream = world.client.stream("POST", RESPONSES, &[], Some(&body)).await;
    let created = stream.until("response.created").await;
    drop(gate.request().await);
    drop(stream);
    gate.headers();
    gate.script(&Reply::text("Still here."));
    gate.finish();
    let found = over(&world, &created.data["response"]).await;
    assert_eq!((&found["status"], &*text(&found)), (&json!("completed"), "Still here."), "{found}");
    world.end().await;
}
