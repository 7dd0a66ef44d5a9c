//! Earlier messages for an agent that has lost its session, marked as such (S10.66).

use safepoint::raw::Earlier;

use super::super::limits;

const BEGINS: &str = "[What was said before in this conversation, as your client has kept it. Your own session of it was lost, \
                      so you do not remember it.]";
const ENDS: &str = "[End of what was said before. What follows is new.]";

/// As much of it as an agent is sent, oldest first; none where nothing was said.
pub(super) fn quoted(earlier: &[Earlier]) -> Option<String> {
    let mut left = limits::EARLIER_BYTES;
    let mut parts: Vec<String> = Vec::new();
    for said in earlier.iter().rev() {
        let part = match said {
            Earlier::Person(text) => format!("Person: {text}"),
            Earlier::Agent(text) => format!("You: {text}"),
        };
        let Some(rest) = left.checked_sub(part.len()) else { break };
        left = rest;
        parts.push(part);
    }
    let left_out = earlier.len() - parts.len();
    if left_out > 0 {
        parts.push(format!("[{left_out} earlier messages are left out]"));
    }
    parts.push(BEGINS.to_owned());
    parts.reverse();
    parts.push(ENDS.to_owned());
    (!earlier.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.66
    #[test]
    fn what_is_sent_along_is_marked_bounded_and_the_newest() {
        assert_eq!(quoted(&[]), None);
        let said = |text: &str| Earlier::Person(text.to_owned());
        let both = quoted(&[said("fix it"), Earlier::Agent("fixed".into())]).expect("something was said");
        assert!(both.starts_with(BEGINS) && both.ends_with(ENDS), "{both}");
        assert!(both.contains("Person: fix it\n\nYou: fixed"), "{both}");
        let long = "x".repeat(limits::EARLIER_BYTES);
        let newest = quoted(&[said(&long), said("now")]).expect("something was said");
        assert!(newest.contains("[1 earlier messages are left out]\n\nPerson: now"), "{newest}");
        assert!(newest.len() < limits::EARLIER_BYTES);
    }
}
