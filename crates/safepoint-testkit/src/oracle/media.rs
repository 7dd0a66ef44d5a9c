//! The rules of images, sounds and documents in a request: of which media types each provider takes them.

use serde_json::Value;

use super::{HistoryRule, Violation, list, must, text};

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Judges the parts of a user's message of chat completions.
///
/// # Errors
/// The first violation.
pub(super) fn openai(index: usize, content: &Value) -> Result<(), Violation> {
    for (place, part) in list(content).iter().enumerate() {
        let kind = text(&part["type"]);
        let at = format!("messages[{index}].content[{place}]");
        match kind {
            "text" | "refusal" => {}
            "image_url" => openai_image(index, text(&part["image_url"]["url"]))?,
            "input_audio" => {
                let format = text(&part["input_audio"]["format"]);
                refuse_unless(matches!(format, "wav" | "mp3"), index, || {
                    format!("Invalid value: '{format}'. Supported values are: 'wav' and 'mp3'.")
                })?;
            }
            "file" => {
                let is_pdf = text(&part["file"]["file_data"]).starts_with("data:application/pdf;base64,");
                refuse_unless(is_pdf, index, || {
                    format!(
                        "Invalid file data: '{at}.file'. Expected a file with an application/pdf MIME type."
                    )
                })?;
            }
            _ => refuse_unless(false, index, || {
                format!(
                    "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', and 'file'."
                )
            })?,
        }
    }
    Ok(())
}

/// Judges the parts of a user's message of Responses.
///
/// # Errors
/// The first violation.
pub(super) fn responses(index: usize, content: &Value) -> Result<(), Violation> {
    for part in list(content) {
        let kind = text(&part["type"]);
        let is_known =
            matches!(kind, "input_text" | "input_image" | "input_file" | "output_text" | "refusal");
        refuse_unless(is_known, index, || {
            format!(
                "Invalid value: '{kind}'. Supported values are: 'input_text', 'input_image', and 'input_file'."
            )
        })?;
        if kind == "input_image" {
            openai_image(index, text(&part["image_url"]))?;
        }
    }
    Ok(())
}

fn openai_image(index: usize, url: &str) -> Result<(), Violation> {
    let inside = url.strip_prefix("data:").and_then(|data| data.split(';').next());
    let is_taken = inside.is_none_or(|kind| IMAGES.contains(&kind));
    refuse_unless(is_taken && !url.is_empty(), index, || {
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].".to_owned()
    })
}

/// Judges a block of Anthropic's.
///
/// # Errors
/// The first violation.
pub(super) fn anthropic(index: usize, block: &Value) -> Result<(), Violation> {
    let (kind, source) = (text(&block["type"]), &block["source"]);
    let media = text(&source["media_type"]);
    let is_taken = match (kind, text(&source["type"])) {
        ("image" | "document", "url") => text(&source["url"]).contains("://"),
        ("image", "base64") => IMAGES.contains(&media),
        ("document", "base64") => media == "application/pdf",
        ("document", "text") => media == "text/plain" && !text(&source["data"]).is_empty(),
        ("image" | "document", _) => false,
        _ => true,
    };
    refuse_unless(is_taken, index, || {
        format!(
            "messages.{index}.content.{kind}.source.{}.media_type: Input should be one that is supported",
            text(&source["type"])
        )
    })?;
    let tags = [
        "text",
        "image",
        "document",
        "search_result",
        "tool_result",
        "tool_use",
        "thinking",
        "redacted_thinking",
    ];
    let is_own = kind == "server_tool_use" || kind.ends_with("_tool_result") || kind == "mcp_tool_use";
    refuse_unless(tags.contains(&kind) || is_own, index, || {
        format!(
            "messages.{index}.content: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )
    })
}

/// Judges a part of Gemini's.
///
/// # Errors
/// The first violation.
pub(super) fn gemini(index: usize, part: &Value) -> Result<(), Violation> {
    const TAKEN: [&str; 15] = [
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
        "audio/wav",
        "audio/x-wav",
        "audio/mpeg",
        "audio/mp3",
        "audio/aiff",
        "audio/aac",
        "audio/ogg",
        "audio/flac",
        "application/pdf",
        "application/json",
    ];
    let Some(data) = part["inlineData"].as_object() else { return Ok(()) };
    let media = data.get("mimeType").map(text).unwrap_or_default();
    let is_taken = TAKEN.contains(&media) || media.starts_with("text/") || media.starts_with("video/");
    refuse_unless(is_taken, index, || format!("Unsupported MIME type: {media}"))
}

fn refuse_unless(holds: bool, index: usize, says: impl FnOnce() -> String) -> Result<(), Violation> {
    must(holds, index, HistoryRule::MediaType, says)
}
