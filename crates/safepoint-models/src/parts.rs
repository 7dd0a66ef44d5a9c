//! Images and files as each wire wants them, and what a wire does not take: told before anything is sent.

use safepoint::{
    History,
    history::Entry,
    message::{Part, PartKind, Source, UserMessage},
    model::{ModelError, ModelErrorKind},
};
use serde_json::{Value, json};

/// A part as a wire writes it.
///
/// # Errors
/// Why the wire does not take it.
pub(crate) type Write = fn(&Part) -> Result<Value, &'static str>;

/// Whether the wire takes every part of what would be sent.
///
/// # Errors
/// A refusal that names the first that it does not.
pub(crate) fn fit(history: &History, wire: &str, write: Write) -> Result<(), ModelError> {
    let parts = history.entries().iter().filter_map(|entry| match &**entry {
        Entry::User(message) => Some(&message.parts),
        Entry::Assistant(_) | Entry::Results { .. } => None,
    });
    for part in parts.flatten() {
        if let Err(why) = write(part) {
            let kind = match part.kind {
                PartKind::Image => "image",
                PartKind::File => "file",
            };
            let named = part.name.as_deref().unwrap_or(&part.media_type);
            let message =
                format!("the {wire} wire does not take the {kind} {named}: {why}; nothing was sent");
            return Err(ModelError::new(ModelErrorKind::Refused, message)
                .hint("leave it out, convert it, or take a model on another wire"));
        }
    }
    Ok(())
}

/// Writes a list of the text, if there is any, and the parts; one that is not taken was refused before.
pub(crate) fn list(out: &mut Vec<u8>, message: &UserMessage, text_type: &str, write: Write) {
    let text = Some(&message.text).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| json!({"type": text_type, "text": text}));
    let parts = message.parts.iter().filter_map(|part| write(part).ok());
    let all: Vec<Value> = text.into_iter().chain(parts).collect();
    serde_json::to_writer(out, &all).expect("writing JSON to memory cannot fail");
}

fn data_url(part: &Part, bytes: &str) -> String {
    format!("data:{};base64,{bytes}", part.media_type)
}

fn file_name(part: &Part) -> &str {
    part.name.as_deref().unwrap_or("file")
}

pub(crate) fn chat(part: &Part) -> Result<Value, &'static str> {
    match (part.kind, &part.source) {
        (PartKind::Image, Source::Url(url)) => Ok(json!({"type": "image_url", "image_url": {"url": url}})),
        (PartKind::Image, Source::Base64(bytes)) => {
            Ok(json!({"type": "image_url", "image_url": {"url": data_url(part, bytes)}}))
        }
        (PartKind::File, Source::Base64(bytes)) => Ok(json!({"type": "file",
            "file": {"filename": file_name(part), "file_data": data_url(part, bytes)}})),
        (PartKind::File, Source::Url(_)) => Err("it takes files by their bytes only"),
    }
}

pub(crate) fn responses(part: &Part) -> Result<Value, &'static str> {
    Ok(match (part.kind, &part.source) {
        (PartKind::Image, Source::Url(url)) => json!({"type": "input_image", "image_url": url}),
        (PartKind::Image, Source::Base64(bytes)) => {
            json!({"type": "input_image", "image_url": data_url(part, bytes)})
        }
        (PartKind::File, Source::Url(url)) => json!({"type": "input_file", "file_url": url}),
        (PartKind::File, Source::Base64(bytes)) => {
            json!({"type": "input_file", "filename": file_name(part), "file_data": data_url(part, bytes)})
        }
    })
}

pub(crate) fn anthropic(part: &Part) -> Result<Value, &'static str> {
    const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let kind = match part.kind {
        PartKind::Image => "image",
        PartKind::File => "document",
    };
    let source = match &part.source {
        Source::Url(url) => json!({"type": "url", "url": url}),
        Source::Base64(bytes) => match part.kind {
            PartKind::Image if !IMAGES.contains(&&*part.media_type) => {
                return Err("it takes JPEG, PNG, GIF and WebP");
            }
            PartKind::File if part.media_type != "application/pdf" => {
                return Err("of files it takes PDF; put text into the message");
            }
            PartKind::Image | PartKind::File => {
                json!({"type": "base64", "media_type": part.media_type, "data": &**bytes})
            }
        },
    };
    Ok(match (part.kind, &part.name) {
        (PartKind::File, Some(name)) => json!({"type": kind, "source": source, "title": name}),
        _ => json!({"type": kind, "source": source}),
    })
}

pub(crate) fn gemini(part: &Part) -> Result<Value, &'static str> {
    Ok(match &part.source {
        Source::Base64(bytes) => json!({"inlineData": {"mimeType": part.media_type, "data": &**bytes}}),
        Source::Url(url) if part.media_type.is_empty() => json!({"fileData": {"fileUri": url}}),
        Source::Url(url) => json!({"fileData": {"mimeType": part.media_type, "fileUri": url}}),
    })
}
