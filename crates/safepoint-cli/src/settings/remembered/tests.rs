//! The golden file of what is remembered with a session.

use safepoint_golden::each;

use super::*;
use crate::{args::backend::Stops, tests::golden::golden};

fn full(stops: Stops, on_full: OnFull, withheld: Withheld) -> Setup {
    let known = BackendArgs {
        backend_stops: stops,
        backend_key_env: Some("KEY".into()),
        backend_auth: Some("oauth".into()),
        backend_calls: vec!["localhost:80".into()],
    };
    Setup {
        backend: Some("a2a:https://example.org".into()),
        known,
        model: Some("openai:gpt-x".into()),
        base_url: Some("http://localhost:1".into()),
        api_key_env: Some("KEY".into()),
        system: Some("be brief".into()),
        max_tokens: Some(1000),
        temperature: Some(0.5),
        window: Some(100_000),
        on_full: Some(on_full),
        tools: Some("shell".into()),
        root: Some("/work".into()),
        project: None,
        max_rounds: Some(50),
        timeout: Some(Duration::from_millis(1500)),
        withheld: Some(withheld),
    }
}

#[test]
fn what_is_remembered() {
    let stops = each!(Stops {
        Stops::Hard => Stops::Hard;
        Stops::CallerSide => Stops::CallerSide;
        Stops::None => Stops::None;
    });
    let on_full = each!(OnFull {
        OnFull::Refuse => OnFull::Refuse;
        OnFull::Drop => OnFull::Drop;
        OnFull::Summarise => OnFull::Summarise;
    });
    let withheld = each!(Withheld {
        Withheld::Backend => Withheld::Backend;
        Withheld::BaseUrl => Withheld::BaseUrl;
    });
    let stops = stops.into_iter().map(|stops| full(stops, OnFull::Refuse, Withheld::Backend));
    let on_full = on_full.into_iter().map(|on_full| full(Stops::Hard, on_full, Withheld::Backend));
    let withheld = withheld.into_iter().map(|withheld| full(Stops::Hard, OnFull::Refuse, withheld));
    let project = Setup { project: Some("/work".into()), ..Setup::default() };
    let all = [Setup::default()].into_iter().chain(stops).chain(on_full).chain(withheld).chain([project]);
    golden("setup").json("setup", all).check();
}
