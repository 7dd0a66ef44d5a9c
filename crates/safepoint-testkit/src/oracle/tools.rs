//! The rules of the tools that a request declares: those of the program have a name and a schema, those of the provider are
//! ones that it has.
//!
//! What a provider has is listed whole, from its own SDKs (`anthropic` 2.13 and `openai` 3.57 on PyPI): agents of others are
//! run against these rules too, and declare more than our wires do. The settings of a tool are judged where a wire of ours
//! sends them.

use serde_json::{Map, Value};

use super::{HistoryRule, Violation, list, must, text};

/// The tools of Anthropic that no wire of ours declares.
const OF_ANTHROPIC: [&str; 27] = [
    "advisor_20260301",
    "bash_20241022",
    "bash_20250124",
    "browser_toolset_20260801",
    "code_execution_20250522",
    "code_execution_20260120",
    "code_execution_20260521",
    "computer_20241022",
    "computer_20250124",
    "computer_20251124",
    "computer_toolset_20260801",
    "mcp_toolset",
    "memory_20250818",
    "text_editor_20241022",
    "text_editor_20250124",
    "text_editor_20250429",
    "text_editor_20250728",
    "tool_search_tool_bm25",
    "tool_search_tool_bm25_20251119",
    "tool_search_tool_regex",
    "tool_search_tool_regex_20251119",
    "web_fetch_20250910",
    "web_fetch_20260209",
    "web_fetch_20260309",
    "web_fetch_20260318",
    "web_search_20260209",
    "web_search_20260318",
];

/// The tools of OpenAI Responses.
const OF_RESPONSES: [&str; 18] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "custom",
    "file_search",
    "function",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "programmatic_tool_calling",
    "shell",
    "tool_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
];

/// Judges the tools of a messages request.
///
/// # Errors
/// The first violation.
pub(super) fn anthropic(body: &Value) -> Result<(), Violation> {
    const OWN: [(&str, &[&str]); 2] = [
        (
            "web_search_20250305",
            &[
                "type",
                "name",
                "max_uses",
                "allowed_domains",
                "blocked_domains",
                "user_location",
                "allowed_callers",
                "cache_control",
                "defer_loading",
                "strict",
            ],
        ),
        (
            "code_execution_20250825",
            &["type", "name", "allowed_callers", "cache_control", "defer_loading", "strict"],
        ),
    ];
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        let Some(kind) = tool["type"].as_str().filter(|kind| *kind != "custom") else {
            let is_whole = !text(&tool["name"]).is_empty() && tool["input_schema"].is_object();
            refuse_unless(is_whole, || format!("tools.{index}.custom.input_schema: Field required"))?;
            continue;
        };
        let known = OWN.iter().find(|(known, _)| *known == kind);
        refuse_unless(known.is_some() || OF_ANTHROPIC.contains(&kind), || {
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
        ("web_search", &["type", "filters", "user_location", "search_context_size", "external_web_access"]),
        ("file_search", &["type", "vector_store_ids", "max_num_results", "ranking_options", "filters"]),
        ("code_interpreter", &["type", "container", "allowed_callers"]),
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
        refuse_unless(known.is_some() || OF_RESPONSES.contains(&kind), || {
            let named: Vec<String> = OF_RESPONSES.iter().map(|kind| format!("'{kind}'")).collect();
            format!("Invalid value: '{kind}'. Supported values are: {}.", named.join(", "))
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
