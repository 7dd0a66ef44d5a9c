//! What a run cost, by the prices of its agents.

use safepoint::{
    Agent, AgentBuilder, Outcome, Usage,
    model::{Delta, Finish},
    usage::Price,
};

use crate::{
    children::{hire, with},
    world::{Reply, agent, say},
};

/// The reply with a bill of these tokens.
fn billed(mut reply: Reply, input: u64, output: u64) -> Reply {
    let end = reply.pop().unwrap();
    assert!(matches!(end, Ok(Delta::Ended(Finish::Natural))));
    reply.extend([Ok(Delta::Usage(Usage::new(input, output))), end]);
    reply
}

fn worker() -> AgentBuilder {
    agent([billed(say("worked"), 1_000, 100)])
}

async fn led(child: &Agent, price: Option<Price>) -> Outcome {
    let parent = agent([billed(hire(&["a"]), 1_000, 100), billed(say("done"), 2_000, 100)]);
    let parent = with(parent, "a", child);
    price.into_iter().fold(parent, AgentBuilder::price).build().run("go").await
}

/// S3.12: a run with a price says what its model calls cost, and one without says nothing: never 0.
#[tokio::test(start_paused = true)]
async fn a_price_that_is_not_known_is_no_cost() {
    let price = Price::new(1.0, 0.1, 10.0);
    let outcome = agent([billed(say("hi"), 1_000, 100)]).price(price).build().run("go").await;
    assert_eq!(outcome.cost(), Some(0.002));
    assert_eq!(outcome.receipt().cost_total, outcome.cost());
    assert!(outcome.receipt().to_string().contains("cost      0.002000"), "{}", outcome.receipt());
    let answer = outcome.into_result().unwrap();
    assert_eq!((answer.cost(), answer.usage().total()), (Some(0.002), 1_100));

    let unpriced = agent([billed(say("hi"), 1_000, 100)]).build().run("go").await;
    assert_eq!((unpriced.cost(), unpriced.receipt().cost_total), (None, None));
    assert!(!unpriced.receipt().to_string().contains("cost"), "{}", unpriced.receipt());

    let stopped = agent([billed(hire(&["a"]), 1_000, 100)])
        .price(price)
        .limits(safepoint::Limits::default().with_max_rounds(1))
        .build()
        .run("go")
        .await;
    assert_eq!(stopped.into_result().unwrap_err().cost(), Some(0.002));
}

/// S3.12: a total is by the price of each agent, and unknown where one that used something has none.
#[tokio::test(start_paused = true)]
async fn a_total_counts_child_runs_by_their_own_prices() {
    let (cheap, dear) = (Price::new(1.0, 0.1, 10.0), Price::new(5.0, 0.5, 50.0));
    let outcome = led(&worker().price(dear).build(), Some(cheap)).await;
    assert_eq!((outcome.cost(), outcome.receipt().cost_total), (Some(0.005), Some(0.015)));

    let child_unknown = led(&worker().build(), Some(cheap)).await;
    assert_eq!((child_unknown.cost(), child_unknown.receipt().cost_total), (Some(0.005), None));

    let parent_unknown = led(&worker().price(dear).build(), None).await;
    assert_eq!((parent_unknown.cost(), parent_unknown.receipt().cost_total), (None, None));
}
