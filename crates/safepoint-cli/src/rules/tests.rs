//! What rules fit, and what is said of those that never could.

use serde_json::json;

use super::*;

#[derive(Deserialize)]
struct File {
    rules: Vec<Spanned<Written>>,
}

fn read(text: &str) -> Result<Rules, Usage> {
    let file: File = toml::from_str(text).unwrap();
    Rules::read("config.toml".into(), text, file.rules)
}

fn fits(args: &str, then: &str, given: &Value) -> bool {
    let rules = read(&format!("[[rules]]\ntool = \"x\"\nargs = {args}\nthen = \"{then}\"")).unwrap();
    let star = if then == "allow" { Star::Careful } else { Star::Wide };
    all_fit(&rules.rules[0].args, given, star)
}

/// S8.1: where a `*` allows something it stands for no second command and for no way out of a directory; where it
/// asks or denies, it stands for anything.
#[test]
fn a_star_that_allows_begins_no_other_command() {
    for (command, allowed) in [
        ("git status", true),
        ("git log -3 --stat", true),
        ("git log; rm -rf /", false),
        ("git log && rm x", false),
        ("git log | sh", false),
        ("git log > /etc/passwd", false),
        ("git $(rm x)", false),
        ("git `rm x`", false),
        ("git log\nrm x", false),
        ("git diff ../../other", false),
        ("gitk", false),
        ("x git log", false),
    ] {
        let given = json!({"command": command});
        assert_eq!(fits("{ command = \"git *\" }", "allow", &given), allowed, "{command}");
        assert_eq!(fits("{ command = \"git *\" }", "deny", &given), command.starts_with("git "), "{command}");
        assert_eq!(
            fits("{ command = \"git **\" }", "allow", &given),
            command.starts_with("git "),
            "{command}"
        );
    }
}

/// S8.1: an argument may be text, a number, one of several, or have fields; one that is not given fits nothing.
#[test]
fn arguments_are_looked_at_by_what_they_are() {
    let given =
        json!({"path": "src/main.rs", "count": 5, "force": true, "to": {"host": "a.example"}, "list": ["a"]});
    for (args, fit) in [
        ("{}", true),
        ("{ path = \"src/*\" }", true),
        ("{ path = \"*.rs\", count = 5 }", true),
        ("{ path = \"*.rs\", count = 6 }", false),
        ("{ path = [\"docs/*\", \"src/*\"] }", true),
        ("{ path = [\"docs/*\"] }", false),
        ("{ force = true }", true),
        ("{ force = \"true\" }", true),
        ("{ count = 5.0 }", true),
        ("{ to.host = \"*.example\" }", true),
        ("{ to.port = 1 }", false),
        ("{ list = \"*a*\" }", true),
        ("{ nothing = \"**\" }", false),
    ] {
        assert_eq!(fits(args, "ask", &given), fit, "{args}");
    }
}

/// S1.6: what is wrong with a rule is said with its file, its line, and what to write instead.
#[test]
fn a_wrong_rule_is_placed() {
    let says = |text: &str| read(text).map_or_else(|wrong| wrong.to_string(), |_| String::new());
    let told = says("\n[[rules]]\ntool = \"shell\"\nthen = \"allow\"\nmessage = \"x\"");
    assert!(
        told.contains("config.toml") && told.contains("line 2") && told.contains("then = \"deny\""),
        "{told}"
    );
    assert!(says("[[rules]]\ntool = \" \"\nthen = \"ask\"").contains("\"*\""));
    assert!(
        says("[[rules]]\ntool = \"x\"\nargs.day = 2026-01-02\nthen = \"ask\"").contains("write it as text")
    );
}

/// A pattern of many stars costs no more than its length times the text's.
#[test]
fn many_stars_are_no_burden() {
    let pattern = Pattern::of(&"*a".repeat(200));
    assert!(!pattern.fits(&"a".repeat(199), Star::Wide));
    assert!(pattern.fits(&"a".repeat(10_000), Star::Wide));
}
