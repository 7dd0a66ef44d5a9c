//! What a message looks like, however it is cut into pieces, and what a hostile one costs.

use std::time::Instant;

use unicode_width::UnicodeWidthStr as _;

use super::*;

fn read(text: &str, width: usize, look: &Look) -> Rows {
    let mut markdown = Markdown { look: look.clone(), ..Markdown::default() };
    let mut rows = Rows::default();
    markdown.push(text, width, &mut rows);
    markdown.end(width, &mut rows);
    rows
}

fn shown(text: &str, width: usize) -> Vec<String> {
    read(text, width, &Look::default()).lines.iter().map(ToString::to_string).collect()
}

/// S12.54
#[test]
fn marks_become_styles_and_lone_marks_stay() {
    let row = &read("a **b** `c*d` 2 * 3 * 4 *e", 80, &Look::default()).lines[0];
    assert_eq!(row.to_string(), "a b c*d 2 * 3 * 4 *e");
    assert_eq!((row.spans[3].content.as_ref(), row.spans[3].style), ("c*d", CODE));
    let row = &read("~~gone~~ **a *b* c**", 80, &Look::default()).lines[0];
    assert!(row.spans[0].style.add_modifier.contains(Modifier::CROSSED_OUT));
    assert!(row.spans[3].style.add_modifier.contains(Modifier::BOLD | Modifier::ITALIC), "{row:?}");
}

/// S12.54
#[test]
fn prose_is_wrapped_at_words_and_hangs_below_its_bullet() {
    assert_eq!(shown("- one two three", 9), ["• one two", "  three"]);
    assert_eq!(shown("## one two", 5), ["one", "two"]);
    assert_eq!(shown("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(shown("a\tb c", 6), ["a    b", "c"]);
    assert_eq!(shown("a\nb\n\n\n\nc", 80), ["a", "b", "", "c"]);
    assert_eq!(shown("see **bold**, and", 9), ["see bold,", "and"], "a comma stays with its word");
    assert_eq!(shown("\x1b[2Ja", 80), ["\\u{1b}[2Ja"]);
}

/// S12.54: letters that are wide, or that are joined with others, are counted as they are seen, and never cut.
#[test]
fn wide_and_joined_letters_are_never_cut() {
    assert_eq!(shown("漢字漢字", 5), ["漢字", "漢字"]);
    let family = "👨‍👩‍👧";
    assert_eq!(shown(&family.repeat(3), 4), [family.repeat(2), family.to_owned()]);
    assert_eq!(shown("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
}

/// S12.54
#[test]
fn lists_are_nested_and_tasks_have_boxes() {
    let text = "1. one\n   - two\n     still two\n     * three\n\n   after\n2. four\n- [ ] open\n- [x] done\n-\n- last";
    let expected = [
        "1. one",
        "   • two",
        "     still two",
        "     ◦ three",
        "",
        "   after",
        "2. four",
        "☐ open",
        "☑ done",
        "• ",
        "• last",
    ]
    .map(str::to_owned);
    assert_eq!(shown(text, 80), expected);
}

/// S12.54
#[test]
fn quotes_headings_and_rules_are_shown() {
    let text = "# Title\ntext\n\n> quoted **bold**\n> > inner\n\n---\nunder\n===\n";
    let expected = ["Title", "text", "", "│ quoted bold", "│ │ inner", "", &"─".repeat(40), "under"];
    assert_eq!(shown(text, 60), expected);
    assert_eq!(shown("> one two three", 9), ["│ one two", "│ three"]);
    assert_eq!(shown("2024. a year\nis 1. not a list\n17. either", 60).len(), 3);
}

/// S12.54: code is what was written, in lists and quotes too, whatever is in it.
#[test]
fn code_is_left_as_it_is() {
    let code = "```sh\necho **a** | wc -l   # a long line\n```\n**b**";
    assert_eq!(shown(code, 10), ["echo **a** | wc -l   # a long line", "b"]);
    let inside = "- a\n  ```py\n  def f():\n      return 1\n\n  # x\n  ```\n- b";
    assert_eq!(shown(inside, 10), ["• a", "  def f():", "      return 1", "  ", "  # x", "• b"]);
    assert_eq!(shown("~~~\n```\n- a\n~~~\nb", 10), ["```", "- a", "b"]);
    assert_eq!(shown("````md\n```\nx\n```\n````\nb", 10), ["```", "x", "```", "b"]);
    assert_eq!(shown("```rust\nfn a() {}", 10), ["fn a() {}"], "one that is not closed");
    assert_eq!(shown("    let x;\n    y", 10), ["    let x;", "    y"]);
}

const TABLE: &str = "| Name | What it *does* | Cost |\n|:--|:-:|--:|\n| `one` | stops the turn at a safe point, and waits | 1 |\n| 漢字 | a \\| b | 1200 |\n| x |\n";

/// S12.54
#[test]
fn a_table_is_aligned() {
    let expected = [
        "Name │               What it does                │ Cost",
        "─────┼───────────────────────────────────────────┼─────",
        "one  │ stops the turn at a safe point, and waits │    1",
        "漢字 │                   a | b                   │ 1200",
        "x    │                                           │     ",
    ];
    assert_eq!(
        shown(TABLE, 80).iter().map(|row| row.trim_end().to_owned()).collect::<Vec<_>>(),
        expected.map(|row| row.trim_end().to_owned())
    );
    let narrow = shown(TABLE, 30);
    assert!(narrow.iter().all(|row| row.width() <= 30), "{narrow:#?}");
    assert!(narrow[2].starts_with("one  │ ") && narrow[2].ends_with("│    1"), "{narrow:#?}");
    let list = shown(TABLE, 20);
    assert_eq!(list[0], "• Name: one", "{list:#?}");
    assert!(list.iter().all(|row| row.width() <= 20), "{list:#?}");
    assert_eq!(shown("a | b\nno table", 80), ["a | b", "no table"]);
    assert_eq!(
        shown("text\n| a | b |\n|-|-|\n| 1 | 2 |\nafter", 80),
        ["text", "a │ b", "──┼──", "1 │ 2", "after"]
    );
}

/// S12.54: a table that is too long to be held keeps its columns.
#[test]
fn a_long_table_keeps_its_columns() {
    let row = |number: usize| format!("| {number:05} | {} |\n", "x".repeat(40));
    let text = format!("| a | b |\n|-|-|\n{}", (0..2000).map(row).collect::<String>());
    let rows = shown(&text, 80);
    assert_eq!(rows.len(), 2002);
    let bars: Vec<_> =
        rows.iter().map(|row| row.find(['│', '┼'])).filter(|at| *at != rows[2].find('│')).collect();
    assert!(bars.len() <= 2, "but for the rule, whose letters have more bytes: {bars:?}");
}

/// S12.54: a message is shown the same however it is cut, what is shown never changes, and nothing is held of it at its end.
#[test]
fn pieces_of_any_size_come_to_the_same() {
    let text = format!(
        "# T\n\na **b\nc** d\n\n{TABLE}\n> q\nlazy\n\n1. x\n   ```rs\n   let 漢 = \"\"; // é\n   ```\n2. y\n\n[l](https://a.b) e\u{301}\n---\nend"
    );
    for width in [60, 80, 200, 12] {
        let whole = read(&text, width, &Look::default()).lines;
        for size in 1..40 {
            let mut markdown = Markdown::default();
            let mut rows = Rows::default();
            let letters: Vec<char> = text.chars().collect();
            for piece in letters.chunks(size) {
                let before = rows.lines.clone();
                markdown.push(&piece.iter().collect::<String>(), width, &mut rows);
                assert_eq!(rows.lines[..before.len()], before);
                markdown.begun(width);
            }
            markdown.end(width, &mut rows);
            assert_eq!(rows.lines, whole, "{width} {size}");
            assert!(markdown.begun(width).is_empty());
        }
    }
}

/// S12.56: what a hostile message costs is bounded for each piece of it, and so is what is held.
#[test]
fn a_hostile_message_costs_no_more_than_any_other() {
    let table = format!(
        "|{}\n|{}\n{}",
        "a|".repeat(10_000),
        "-|".repeat(10_000),
        format!("|{}\n", "b|".repeat(10_000)).repeat(5)
    );
    let messages = [
        ("100,000 quotes", ">".repeat(100_000)),
        ("lines of quotes", format!("{}\n", "> ".repeat(2000)).repeat(50)),
        ("nested lists", (0..1000).map(|depth| format!("{}- a\n", " ".repeat(depth))).collect()),
        ("10,000 columns", table),
        ("wide rows", format!("|a|b|\n|-|-|\n{}", format!("|{}|\n", "x ".repeat(4000)).repeat(30))),
        ("a line of 1 MiB", "word ".repeat(210_000)),
        ("a word of 1 MiB", "x".repeat(1 << 20)),
        ("code of 1 MiB", format!("```rust\n{}", "'\"/*$".repeat(210_000))),
        ("a fence that is not closed", format!("```\n{}", "a\n".repeat(50_000))),
        ("combining marks", format!("a{}", "\u{301}".repeat(100_000))),
        ("brackets", "[".repeat(100_000)),
        ("images", "![a](".repeat(20_000)),
        ("emphasis", "*a_ **b_ ~~".repeat(10_000)),
        ("code marks", (1..400).map(|count| format!("a{}", "`".repeat(count))).collect()),
        ("tags", "<a <!-- <?".repeat(10_000)),
        ("references", "&amp;&#1;&#x1b;".repeat(10_000)),
        ("fences of all kinds", "> - 1. ```\n~~~\n> |a|\n|-|\n".repeat(4000)),
    ];
    const PIECE: usize = 64;
    for (name, text) in messages {
        let mut markdown = Markdown::default();
        let (mut held, mut slowest, began) = (0, std::time::Duration::ZERO, Instant::now());
        let mut letters = text.as_str();
        let mut count = 0_usize;
        while !letters.is_empty() {
            let end = (PIECE.min(letters.len())..).find(|end| letters.is_char_boundary(*end)).unwrap();
            let mut rows = Rows::default();
            let at = Instant::now();
            markdown.push(&letters[..end], 80, &mut rows);
            // It is drawn more rarely than text comes; this finds the place where that would be slow.
            if count.is_multiple_of(61) {
                let begun = markdown.begun(80);
                assert!(
                    begun.iter().map(|row| row.to_string().len()).sum::<usize>() < 16 * LONGEST,
                    "{name}"
                );
            }
            slowest = slowest.max(at.elapsed());
            held = held.max(markdown.held());
            letters = &letters[end..];
            count += 1;
        }
        println!(
            "{name}: {} bytes in {:?}, the slowest piece {slowest:?}, at most {held} bytes held",
            text.len(),
            began.elapsed()
        );
        assert!(held <= 4 * LONGEST, "{name}: {held} bytes are held");
        // Without optimisation, beside other tests: a hundred times what it takes.
        assert!(slowest.as_secs() < 2, "{name}: {slowest:?}");
    }
}

impl Markdown {
    /// The bytes of text that are held.
    fn held(&self) -> usize {
        let block = match &self.block {
            Block::None | Block::Code(_) => 0,
            Block::Text(text) => text.len(),
            Block::Table(table) => table.bytes,
        };
        self.partial.len() + block
    }
}
