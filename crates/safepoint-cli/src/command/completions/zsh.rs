//! Completion of zsh.

use super::tree::{FlagValue, Tree};

pub(super) fn script(tree: &Tree) -> String {
    let (mut steps, mut values, mut words) = (String::new(), String::new(), String::new());
    for node in &tree.nodes {
        for sub in &node.subcommands {
            steps.push_str(&format!("            {},{}) at={} ;;\n", node.id, sub.name, sub.id));
        }
        for option in &node.options {
            let what = match &option.value {
                FlagValue::None => continue,
                FlagValue::OneOf(words) => format!("compadd -- {}", words.join(" ")),
                FlagValue::Path => "_files".to_owned(),
                FlagValue::Other => "_message value".to_owned(),
            };
            values.push_str(&format!("        {},--{}) {what}; return ;;\n", node.id, option.long));
        }
        let subs = node.subcommands.iter().map(|sub| described(&sub.name, &sub.help));
        let flags = node.options.iter().map(|option| described(&format!("--{}", option.long), &option.help));
        let (subs, flags): (Vec<_>, Vec<_>) = (subs.collect(), flags.collect());
        words.push_str(&format!(
            "        {}) subs=({}); flags=({}) ;;\n",
            node.id,
            subs.join(" "),
            flags.join(" ")
        ));
    }
    format!(
        "#compdef safepoint
# Completion of safepoint for zsh: made by `safepoint completions zsh`.
_safepoint() {{
    local at=safepoint i
    local -a subs flags
    for ((i = 2; i < CURRENT; i++)); do
        case \"$at,${{words[i]}}\" in
{steps}        esac
    done
    case \"$at,${{words[CURRENT-1]}}\" in
{values}    esac
    case \"$at\" in
{words}    esac
    if [[ ${{words[CURRENT]}} == -* ]]; then
        _describe -o flag flags
    elif (( ${{#subs}} )); then
        _describe command subs
    else
        _files
    fi
}}
if [ \"$funcstack[1]\" = _safepoint ]; then
    _safepoint \"$@\"
else
    compdef _safepoint safepoint
fi
"
    )
}

/// `name:help`, in quotes.
fn described(name: &str, help: &str) -> String {
    let text = format!("{}:{}", name.replace(':', "\\:"), help.replace(':', "\\:"));
    format!("'{}'", text.replace('\'', "'\\''"))
}
