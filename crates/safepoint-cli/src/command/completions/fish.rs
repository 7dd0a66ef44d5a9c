//! Completion of fish.

use super::tree::{FlagValue, Tree};

pub(super) fn script(tree: &Tree) -> String {
    let (mut steps, mut rows) = (String::new(), String::new());
    for node in &tree.nodes {
        let at = &node.id;
        for sub in &node.subcommands {
            steps.push_str(&format!(
                "            case '{at},{}'\n                set at {}\n",
                sub.name, sub.id
            ));
            let (name, help) = (&sub.name, quoted(&sub.help));
            rows.push_str(&format!(
                "complete -c safepoint -n '__safepoint_at {at}' -f -a {name} -d {help}\n"
            ));
        }
        for option in &node.options {
            let value = match &option.value {
                FlagValue::None => String::new(),
                FlagValue::OneOf(words) => format!(" -x -a '{}'", words.join(" ")),
                FlagValue::Path => " -r -F".to_owned(),
                FlagValue::Other => " -x".to_owned(),
            };
            let (long, help) = (&option.long, quoted(&option.help));
            rows.push_str(&format!(
                "complete -c safepoint -n '__safepoint_at {at}' -l {long}{value} -d {help}\n"
            ));
        }
    }
    format!(
        "# Completion of safepoint for fish: made by `safepoint completions fish`.
function __safepoint_at
    set -l at safepoint
    for word in (commandline -opc)[2..-1]
        switch \"$at,$word\"
{steps}        end
    end
    test $at = $argv[1]
end
{rows}"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
