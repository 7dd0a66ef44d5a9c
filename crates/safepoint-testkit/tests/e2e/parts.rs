//! Images and files beside what a person says, as each wire wants them; what a wire does not take is not sent.

use safepoint::{
    RunHandle,
    history::Entry,
    message::{Part, UserMessage},
    receipt::{Ending, ModelState},
};
use safepoint_testkit::{
    script::Reply,
    server::{ModelServer, Wire},
};
use serde_json::{Value, json};

use super::world::{Ledger, WIRES, builder, close, goes_on, server};

const PIXEL: &[u8] = b"foob";

/// What stands in the request beside the text.
fn beside(wire: Wire, server: &ModelServer) -> Vec<Value> {
    let body = &server.requests()[0].body;
    let list = match wire {
        Wire::OpenAi | Wire::Anthropic => &body["messages"][0]["content"],
        Wire::Responses => &body["input"][0]["content"],
        Wire::Gemini => &body["contents"][0]["parts"],
    };
    let all = list.as_array().unwrap().clone();
    assert!(all[0]["text"] == "what is it?", "{wire:?}: {all:?}");
    all[1..].to_vec()
}

async fn told(wire: Wire, message: UserMessage) -> (ModelServer, RunHandle) {
    let server = server([Reply::text("a cat"), Reply::text("on")]).await;
    let handle = builder(&server, wire).build().run(message).detach();
    (server, handle)
}

/// S5.1: bytes and addresses go out in each wire's own form, behind the text, and the conversation goes on.
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
        let (server, handle) = told(wire, message.clone()).await;
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("a cat"), "{wire:?}: {outcome:?}");
        assert_eq!(beside(wire, &server), expected, "{wire:?}");
        let stored = serde_json::to_string(outcome.history()).unwrap();
        let read: safepoint::History = serde_json::from_str(&stored).unwrap();
        assert_eq!(*read.entries()[0], Entry::User(message));
        goes_on(&builder(&server, wire).build(), &outcome).await;
    }
}

/// S5.1: an image alone is something to answer.
#[tokio::test]
async fn an_image_needs_no_text() {
    for wire in WIRES {
        let message = UserMessage::from("").with(Part::image("image/png", PIXEL).unwrap());
        let (server, handle) = told(wire, message).await;
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
        (Wire::OpenAi, Part::file_at("https://e.com/a.pdf"), "bytes"),
        (Wire::Anthropic, file("application/zip"), "PDF"),
        (Wire::Anthropic, Part::image("image/tiff", PIXEL).unwrap(), "JPEG"),
    ] {
        let (server, handle) = told(wire, UserMessage::from("read").with(part)).await;
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
