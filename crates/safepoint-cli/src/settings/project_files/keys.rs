//! Which settings are taken from a project: the one table that decides it.

use toml::{Table, Value};

/// What is done with a key of a project's settings. Exhaustive: each key of a config file has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// It cannot weaken anything.
    Always,
    /// With this value, which is the strictest, it cannot weaken anything; another one is never taken.
    Strictest(&'static str),
    /// Each `deny` and `ask` among the rules only adds to what the user wrote; the whole list needs consent where one allows.
    Rules,
    /// Only after a person has agreed to these bytes of the file.
    WithConsent,
    /// Not from a project, for this reason.
    Never(&'static str),
}

/// Every key of a config file.
pub(crate) const KEYS: [(&str, Taking); 28] = [
    ("model", Taking::WithConsent),
    ("base_url", Taking::Never("it decides to whom keys and messages go")),
    ("api_key_env", Taking::Never("it decides which key is sent")),
    ("system", Taking::Never("it would replace yours; write it into AGENTS.md")),
    ("max_tokens", Taking::Always),
    ("temperature", Taking::Always),
    ("window", Taking::Always),
    ("on_full", Taking::Always),
    ("tools", Taking::WithConsent),
    ("parallel", Taking::Always),
    ("approve", Taking::Strictest("deny")),
    ("mode", Taking::Strictest("plan")),
    ("unknown", Taking::Always),
    ("on_restart", Taking::WithConsent),
    ("approval_expiry", Taking::WithConsent),
    ("max_rounds", Taking::WithConsent),
    ("mcp", Taking::WithConsent),
    ("commands", Taking::WithConsent),
    ("rules", Taking::Rules),
    ("secret_files", Taking::Always),
    ("snapshots", Taking::Strictest("true")),
    ("project", Taking::Never("it decides whether a project is read at all")),
    ("keep", Taking::Never("it decides whether your conversations are stored")),
    ("theme", Taking::Never("it is about your terminal")),
    ("notify", Taking::Never("it is about your terminal")),
    ("server", Taking::Never("it decides who may use this machine over HTTP")),
    ("agents", Taking::Never("it decides who may use this machine over HTTP")),
    ("prices", Taking::Never("it would change the costs that you see")),
];

/// What becomes of one key of a file. Exhaustive: it holds, waits for consent, or is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Taken,
    NeedsConsent,
    Refused(String),
}

/// What becomes of each key of a project's file.
pub(crate) fn verdicts(table: &Table, is_trusted: bool) -> Vec<(String, Verdict)> {
    table.iter().map(|(key, value)| (key.clone(), verdict(key, value, is_trusted))).collect()
}

fn verdict(key: &str, value: &Value, is_trusted: bool) -> Verdict {
    let Some((_, taking)) = KEYS.iter().find(|(name, _)| *name == key) else {
        return Verdict::Refused("there is no such key".to_owned());
    };
    match taking {
        Taking::Always => Verdict::Taken,
        Taking::Strictest(only) if is(value, only) => Verdict::Taken,
        Taking::Strictest(only) => Verdict::Refused(format!("a project may only say {only}")),
        Taking::Rules if !allows(value) || is_trusted => Verdict::Taken,
        Taking::WithConsent if is_trusted => Verdict::Taken,
        Taking::Rules | Taking::WithConsent => Verdict::NeedsConsent,
        Taking::Never(why) => Verdict::Refused((*why).to_owned()),
    }
}

fn is(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Boolean(value) => value.to_string() == text,
        _ => false,
    }
}

/// Whether one of these rules allows something, or may: what is not understood allows.
fn allows(rules: &Value) -> bool {
    let stays_strict =
        |rule: &Value| matches!(rule.get("then").and_then(Value::as_str), Some("deny" | "ask"));
    !rules.as_array().is_some_and(|rules| rules.iter().all(stays_strict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, is_trusted: bool) -> Vec<(String, Verdict)> {
        verdicts(&text.parse().unwrap(), is_trusted)
    }

    /// The keys are those of the golden config file, which has all.
    #[test]
    fn every_key_of_a_config_file_is_here() {
        let golden: Table = include_str!("../../../tests/golden/config.toml").parse().unwrap();
        let mut golden: Vec<&str> = golden.keys().map(String::as_str).collect();
        let mut known = KEYS.map(|(key, _)| key);
        golden.sort_unstable();
        known.sort_unstable();
        assert_eq!(golden, known);
    }

    /// S8.25: what could weaken safety is not taken from a project; some of it is never.
    #[test]
    fn what_could_weaken_safety_needs_consent_or_is_refused() {
        for (text, expected) in [
            ("temperature = 0.5", Verdict::Taken),
            ("mode = 'plan'", Verdict::Taken),
            ("approve = 'deny'", Verdict::Taken),
            ("snapshots = true", Verdict::Taken),
            ("[[rules]]\ntool = 'shell'\nthen = 'deny'", Verdict::Taken),
            ("[[rules]]\ntool = 'shell'\nthen = 'allow'", Verdict::NeedsConsent),
            ("[[rules]]\ntool = 'shell'", Verdict::NeedsConsent),
            ("rules = 'all'", Verdict::NeedsConsent),
            ("[mcp.a]\ncommand = 'x'", Verdict::NeedsConsent),
            ("[commands]\nsandbox = 'off'", Verdict::NeedsConsent),
            ("model = 'openai:x'", Verdict::NeedsConsent),
        ] {
            assert_eq!(of(text, false)[0].1, expected, "{text}");
            assert_eq!(of(text, true)[0].1, Verdict::Taken, "{text}");
        }
        for text in [
            "approve = 'auto'",
            "mode = 'edits'",
            "snapshots = false",
            "base_url = 'x'",
            "api_key_env = 'x'",
            "no = 1",
        ] {
            for is_trusted in [false, true] {
                assert!(matches!(of(text, is_trusted)[0].1, Verdict::Refused(_)), "{text}");
            }
        }
    }
}
