//! The fuzz targets under proptest: arbitrary bytes, and recorded streams that were cut, repeated and garbled.

use proptest::prelude::*;

const STREAMS: [&str; 4] = [
    concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"pay\",\"arguments\":\"{}\"}}]}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n",
        "data: [DONE]\n\n",
    ),
    concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"pay\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ),
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":3}}\n\n",
    concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\"}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"hi\"}\n\n",
        "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"pay\",\"arguments\":\"{}\"}}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":{\"status\":\"completed\"}}\n\n",
    ),
];

/// A stream of one of the wires with a part taken out, a part said twice, and a byte changed; first the size of a piece.
fn garbled() -> impl Strategy<Value = Vec<u8>> {
    let places = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u8>());
    (0..STREAMS.len(), any::<u8>(), places).prop_map(|(stream, size, (cut, twice, at, byte))| {
        let bytes = STREAMS[stream].as_bytes();
        let place = |n: u16| usize::from(n) % bytes.len();
        let (from, to) = (place(cut).min(place(twice)), place(cut).max(place(twice)));
        let mut out = vec![size];
        match byte % 3 {
            0 => out.extend([&bytes[..from], &bytes[to..]].concat()),
            1 => out.extend([&bytes[..to], &bytes[from..]].concat()),
            _ => out.extend(bytes),
        }
        let at = 1 + place(at).min(out.len() - 2);
        out[at] = byte;
        out
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..600), garbled()]
}

/// JSON that looks like a history, whole or not: ids that clash, calls without results, results without calls.
fn entries() -> impl Strategy<Value = Vec<u8>> {
    let id = || "[abc]?";
    let block = prop_oneof![
        "[a-z ]{0,5}".prop_map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)),
        id().prop_map(|id| format!(r#"{{"type":"call","id":"{id}","name":"f","args":"{{}}"}}"#)),
        Just(r#"{"type":"reasoning","text":"hm","seal":null}"#.to_owned()),
    ];
    let result =
        id().prop_map(|id| format!(r#"{{"call_id":"{id}","name":"f","text":"x","verdict":"good"}}"#));
    let entry = prop_oneof![
        "[a-z ]{0,5}".prop_map(|text| format!(r#"{{"role":"user","text":"{text}"}}"#)),
        proptest::collection::vec(block, 0..4)
            .prop_map(|blocks| format!(r#"{{"role":"assistant","blocks":[{}]}}"#, blocks.join(","))),
        proptest::collection::vec(result, 0..4)
            .prop_map(|results| format!(r#"{{"role":"results","results":[{}]}}"#, results.join(","))),
    ];
    let all =
        proptest::collection::vec(entry, 0..8).prop_map(|all| format!("[{}]", all.join(",")).into_bytes());
    prop_oneof![9 => all, 1 => proptest::collection::vec(any::<u8>(), 0..60)]
}

/// What is above is read as a history: else its target would see nothing.
#[test]
fn the_entries_are_entries() {
    let [user, call, result] = [
        r#"{"role":"user","text":"hi"}"#,
        r#"{"role":"assistant","blocks":[{"type":"call","id":"a","name":"f","args":"{}"},{"type":"reasoning","text":"hm","seal":null}]}"#,
        r#"{"role":"results","results":[{"call_id":"a","name":"f","text":"x","verdict":"good"}]}"#,
    ];
    let text = format!("[{user},{call},{result}]");
    assert_eq!(serde_json::from_str::<Vec<safepoint::history::Message>>(&text).expect("it is one").len(), 3);
}

fn shapes() -> impl Strategy<Value = Vec<u8>> {
    let json = prop_oneof![
        any::<i64>().prop_map(|n| format!("{{\"euros\": {n}}}")),
        any::<u32>().prop_map(|n| format!("{{\"euros\": {n}, \"more\": [{n}, {{}}]}}")),
        Just("{\"euros\": 1".to_owned()),
        Just("{\"euros\": 1}{\"euros\": 2}".to_owned()),
        Just(format!("{}1{}", "[".repeat(300), "]".repeat(300))),
        "[\\[\\]{}\":,0-9a-z ]{0,30}",
    ];
    prop_oneof![json.prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..60)]
}

proptest! {
    #[test]
    fn sse(data in bytes()) {
        safepoint_fuzz::sse(&data);
    }

    #[test]
    fn openai(data in bytes()) {
        safepoint_fuzz::openai(&data);
    }

    #[test]
    fn anthropic(data in bytes()) {
        safepoint_fuzz::anthropic(&data);
    }

    #[test]
    fn gemini(data in bytes()) {
        safepoint_fuzz::gemini(&data);
    }

    #[test]
    fn responses(data in bytes()) {
        safepoint_fuzz::responses(&data);
    }

    #[test]
    fn history(data in entries()) {
        safepoint_fuzz::history(&data);
    }

    #[test]
    fn arguments(data in shapes()) {
        safepoint_fuzz::arguments(&data);
    }
}

/// The recorded streams themselves are read to their end, so that what garbles them starts from something good.
#[test]
fn the_recorded_streams_are_good() {
    use safepoint_models::fuzz;
    let [chat, messages, gemini, responses] = STREAMS.map(str::as_bytes);
    for deltas in [
        fuzz::openai(&[chat]),
        fuzz::anthropic(&[messages]),
        fuzz::gemini(&[gemini]),
        fuzz::responses(&[responses]),
    ] {
        assert!(deltas.iter().all(Result::is_ok) && deltas.len() > 1, "{deltas:?}");
    }
}
