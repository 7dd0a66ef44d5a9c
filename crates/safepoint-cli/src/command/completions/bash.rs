//! Completion of bash.

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
                FlagValue::OneOf(words) => {
                    format!("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", words.join(" "))
                }
                FlagValue::Path => "COMPREPLY=($(compgen -f -- \"$word\"))".to_owned(),
                FlagValue::Other => "COMPREPLY=()".to_owned(),
            };
            values.push_str(&format!("        {},--{}) {what}; return ;;\n", node.id, option.long));
        }
        let names = node.subcommands.iter().map(|sub| sub.name.clone());
        let flags = node.options.iter().map(|option| format!("--{}", option.long));
        let all: Vec<String> = names.chain(flags).collect();
        words.push_str(&format!("        {}) words='{}' ;;\n", node.id, all.join(" ")));
    }
    format!(
        "# Completion of safepoint for bash: made by `safepoint completions bash`.
_safepoint() {{
    local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" at=safepoint words='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case \"$at,${{COMP_WORDS[i]}}\" in
{steps}        esac
    done
    case \"$at,$before\" in
{values}    esac
    case \"$at\" in
{words}    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))
}}
complete -o default -F _safepoint safepoint
"
    )
}
