//! The id of a response: it names a session and what of it the response is, so that any server over the same store finds it.

use std::fmt;

/// What precedes the session in the id of a response.
const RESPONSE: &str = "resp_";
/// The same for a conversation.
const CONVERSATION: &str = "conv_";
/// How the ids of questions begin.
const APPROVAL: &str = "apr_";

/// The id of a response that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) session: String,
    pub(super) part: ResponsePart,
}

/// What of a session a response is. Exhaustive: an item, up to the first question that its turn waits for; or what followed the
/// answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponsePart {
    Item(u64),
    After(String),
}

impl ResponseId {
    pub(super) fn of_item(session: &str, number: u64) -> Self {
        Self { session: session.to_owned(), part: ResponsePart::Item(number) }
    }

    /// `None`: it is the id of no response that this server could have made.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(RESPONSE)?;
        let separated = format!("_{APPROVAL}");
        if let Some(at) = rest.rfind(&separated) {
            let (session, approval) = rest.split_at(at);
            let part = ResponsePart::After(approval.strip_prefix('_')?.to_owned());
            return Some(Self { session: session.to_owned(), part });
        }
        let (session, number) = rest.rsplit_once('_')?;
        let number = number.parse().ok()?;
        (number > 0).then(|| Self::of_item(session, number))
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            ResponsePart::Item(number) => write!(f, "{RESPONSE}{}_{number}", self.session),
            ResponsePart::After(approval) => write!(f, "{RESPONSE}{}_{approval}", self.session),
        }
    }
}

/// The id of a session as that of a conversation.
pub(super) fn conversation(session: &str) -> String {
    format!("{CONVERSATION}{session}")
}

/// The session that the id of a conversation names.
pub(super) fn session_of(conversation: &str) -> &str {
    conversation.strip_prefix(CONVERSATION).unwrap_or(conversation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.15: what an id names is read back from it, and what is none names nothing.
    #[test]
    fn an_id_is_read_back() {
        for id in [
            ResponseId::of_item("ses_01a1", 7),
            ResponseId { part: ResponsePart::After("apr_2".into()), ..ResponseId::of_item("my_own", 1) },
        ] {
            assert_eq!(ResponseId::parse(&id.to_string()), Some(id));
        }
        for text in ["", "resp_", "resp_ses_1_0", "resp_ses_1_x", "ses_1_1", "resp_7"] {
            assert_eq!(ResponseId::parse(text), None, "{text}");
        }
        assert_eq!(session_of(&conversation("ses_1")), "ses_1");
    }
}
