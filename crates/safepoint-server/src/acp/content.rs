//! The blocks of a prompt as the text of an item.

use serde_json::Value;

use super::message::Refusal;

/// The text of a prompt.
///
/// # Errors
/// If it is no prompt, or has a block that this agent does not take.
pub(super) fn text(prompt: &Value) -> Result<String, Refusal> {
    let Some(blocks) = prompt.as_array() else {
        return Err(Refusal::params("`prompt` is a list of content blocks"));
    };
    let parts = blocks.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    Ok(parts.concat())
}

fn part(block: &Value) -> Result<String, Refusal> {
    let field = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let lacks = |name: &str| Refusal::params(format!("a content block lacks `{name}`"));
    match block["type"].as_str() {
        Some("text") => field(block, "text").ok_or_else(|| lacks("text")),
        Some("resource_link") => {
            let uri = field(block, "uri").ok_or_else(|| lacks("uri"))?;
            let name = field(block, "name").unwrap_or_else(|| uri.clone());
            Ok(format!("[{name}]({uri})"))
        }
        Some("resource") => {
            let resource = &block["resource"];
            let uri = field(resource, "uri").ok_or_else(|| lacks("uri"))?;
            let text = field(resource, "text").ok_or_else(|| {
                Refusal::params(format!("{uri} is no text, which this agent does not take"))
            })?;
            Ok(format!("\n<resource uri=\"{uri}\">\n{text}\n</resource>\n"))
        }
        Some(kind) => Err(Refusal::params(format!("this agent takes no `{kind}` in a prompt"))),
        None => Err(lacks("type")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S13.17
    #[test]
    fn a_prompt_is_one_text() {
        let prompt = json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs"},
            {"type": "resource", "resource": {"uri": "file:///b.rs", "text": "fn b() {}"}},
        ]);
        let text = text(&prompt).unwrap();
        assert_eq!(
            text,
            "Look at [a.rs](file:///a.rs)\n<resource uri=\"file:///b.rs\">\nfn b() {}\n</resource>\n"
        );
    }

    #[test]
    fn what_is_not_taken_is_refused() {
        for prompt in [
            json!("text"),
            json!([{"type": "image", "data": "", "mimeType": "image/png"}]),
            json!([{"type": "text"}]),
            json!([{"type": "resource", "resource": {"uri": "file:///c.png", "blob": ""}}]),
        ] {
            assert!(text(&prompt).is_err(), "{prompt}");
        }
    }
}
