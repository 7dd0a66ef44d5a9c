//! Images and files beside what a person says, as each wire wants them; what a wire does not take is not
//! sent.

use safepoint::{
    RunHandle,
    history::Message,
    message::{Part, UserMessage},
    receipt::{Ending, ModelState},
    tool::{self, Output},
};
use safepoint_testkit::{
    script::Reply,
    server::{ModelServer, ServedWire},
};
use serde_json::{Value, json};

use super::world::{Ledger, WIRES, builder, close, continues, server};

const PIXEL: &[u8] = b"foob";

/// What stands in the request beside the text.
fn beside(wire: ServedWire, server: &ModelServer) -> Vec<Value> {
    let body = &server.requests()[0].body;
    let list = match wire {
        ServedWire::OpenAi | ServedWire::Anthropic => &body["messages"][0]["content"],
        ServedWire::Responses => &body["input"][0]["content"],
        ServedWire::Gemini => &body["contents"][0]["parts"],
    };
    let all = list.as_array().unwrap().clone();
    assert!(all[0]["text"] == "what is it?", "{wire:?}: {all:?}");
    all[1..].to_vec()
}

async fn sent_to(wire: ServedWire, message: UserMessage) -> (ModelServer, RunHandle) {
    let server = server([Reply::text("a cat"), Reply::text("on")]).await;
    let handle = builder(&server, wire).build().run(message).detach();
    (server, handle)
}

/// S5.1: bytes and addresses go out in each wire's own form, after the text, and the conversation continues.
#[tokio::test]
async fn images_and_files_go_out_in_each_wires_form() {
    let image = json!("data:image/png;base64,Zm9vYg==");
    let pdf = json!("data:application/pdf;base64,Zm9vYg==");
    let expected = [
        vec![
            json!({"type": "image_url", "image_url": {"url": image}}),
            json!({"type": "image_url", "image_url": {"url": "https://e.com/a.png"}}),
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}}),
        ],
        vec![
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Zm9vYg=="}}),
            json!({"type": "image", "source": {"type": "url", "url": "https://e.com/a.png"}}),
            json!({"type": "document", "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "Zm9vYg=="}}),
        ],
        vec![
            json!({"type": "input_image", "image_url": image}),
            json!({"type": "input_image", "image_url": "https://e.com/a.png"}),
            json!({"type": "input_file", "filename": "a.pdf", "file_data": pdf}),
        ],
        vec![
            json!({"inlineData": {"mimeType": "image/png", "data": "Zm9vYg=="}}),
            json!({"fileData": {"fileUri": "https://e.com/a.png"}}),
            json!({"inlineData": {"mimeType": "application/pdf", "data": "Zm9vYg=="}}),
        ],
    ];
    for (wire, expected) in WIRES.into_iter().zip(expected) {
        let message = UserMessage::from("what is it?")
            .with(Part::image("image/png", PIXEL).unwrap())
            .with(Part::image_at("https://e.com/a.png"))
            .with(Part::file("a.pdf", "application/pdf", PIXEL).unwrap());
        let (server, handle) = sent_to(wire, message.clone()).await;
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("a cat"), "{wire:?}: {outcome:?}");
        assert_eq!(beside(wire, &server), expected, "{wire:?}");
        let stored = serde_json::to_string(outcome.history()).unwrap();
        let read: safepoint::History = serde_json::from_str(&stored).unwrap();
        assert_eq!(*read.entries()[0], Message::User(message));
        continues(&builder(&server, wire).build(), &outcome).await;
    }
}

/// S5.1: sounds and texts go out in each wire's own form, where it has one, and the strict server takes them.
#[tokio::test]
async fn sounds_and_texts_go_out_in_each_wires_form() {
    let text = || Part::file("a.md", "text/markdown", "Grüße".as_bytes()).unwrap();
    let wav = || Part::audio("audio/x-wav", PIXEL).unwrap();
    for (wire, part, expected) in [
        (
            ServedWire::OpenAi,
            wav(),
            json!({"type": "input_audio", "input_audio": {"data": "Zm9vYg==", "format": "wav"}}),
        ),
        (
            ServedWire::OpenAi,
            Part::audio("audio/mpeg", PIXEL).unwrap(),
            json!({"type": "input_audio", "input_audio": {"data": "Zm9vYg==", "format": "mp3"}}),
        ),
        (ServedWire::Gemini, wav(), json!({"inlineData": {"mimeType": "audio/x-wav", "data": "Zm9vYg=="}})),
        (
            ServedWire::Gemini,
            Part::audio_at("https://e.com/a"),
            json!({"fileData": {"fileUri": "https://e.com/a"}}),
        ),
        (
            ServedWire::Anthropic,
            text(),
            json!({"type": "document", "title": "a.md",
                "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"}}),
        ),
        (
            ServedWire::Gemini,
            text(),
            json!({"inlineData": {"mimeType": "text/markdown", "data": "R3LDvMOfZQ=="}}),
        ),
    ] {
        let (server, handle) = sent_to(wire, UserMessage::from("what is it?").with(part)).await;
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("a cat"), "{wire:?}: {outcome:?}");
        assert_eq!(beside(wire, &server), vec![expected], "{wire:?}");
    }
}

/// S5.1: an image alone is something to answer.
#[tokio::test]
async fn an_image_needs_no_text() {
    for wire in WIRES {
        let message = UserMessage::from("").with(Part::image("image/png", PIXEL).unwrap());
        let (server, handle) = sent_to(wire, message).await;
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("a cat"), "{wire:?}: {outcome:?}");
        assert!(server.requests()[0].body.to_string().contains("Zm9vYg=="), "{wire:?}");
    }
}

/// S2.13, S3.7: what a wire does not take is refused before anything is sent, and the receipt says so.
#[tokio::test]
async fn what_a_wire_does_not_take_is_refused_before_anything_is_sent() {
    let file = |kind: &str| Part::file("a.bin", kind, PIXEL).unwrap();
    for (wire, part, named) in [
        (ServedWire::OpenAi, Part::file_at("https://e.com/a.pdf"), "bytes"),
        (ServedWire::OpenAi, file("text/csv"), "PDF"),
        (ServedWire::OpenAi, Part::image("image/tiff", PIXEL).unwrap(), "JPEG"),
        (ServedWire::OpenAi, Part::audio("audio/ogg", PIXEL).unwrap(), "WAV and MP3"),
        (ServedWire::OpenAi, Part::audio_at("https://e.com/a.wav"), "bytes"),
        (ServedWire::Responses, Part::audio("audio/wav", PIXEL).unwrap(), "chat completions do"),
        (ServedWire::Responses, Part::image("image/tiff", PIXEL).unwrap(), "JPEG"),
        (ServedWire::Anthropic, Part::audio("audio/wav", PIXEL).unwrap(), "no sounds"),
        (ServedWire::Anthropic, Part::file("a.txt", "text/plain", &[0xff]).unwrap(), "UTF-8"),
        (ServedWire::Gemini, Part::image("image/gif", PIXEL).unwrap(), "HEIC"),
        (ServedWire::Gemini, Part::audio("audio/midi", PIXEL).unwrap(), "FLAC"),
        (ServedWire::Anthropic, file("application/zip"), "PDF"),
        (ServedWire::Anthropic, Part::image("image/tiff", PIXEL).unwrap(), "JPEG"),
    ] {
        let (server, handle) = sent_to(wire, UserMessage::from("read").with(part)).await;
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        let safepoint::Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert!(
            error.to_string().contains(named) && error.to_string().contains("nothing was sent"),
            "{error}"
        );
        assert_eq!((outcome.ending(), server.requests().len()), (Ending::Failed, 0), "{wire:?}");
        assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::NeverSent);
    }
}

/// What stands in the second request for the one result.
fn result_of(wire: ServedWire, server: &ModelServer) -> Value {
    let body = &server.requests()[1].body;
    match wire {
        ServedWire::OpenAi => json!([body["messages"][2], body["messages"][3]]),
        ServedWire::Anthropic => body["messages"][2]["content"][0]["content"].clone(),
        ServedWire::Responses => body["input"][2]["output"].clone(),
        ServedWire::Gemini => body["contents"][2]["parts"][0]["functionResponse"].clone(),
    }
}

/// S5.1: an image that a tool gives back goes out with its result in each wire's own form: inside it, or
/// behind all results where the wire takes it from people alone. What no provider takes is named in the text.
#[tokio::test]
async fn a_tools_image_goes_out_with_its_result() {
    let image = json!("data:image/png;base64,Zm9vYg==");
    let text = "May\n[the image image/tiff is left out: of images only JPEG, PNG, GIF and WebP are sent]";
    let expected = [
        json!([
            {"role": "tool", "tool_call_id": "c", "content": text},
            {"role": "user", "content": [
                {"type": "text", "text": "[what the call c of chart gave back:]"},
                {"type": "image_url", "image_url": {"url": image}},
            ]},
        ]),
        json!([
            {"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Zm9vYg=="}},
        ]),
        json!([{"type": "input_text", "text": text}, {"type": "input_image", "image_url": image}]),
        // A model that is not known to take it inside gets it in a content behind.
        json!({"id": "c", "name": "chart", "response": {"output": text}}),
    ];
    for (wire, expected) in WIRES.into_iter().zip(expected) {
        let asks = Reply::default().and_call_as("c", "chart", json!({}));
        let server = server([asks, Reply::text("a cat"), Reply::text("on")]).await;
        let chart = || {
            tool::from_fn("chart", "draws", |_cx, (): ()| async {
                let (good, odd) = (Part::image("image/png", PIXEL), Part::image("image/tiff", PIXEL));
                Ok(Output::from("May").with(good.unwrap()).with(odd.unwrap()))
            })
        };
        let handle = builder(&server, wire).tool(chart()).build().run("draw").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("a cat"), "{wire:?}: {outcome:?}");
        assert_eq!(result_of(wire, &server), expected, "{wire:?}");
        let beside = &server.requests()[1].body["contents"][3]["parts"];
        let image = json!([{"inlineData": {"mimeType": "image/png", "data": "Zm9vYg=="}}]);
        assert!(wire != ServedWire::Gemini || *beside == image, "{beside}");
        let stored = serde_json::to_string(outcome.history()).unwrap();
        assert_eq!(&serde_json::from_str::<safepoint::History>(&stored).unwrap(), outcome.history());
        continues(&builder(&server, wire).tool(chart()).build(), &outcome).await;
    }
}

/// S5.1: a value that a tool gives back is its JSON to the model, and a value on the wire that takes values.
#[tokio::test]
async fn a_tools_value_is_a_value_where_the_wire_takes_one() {
    for wire in WIRES {
        let asks = Reply::default().and_call_as("c", "measure", json!({}));
        let server = server([asks, Reply::text("warm")]).await;
        let measure = tool::from_fn("measure", "measures", |_cx, (): ()| async {
            Ok(Output::json(json!({"degrees": 21})))
        });
        let handle = builder(&server, wire).tool(measure).build().run("how warm?").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("warm"), "{wire:?}: {outcome:?}");
        let text = json!(r#"{"degrees":21}"#);
        let result = result_of(wire, &server);
        match wire {
            ServedWire::OpenAi => assert_eq!(result[0]["content"], text),
            ServedWire::Anthropic | ServedWire::Responses => assert_eq!(result, text),
            ServedWire::Gemini => assert_eq!(result["response"], json!({"output": {"degrees": 21}})),
        }
        let Message::Results { results } = &*outcome.history().entries()[2] else { panic!("{outcome:?}") };
        assert_eq!(results[0].structured.as_deref(), Some(&json!({"degrees": 21})));
    }
}

/// S4.7, S12.1: one result has a bounded number of images; that others are left out is said.
#[tokio::test]
async fn a_flood_of_images_is_bounded_and_said() {
    let asks = Reply::call("album", json!({}));
    let server = server([asks, Reply::text("many")]).await;
    let album = tool::from_fn("album", "shows", |_cx, (): ()| async {
        let image = Part::image("image/png", PIXEL).unwrap();
        Ok((0..100).fold(Output::default(), |output, _| output.with(image.clone())))
    });
    let handle = builder(&server, WIRES[1]).tool(album).build().run("show").detach();
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.answer(), Some("many"));
    let result = result_of(WIRES[1], &server);
    assert!(result[0]["text"].as_str().unwrap().contains("84 of 100 images and files left out"), "{result}");
    assert_eq!(result.as_array().unwrap().len(), 17);
}
