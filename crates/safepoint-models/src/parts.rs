//! Images, sounds and files as each wire wants them, and an error before anything is sent for what a wire does not take.

use std::{borrow::Cow, sync::Arc};

use safepoint::{
    history::Message,
    message::{CallResult, Part, PartKind, PartSource},
    model::{ModelError, ModelErrorKind},
};
use serde_json::{Value, json};

/// A part as a wire writes it.
///
/// # Errors
/// Why the wire does not take it.
pub(crate) type Write = fn(&Part) -> Result<Value, &'static str>;

/// Whether the wire takes every part of these entries, which would be sent.
///
/// # Errors
/// A refusal that names the first that it does not.
pub(crate) fn fit<'a>(
    entries: impl Iterator<Item = &'a Arc<Message>>,
    wire: &str,
    write: Write,
) -> Result<(), ModelError> {
    let parts = entries.filter_map(|entry| match &**entry {
        Message::User(message) => Some(&message.parts),
        Message::Assistant(_) | Message::Results { .. } => None,
    });
    for part in parts.flatten() {
        if let Err(why) = write(part) {
            let named = named(part);
            let message = format!("the {wire} wire does not take the {named}: {why}; nothing was sent");
            return Err(ModelError::new(ModelErrorKind::Refused, message)
                .with_hint("leave it out, convert it, or take a model on another wire"));
        }
    }
    Ok(())
}

fn named(part: &Part) -> String {
    let kind = match part.kind {
        PartKind::Image => "image",
        PartKind::File => "file",
        PartKind::Audio => "sound",
    };
    format!("{kind} {}", part.name.as_deref().unwrap_or(&part.media_type)).trim_end().to_owned()
}

/// Writes a list of the text, if there is any, and the parts; one that is not taken was refused before.
pub(crate) fn list(out: &mut Vec<u8>, text: (&str, &str), parts: impl IntoIterator<Item = Value>) {
    let (kind, text) = text;
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| json!({"type": kind, "text": text}));
    let all: Vec<Value> = text.into_iter().chain(parts).collect();
    serde_json::to_writer(out, &all).expect("writing JSON to memory cannot fail");
}

/// Those of a message's parts that the wire takes; of a person's message every other was refused before.
pub(crate) fn taken(parts: &[Part], write: Write) -> impl Iterator<Item = Value> {
    parts.iter().filter_map(move |part| write(part).ok())
}

/// What a model gets of a call's result: the text, and those of its parts that the wire takes. That others are left
/// out stands in the text: a result cannot be refused, since a conversation would end with it.
pub(crate) fn of_result(result: &CallResult, write: Write) -> (Cow<'_, str>, Vec<Value>) {
    let mut text = Cow::Borrowed(result.text.as_str());
    let mut parts = Vec::new();
    for part in &result.parts {
        match common(part).and_then(|()| write(part)) {
            Ok(written) => parts.push(written),
            Err(why) => {
                let text = text.to_mut();
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&format!("[the {} is left out: {why}]", named(part)));
            }
        }
    }
    (text, parts)
}

/// What every provider reads that takes pictures and documents at all.
fn common(part: &Part) -> Result<(), &'static str> {
    match (part.kind, &part.source) {
        (PartKind::Image, PartSource::Base64(_)) if !IMAGES.contains(&&*part.media_type) => {
            Err("of images only JPEG, PNG, GIF and WebP are sent")
        }
        (PartKind::File, PartSource::Base64(_)) if part.media_type != PDF => Err("of files only PDF is sent"),
        (PartKind::Audio, _) => Err("no sound is sent with a result"),
        _ => Ok(()),
    }
}

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const PDF: &str = "application/pdf";

fn data_url(part: &Part, bytes: &str) -> String {
    format!("data:{};base64,{bytes}", part.media_type)
}

fn file_name(part: &Part) -> &str {
    part.name.as_deref().unwrap_or("file")
}

/// OpenAI's wires take these images alone.
fn openai_image(part: &Part) -> Result<(), &'static str> {
    let is_known = IMAGES.contains(&&*part.media_type) || matches!(part.source, PartSource::Url(_));
    is_known.then_some(()).ok_or("of images it takes JPEG, PNG, GIF and WebP")
}

pub(crate) fn chat(part: &Part) -> Result<Value, &'static str> {
    match (part.kind, &part.source) {
        (PartKind::Image, _) => openai_image(part)?,
        (PartKind::File, PartSource::Base64(_)) if part.media_type != PDF => {
            return Err("of files it takes PDF; put text into the message");
        }
        (PartKind::File | PartKind::Audio, _) => {}
    }
    match (part.kind, &part.source) {
        (PartKind::Image, PartSource::Url(url)) => {
            Ok(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        (PartKind::Image, PartSource::Base64(bytes)) => {
            Ok(json!({"type": "image_url", "image_url": {"url": data_url(part, bytes)}}))
        }
        (PartKind::File, PartSource::Base64(bytes)) => Ok(json!({"type": "file",
            "file": {"filename": file_name(part), "file_data": data_url(part, bytes)}})),
        (PartKind::File, PartSource::Url(_)) => Err("it takes files by their bytes only"),
        (PartKind::Audio, PartSource::Url(_)) => Err("it takes sounds by their bytes only"),
        (PartKind::Audio, PartSource::Base64(bytes)) => {
            let format = match &*part.media_type {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return Err("of sounds it takes WAV and MP3"),
            };
            Ok(json!({"type": "input_audio", "input_audio": {"data": &**bytes, "format": format}}))
        }
    }
}

pub(crate) fn responses(part: &Part) -> Result<Value, &'static str> {
    if part.kind == PartKind::Image {
        openai_image(part)?;
    }
    Ok(match (part.kind, &part.source) {
        (PartKind::Image, PartSource::Url(url)) => json!({"type": "input_image", "image_url": url}),
        (PartKind::Image, PartSource::Base64(bytes)) => {
            json!({"type": "input_image", "image_url": data_url(part, bytes)})
        }
        (PartKind::File, PartSource::Url(url)) => json!({"type": "input_file", "file_url": url}),
        (PartKind::File, PartSource::Base64(bytes)) => {
            json!({"type": "input_file", "filename": file_name(part), "file_data": data_url(part, bytes)})
        }
        (PartKind::Audio, _) => return Err("it takes no sounds; chat completions do"),
    })
}

pub(crate) fn anthropic(part: &Part) -> Result<Value, &'static str> {
    let kind = match part.kind {
        PartKind::Image => "image",
        PartKind::File => "document",
        PartKind::Audio => return Err("it takes no sounds"),
    };
    let source = match &part.source {
        PartSource::Url(url) => json!({"type": "url", "url": url}),
        PartSource::Base64(bytes) => match part.kind {
            PartKind::Image if !IMAGES.contains(&&*part.media_type) => {
                return Err("it takes JPEG, PNG, GIF and WebP");
            }
            PartKind::File if part.media_type != PDF => match part.text() {
                Some(text) => json!({"type": "text", "media_type": "text/plain", "data": text}),
                None => return Err("of files it takes PDF and text in UTF-8"),
            },
            PartKind::Image | PartKind::File | PartKind::Audio => {
                json!({"type": "base64", "media_type": part.media_type, "data": &**bytes})
            }
        },
    };
    Ok(match (part.kind, &part.name) {
        (PartKind::File, Some(name)) => json!({"type": kind, "source": source, "title": name}),
        _ => json!({"type": kind, "source": source}),
    })
}

/// Nothing at all.
pub(crate) fn none_with_an_error(_: &Part) -> Result<Value, &'static str> {
    Err("it takes none with an error")
}

pub(crate) fn gemini(part: &Part) -> Result<Value, &'static str> {
    const IMAGES: [&str; 5] = ["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"];
    const SOUNDS: [&str; 8] = [
        "audio/wav",
        "audio/x-wav",
        "audio/mpeg",
        "audio/mp3",
        "audio/aiff",
        "audio/aac",
        "audio/ogg",
        "audio/flac",
    ];
    match (part.kind, &part.source) {
        (PartKind::Image, PartSource::Base64(_)) if !IMAGES.contains(&&*part.media_type) => {
            return Err("of images it takes JPEG, PNG, WebP, HEIC and HEIF");
        }
        (PartKind::Audio, PartSource::Base64(_)) if !SOUNDS.contains(&&*part.media_type) => {
            return Err("of sounds it takes WAV, MP3, AIFF, AAC, OGG and FLAC");
        }
        (PartKind::Image | PartKind::Audio | PartKind::File, _) => {}
    }
    Ok(match &part.source {
        PartSource::Base64(bytes) => json!({"inlineData": {"mimeType": part.media_type, "data": &**bytes}}),
        PartSource::Url(url) if part.media_type.is_empty() => json!({"fileData": {"fileUri": url}}),
        PartSource::Url(url) => json!({"fileData": {"mimeType": part.media_type, "fileUri": url}}),
    })
}

/// Inside a function response, which models take from Gemini 3 on: bytes only.
pub(crate) fn gemini_result(part: &Part) -> Result<Value, &'static str> {
    match &part.source {
        PartSource::Url(_) => Err("it takes a result's images and files by their bytes only"),
        PartSource::Base64(_) => gemini_beside(part),
    }
}

/// The same with an older model, which gets them in a content of their own.
pub(crate) fn gemini_beside(part: &Part) -> Result<Value, &'static str> {
    match &part.source {
        PartSource::Base64(_) if part.media_type == "image/gif" => Err("it takes JPEG, PNG and WebP"),
        PartSource::Base64(_) | PartSource::Url(_) => gemini(part),
    }
}
