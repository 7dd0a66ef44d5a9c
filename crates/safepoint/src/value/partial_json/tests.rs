//! Beginnings of documents, and what is certain of each.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn of(text: &str) -> Option<Value> {
    PartialJson::of(text).value()
}

/// Whether each value in `partial` stands in `whole` at its place, save one text, which is a beginning.
fn begins(partial: &Value, whole: &Value, unfinished: &mut u32) -> bool {
    match (partial, whole) {
        (Value::String(partial), Value::String(whole)) => {
            *unfinished += u32::from(partial != whole);
            whole.starts_with(partial.as_str())
        }
        (Value::Array(partial), Value::Array(whole)) => {
            partial.len() <= whole.len()
                && partial.iter().zip(whole).all(|(one, other)| begins(one, other, unfinished))
        }
        (Value::Object(partial), Value::Object(whole)) => partial
            .iter()
            .all(|(name, one)| whole.get(name).is_some_and(|other| begins(one, other, unfinished))),
        (partial, whole) => partial == whole,
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[a-z\"\\\\\n é]{0,6}", Just("\u{1f600}x\u{1f4a9}".to_owned()), Just("\u{7}".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|fields| Map::from_iter(fields).into()),
        ]
    })
}

/// All that is not ASCII as escapes, in two halves where it needs them.
fn escaped(text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        match letter.is_ascii() {
            true => written.push(letter),
            false => letter
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|half| written.push_str(&format!("\\u{half:04x}"))),
        }
    }
    written
}

proptest! {
    /// S4.25: each beginning of a document gives nothing, or a value that stands in the whole one at its place, of which at
    /// most one text is still arriving; with each piece it only grows, and at the end it is the whole one.
    #[test]
    fn each_beginning_is_part_of_the_whole(whole in value(), pretty in any::<bool>(), as_escapes in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap();
        let text = if as_escapes { escaped(&text) } else { text };
        // As it is read back: the last digits of a number may be rounded.
        let whole: Value = serde_json::from_str(&text).unwrap();
        let mut arriving = PartialJson::default();
        let mut before: Option<Value> = None;
        let letters: Vec<char> = text.chars().collect();
        for (place, letter) in letters.iter().enumerate() {
            arriving.push(letter.encode_utf8(&mut [0; 4]));
            let now = arriving.value();
            let at_once: String = letters[..=place].iter().collect();
            prop_assert_eq!(&now, &of(&at_once), "{}", at_once);
            prop_assert!(now.is_some() || before.is_none(), "{}", at_once);
            if let Some(now) = &now {
                let mut unfinished = 0;
                prop_assert!(begins(now, &whole, &mut unfinished) && unfinished <= 1, "{} gives {}", at_once, now);
                prop_assert!(before.is_none_or(|before| begins(&before, now, &mut 0)), "{}", at_once);
            }
            before = now;
        }
        // A number alone has no end that could be seen.
        arriving.push(" ");
        prop_assert_eq!(arriving.value(), Some(whole));
    }

    /// S4.25: whatever arrives, it is read without a panic, and a value is one that the text begins with.
    #[test]
    fn anything_may_arrive(text in "[\\[\\]{}\",:\\\\u0-9a-f \u{e9}tr-]{0,24}") {
        let _value = of(&text);
    }
}

/// S4.25: a number or a word counts at its end, a text from its first letter, a field with its value.
#[test]
fn what_counts_from_when_on() {
    for (text, value) in [
        ("", None),
        (r#"{"na"#, Some(json!({}))),
        (r#"{"name":"#, Some(json!({}))),
        (r#"{"name":""#, Some(json!({"name": ""}))),
        (r#"{"name":"Li"#, Some(json!({"name": "Li"}))),
        (r#"{"name":"Li\"#, Some(json!({"name": "Li"}))),
        (r#"{"name":"Li\u00"#, Some(json!({"name": "Li"}))),
        (r#"{"name":"Li\ud83d"#, Some(json!({"name": "Li"}))),
        (r#"{"n":12"#, Some(json!({}))),
        (r#"{"n":12,"#, Some(json!({"n": 12}))),
        (r#"{"n":tru"#, Some(json!({}))),
        ("[1, 2", Some(json!([1]))),
        ("[1, 2]", Some(json!([1, 2]))),
        ("no json", None),
        (r#"{"a" "b""#, Some(json!({}))),
        (r#"{"a":1}}"#, Some(json!({"a": 1}))),
        ("```json\n[1, 2]\n```", Some(json!([1, 2]))),
        ("``", None),
        (" ```\n[1,", Some(json!([1]))),
    ] {
        assert_eq!(of(text), value, "{text}");
    }
}
