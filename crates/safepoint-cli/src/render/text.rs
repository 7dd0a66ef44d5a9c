//! Pieces of text that several screens and lists share.

use std::borrow::Cow;

use jiff::Timestamp;
use safepoint::{
    event::{Completion, HookAction},
    history::Message,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::plain;

/// Shown, not obeyed, and on one line.
pub(crate) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The part of the text that fits `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    kept.push('…');
    kept
}

/// A receipt up to its `running` row, and from that row on: what runs is known only when the run is quiet.
pub(crate) fn at_running(receipt: &str) -> (&str, &str) {
    const ROW: &str = "\n  running ";
    receipt.rfind(ROW).map_or((receipt, ""), |at| (&receipt[..at], &receipt[at + 1..]))
}

/// What a person said.
pub(crate) fn said(entry: &Message) -> Option<&str> {
    match entry {
        Message::User(message) => Some(&message.text),
        Message::Assistant(_) | Message::Results { .. } => None,
    }
}

/// How a message of the model ended.
pub(crate) fn completion(whole: &Completion) -> Cow<'static, str> {
    match whole {
        Completion::Complete => "complete".into(),
        Completion::Stopped => "cut by a stop".into(),
        Completion::Steered => "cut by a steer".into(),
        Completion::Failed(error) => format!("failed: {}", error.message).into(),
    }
}

/// What a hook did, behind its name.
pub(crate) fn hook_action(action: &HookAction) -> String {
    match action {
        HookAction::RequestChanged { round, messages, .. } => {
            format!("changed what request {round} sends: {messages} messages")
        }
        HookAction::RunAnswered { .. } => "answered in the model's place".to_owned(),
        HookAction::TextChanged { bytes_before, bytes_after, .. } => {
            format!("changed the model's text: {bytes_after} bytes instead of {bytes_before}")
        }
        HookAction::ArgsChanged { call_id, args, .. } => {
            format!("changed the arguments of {call_id}: {}", brief(args))
        }
        HookAction::CallRefused { call_id } => format!("refused {call_id}"),
        HookAction::CallAnswered { call_id } => format!("answered {call_id} in its tool's place"),
        HookAction::ResultChanged { call_id, bytes_before, bytes_after } => {
            format!("changed the result of {call_id}: {bytes_after} bytes instead of {bytes_before}")
        }
        HookAction::ResultWithheld { call_id } => {
            format!("did not answer in time, and the result of {call_id} is withheld")
        }
    }
}

/// A moment for people, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A backend's name as it may be shown: without the user, the password, the query and the fragment of its address.
pub(crate) fn shown(named: &str) -> String {
    if !named.starts_with("a2a:") {
        return named.to_owned();
    }
    let without = without_user(named).unwrap_or_else(|| named.to_owned());
    without.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// An address without the user and password that stand in it; none if none do.
pub(crate) fn without_user(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (_user, host) = place.rsplit_once('@')?;
    Some(format!("{scheme}://{host}{path}"))
}

/// Arguments in one line: a single value alone, and for a call of an external agent its task.
pub(crate) fn brief(args: &serde_json::Value) -> String {
    if let (Some(task), true) = (args["task"].as_str(), args["conversation"].is_string()) {
        return brief(&serde_json::json!({ "task": task }));
    }
    let only = args.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    let text = match only {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => args.to_string(),
    };
    in_a_row(&text)
}

/// Shown, not obeyed, with a blank for each line's end and tab.
pub(crate) fn in_a_row(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::shown;

    /// A password in an address is shown nowhere; a command is shown as it is.
    #[test]
    fn a_password_in_an_address_is_not_shown() {
        assert_eq!(shown("a2a:http://otter:s3cret@host:9000/a@b"), "a2a:http://host:9000/a@b");
        assert_eq!(shown("a2a:http://host:9000/a?key=s3cret#b"), "a2a:http://host:9000/a");
        for plain in ["a2a:http://host:9000", "acp:agent --at http://x@y", "responses:m"] {
            assert_eq!(shown(plain), plain);
        }
    }
}
