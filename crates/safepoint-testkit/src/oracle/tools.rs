//! The rules of the tools that a request declares: those of the program have a name and a schema, those of the provider are
//! ones that it has.

use serde_json::{Map, Value};

use super::{HistoryRule, Violation, list, must, text};

/// Judges the tools of a messages request.
///
/// # Errors
/// The first violation.
pub(super) fn anthropic(body: &Value) -> Result<(), Violation> {
    const OWN: [(&str, &[&str]); 2] = [
        (
            "web_search_20250305",
            &["type", "name", "max_uses", "allowed_domains", "blocked_domains", "cache_control"],
        ),
        ("code_execution_20250825", &["type", "name", "cache_control"]),
    ];
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        let Some(kind) = tool["type"].as_str().filter(|kind| *kind != "custom") else {
            let is_whole = !text(&tool["name"]).is_empty() && tool["input_schema"].is_object();
            refuse_unless(is_whole, || format!("tools.{index}.custom.input_schema: Field required"))?;
            continue;
        };
        let known = OWN.iter().find(|(known, _)| *known == kind);
        refuse_unless(known.is_some(), || {
            format!(
                "tools.{index}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
            )
        })?;
        let extra = known.and_then(|(_, fields)| unknown(tool, fields));
        refuse_unless(extra.is_none(), || {
            format!("tools.{index}.{kind}.{}: Extra inputs are not permitted", extra.unwrap_or_default())
        })?;
        let both = !list(&tool["allowed_domains"]).is_empty() && !list(&tool["blocked_domains"]).is_empty();
        refuse_unless(!both, || {
            format!("tools.{index}: Only one of allowed_domains and blocked_domains can be specified")
        })?;
    }
    Ok(())
}

/// Judges the tools of a responses request.
///
/// # Errors
/// The first violation.
pub(super) fn responses(body: &Value) -> Result<(), Violation> {
    const OWN: [(&str, &[&str]); 3] = [
        ("web_search", &["type", "filters", "user_location", "search_context_size"]),
        ("file_search", &["type", "vector_store_ids", "max_num_results", "ranking_options", "filters"]),
        ("code_interpreter", &["type", "container"]),
    ];
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        let kind = text(&tool["type"]);
        let missing = match kind {
            "function" if text(&tool["name"]).is_empty() => Some("name"),
            "file_search" if list(&tool["vector_store_ids"]).is_empty() => Some("vector_store_ids"),
            "code_interpreter" if tool["container"].is_null() => Some("container"),
            _ => None,
        };
        refuse_unless(missing.is_none(), || {
            format!("Missing required parameter: 'tools[{index}].{}'.", missing.unwrap_or_default())
        })?;
        let known = OWN.iter().find(|(known, _)| *known == kind);
        refuse_unless(kind == "function" || known.is_some(), || {
            format!(
                "Invalid value: '{kind}'. Supported values are: 'function', 'file_search', 'web_search', and 'code_interpreter'."
            )
        })?;
        let extra = known.and_then(|(_, fields)| unknown(tool, fields));
        refuse_unless(extra.is_none(), || {
            format!("Unknown parameter: 'tools[{index}].{}'.", extra.unwrap_or_default())
        })?;
    }
    Ok(())
}

/// Judges the tools of a chat-completions request: it has no other than functions.
///
/// # Errors
/// The first violation.
pub(super) fn openai(body: &Value) -> Result<(), Violation> {
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        let kind = text(&tool["type"]);
        refuse_unless(matches!(kind, "function" | "custom"), || {
            format!("Invalid value: '{kind}'. Supported values are: 'function' and 'custom'.")
        })?;
        let is_named = kind != "function" || !text(&tool["function"]["name"]).is_empty();
        refuse_unless(is_named, || format!("Missing required parameter: 'tools[{index}].function.name'."))?;
    }
    Ok(())
}

/// Judges the tools of a `generateContent` request.
///
/// # Errors
/// The first violation.
pub(super) fn gemini(body: &Value) -> Result<(), Violation> {
    const KINDS: [&str; 6] =
        ["functionDeclarations", "googleSearch", "codeExecution", "fileSearch", "urlContext", "googleMaps"];
    let tools = list(&body["tools"]);
    for (index, tool) in tools.iter().enumerate() {
        let extra = unknown(tool, &KINDS);
        refuse_unless(extra.is_none(), || {
            format!(
                "Invalid JSON payload received. Unknown name \"{}\" at 'tools[{index}]': Cannot find field.",
                extra.unwrap_or_default()
            )
        })?;
    }
    let own = tools.iter().any(|tool| tool["functionDeclarations"].is_null());
    let functions = tools.iter().any(|tool| tool["functionDeclarations"].is_array());
    let is_enabled = body["toolConfig"]["includeServerSideToolInvocations"] == true;
    refuse_unless(!(own && functions) || is_enabled, || {
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
            .to_owned()
    })
}

fn unknown<'t>(tool: &'t Value, known: &[&str]) -> Option<&'t str> {
    let fields = tool.as_object().into_iter().flat_map(Map::keys);
    fields.map(String::as_str).find(|field| !known.contains(field))
}

fn refuse_unless(holds: bool, says: impl FnOnce() -> String) -> Result<(), Violation> {
    must(holds, 0, HistoryRule::ToolDeclaration, says)
}
