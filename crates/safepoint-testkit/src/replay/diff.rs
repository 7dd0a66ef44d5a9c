//! Where two requests differ first, in words.

use serde_json::Value;

/// The first difference: its place, what was recorded there, and what is there now.
pub(super) fn first(recorded: &Value, now: &Value) -> Option<String> {
    at(recorded, now, &mut String::new())
}

fn at(recorded: &Value, now: &Value, place: &mut String) -> Option<String> {
    match (recorded, now) {
        (Value::Object(before), Value::Object(after)) => {
            let more = after.keys().filter(|name| !before.contains_key(*name));
            before.keys().chain(more).find_map(|name| {
                within(place, name, |place| at(&recorded[name.as_str()], &now[name.as_str()], place))
            })
        }
        (Value::Array(before), Value::Array(after)) => (0..before.len().max(after.len())).find_map(|index| {
            let item = |list: &[Value]| list.get(index).cloned().unwrap_or(Value::Null);
            within(place, &index.to_string(), |place| at(&item(before), &item(after), place))
        }),
        (before, after) if before == after => None,
        (before, after) => {
            Some(format!("at {place} {} was recorded, and now it is {}", show(before), show(after)))
        }
    }
}

fn within(
    place: &mut String,
    name: &str,
    look: impl FnOnce(&mut String) -> Option<String>,
) -> Option<String> {
    let length = place.len();
    place.push('/');
    place.push_str(name);
    let found = look(place);
    place.truncate(length);
    found
}

fn show(value: &Value) -> String {
    const MOST: usize = 200;
    let text = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
