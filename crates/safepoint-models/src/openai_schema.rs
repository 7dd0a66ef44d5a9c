//! Which models of OpenAI's take a JSON Schema for their answer, and what is asked of it: the same on both of its wires.

use crate::strict_schema::StrictRules;

/// Whether a model of OpenAI's is known to take a schema: from the GPT-4o of August 2024 on.
pub(crate) fn takes_schemas(model: &str) -> bool {
    const FAMILIES: [&str; 6] = ["gpt-4o", "gpt-4.1", "gpt-4.5", "o1", "o3", "o4"];
    const OTHERS: [&str; 8] =
        ["2024-05-13", "audio", "realtime", "search", "transcribe", "tts", "o1-mini", "o1-preview"];
    let generation =
        model.strip_prefix("gpt-").and_then(|rest| rest.split(['-', '.']).next()?.parse::<u32>().ok());
    let is_known = FAMILIES.iter().any(|family| model.starts_with(family))
        || generation.is_some_and(|number| number >= 5);
    is_known && !OTHERS.iter().any(|other| model.contains(other))
}

/// What OpenAI asks of a schema.
pub(crate) const STRICT: StrictRules =
    StrictRules { is_closed: true, is_all_required: true, may_recur: true };
