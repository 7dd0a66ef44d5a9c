//! What rules match, and the errors for rules that never could.

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
    fits_of("x", args, then, given)
}

fn fits_of(tool: &str, args: &str, then: &str, given: &Value) -> bool {
    let rules = read(&format!("[[rules]]\ntool = \"{tool}\"\nargs = {args}\nthen = \"{then}\"")).unwrap();
    let rule = &rules.rules[0];
    all_fit(&rule.args, given, |arg| rule.reading(arg))
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

/// S8.7: a `*` inside a word stays in it, and stands for nothing that a shell would read as anything but itself.
#[test]
fn a_star_inside_a_word_does_not_climb() {
    for (command, allowed) in [
        ("cat docs/a.txt", true),
        ("cat docs/a/b.txt", true),
        ("cat docs/", true),
        ("cat docs/.''./.''./x", false),
        ("cat docs/.\"\"./x", false),
        ("cat docs/.?/.?/etc/hostname", false),
        ("cat docs/.[.]/x", false),
        ("cat docs/{.,a}./x", false),
        ("cat docs/a /etc/hostname", false),
        ("cat docs/a\t/etc/hostname", false),
        ("cat docs/a\u{a0}/etc/hostname", false),
        ("cat docs/~root/x", false),
        ("cat docs/\\.\\./x", false),
        ("cat docs/../x", false),
        ("cat docs/a/..", false),
        ("cat docs/$HOME", false),
        ("cat docs/$(id)", false),
        ("cat docs/`id`", false),
        ("cat docs/a;id", false),
        ("cat docs/a\nid", false),
        ("cat docs/a>b", false),
        ("cat docs/a #b", false),
    ] {
        let given = json!({"command": command});
        assert_eq!(fits("{ command = \"cat docs/*\" }", "allow", &given), allowed, "{command}");
    }
    for (pattern, command, allowed) in [
        ("cat docs/.*", "cat docs/../x", false),
        ("cat docs/.*", "cat docs/.a", true),
        ("cat '.'*", "cat '.'./x", false),
        ("cat ../shared/*", "cat ../shared/x", true),
        ("cat ../shared/*", "cat ../shared/../x", false),
        ("cat *.md", "cat a.md", true),
        ("cat *.md", "cat /etc/a.md", false),
        ("cat *.md", "cat a.md /etc/b.md", false),
        ("cat *", "cat a.md b.md", true),
        ("cat *", "cat ~/a", false),
        ("cat *", "cat a ../b", false),
        ("echo *", "echo --target-dir=../x", false),
        ("echo *", "echo --d=..", false),
        ("echo *", "echo x=..", false),
        ("echo *", "echo a:..", false),
        ("echo *", "echo a,../b", false),
        ("echo *", "echo a@../x", false),
        ("echo *", "echo -C..", false),
        ("echo *", "echo -I../x", false),
        ("echo *", "echo v1..v2", true),
        ("ls --x=*", "ls --x=../a", false),
        ("cd web && npm run *", "cd web && npm run build", true),
        ("cd web && npm run *", "cd web && npm run build && id", false),
        ("grep -e \\\"a b\\\" src/*", "grep -e \"a b\" src/x", true),
        ("grep -e \\\"a b\\\" src/*", "grep -e \"a  b\" src/x", false),
        ("npm * --silent", "npm run build --silent", true),
        ("npm * --silent", "npm --silent", false),
        ("* --version", "ls --version", true),
        ("* --version", "LD_PRELOAD=x ls --version", false),
        ("cd web && * build", "cd web && npm build", true),
        ("cd web && * build", "cd web && PATH=/tmp npm build", false),
        ("env *", "env A=1 ls", true),
    ] {
        let args = format!("{{ command = \"{pattern}\" }}");
        assert_eq!(fits(&args, "allow", &json!({"command": command})), allowed, "{pattern}: {command}");
    }
}

/// S8.7: a path of the file tools is read by no shell; an address is matched part by part.
#[test]
fn a_star_of_a_path_or_an_address_stays_where_it_is() {
    for (path, allowed) in
        [("docs/my file.md", true), ("docs/ä/ö.md", true), ("docs/../x", false), ("docs/a/../../x", false)]
    {
        let given = json!({"path": path});
        assert_eq!(fits_of("read_file", "{ path = \"docs/*\" }", "allow", &given), allowed, "{path}");
    }
    for (pattern, url, allowed) in [
        ("https://docs.rs/*", "https://docs.rs/tokio?a=b&c=d", true),
        ("https://docs.rs/*", "https://docs.rs", true),
        ("https://docs.rs/*", "http://docs.rs/a", false),
        ("https://docs.rs/*", "https://docs.rs@evil.example/a", false),
        ("https://docs.rs/*", "https://docs.rs.evil.example/a", false),
        ("https://docs.rs/tokio/*", "https://docs.rs/tokio/../x", false),
        ("https://docs.rs/tokio/*", "https://docs.rs/tokio/%2e%2E/x", false),
        ("https://*.example/*", "https://a.b.example/x", true),
        ("https://*.example/*", "https://evil.org/.example/x", false),
        ("https://*.example/*", "https://evil.org?.example/x", false),
        ("https://*.example/*", "https://evil.org\\.example/x", false),
        ("http://localhost:*/*", "http://localhost:8080/x", true),
        ("http://localhost:*/*", "http://localhost:80@evil.org/x", false),
        ("*", "https://evil.org/", true),
    ] {
        let args = format!("{{ url = \"{pattern}\" }}");
        let allows = fits_of("http_get", &args, "allow", &json!({"url": url}));
        assert_eq!(allows, allowed, "{pattern}: {url}");
    }
}

/// S8.7, S1.6: a rule whose stars cannot be judged would never allow anything: that is a mistake, with what to write.
#[test]
fn a_star_that_cannot_be_judged_is_a_mistake() {
    for (tool, args) in [
        ("shell", "command = \"echo $*\""),
        ("shell", "command = \"cat ~/*\""),
        ("shell", "command = [\"true\", \"echo {*}\"]"),
        ("http_get", "url = \"*.example\""),
        ("http_get", "url = \"https://docs.rs*\""),
    ] {
        let rule =
            |then: &str| format!("[[rules]]\ntool = \"{tool}\"\nargs = {{ {args} }}\nthen = \"{then}\"");
        let wrong = read(&rule("allow")).err().map(|wrong| wrong.to_string()).unwrap_or_default();
        assert!(wrong.contains("cannot be judged"), "{args}: {wrong}");
        assert!(read(&rule("deny")).is_ok(), "{args}");
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
    let error = says("\n[[rules]]\ntool = \"shell\"\nthen = \"allow\"\nmessage = \"x\"");
    assert!(
        error.contains("config.toml") && error.contains("line 2") && error.contains("then = \"deny\""),
        "{error}"
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
    assert!(!Reading::Anything.fits(&pattern, &"a".repeat(199)));
    assert!(Reading::Anything.fits(&pattern, &"a".repeat(10_000)));
    let pattern = Pattern::of(&"* ".repeat(200));
    assert!(Reading::Words.fits(&pattern, &"a ".repeat(5_000)));
}
