//! A message that a run was steered with, and its source.

use serde::{Deserialize, Serialize};

use crate::value::{
    ids::{ItemId, SteerId},
    message::UserMessage,
};

/// The prefix of a notice's id. Only notices of releases that did not record the source are recognised by it.
pub(crate) const NOTICE: &str = "notice:";

/// One message that a run was steered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredSteer")]
pub struct RecordedSteer {
    /// Its id.
    pub id: SteerId,
    /// Its content.
    pub message: UserMessage,
    /// Where it comes from.
    pub source: SteerSource,
}

/// The source of a steer. Exhaustive: the holder of the run's handle, an item of the session, or the session
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerSource {
    /// The holder of the run's handle. The id is the sender's, and means nothing here.
    Handle,
    /// It is an item of the session, and its id is the item's.
    Item,
    /// The session itself, which had something to report to the model: what became of a background run
    /// (S9.1).
    Session,
}

impl RecordedSteer {
    /// Whether the session itself sent it.
    #[must_use]
    pub fn is_notice(&self) -> bool {
        self.source == SteerSource::Session
    }

    /// The session's item, if it is one.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        if self.source == SteerSource::Item { self.id.as_str().parse().ok() } else { None }
    }
}

/// As recorded, by this release or by one that did not record the source.
#[derive(Deserialize)]
struct StoredSteer {
    id: SteerId,
    message: UserMessage,
    source: Option<SteerSource>,
}

impl From<StoredSteer> for RecordedSteer {
    fn from(StoredSteer { id, message, source }: StoredSteer) -> Self {
        let source = source.unwrap_or_else(|| match id.as_str() {
            notice if notice.starts_with(NOTICE) => SteerSource::Session,
            item if item.parse::<ItemId>().is_ok() => SteerSource::Item,
            _ => SteerSource::Handle,
        });
        Self { id, message, source }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::{RecordedSteer, SteerSource};

    fn read(id: &str, source: Option<&str>) -> RecordedSteer {
        let mut kept =
            json!({"id": id, "message": to_value(crate::value::message::UserMessage::from("x")).unwrap()});
        if let Some(source) = source {
            kept["source"] = Value::from(source);
        }
        from_value(kept).unwrap()
    }

    /// S7.6, S9.1: a steer of a release that did not record the source is read as that release read it; in a
    /// steer of this one, no id makes it anything that it is not.
    #[test]
    fn where_a_steer_comes_from_is_recorded() {
        for (id, source, item) in [
            ("notice:turn-1/root/c", SteerSource::Session, None),
            ("item-3", SteerSource::Item, Some(3)),
            ("str_1", SteerSource::Handle, None),
        ] {
            let old = read(id, None);
            assert_eq!((old.source, old.item().map(|item| item.number())), (source, item));
            let ours = read(id, Some("handle"));
            assert_eq!((ours.is_notice(), ours.item()), (false, None));
            assert_eq!(from_value::<RecordedSteer>(to_value(&old).unwrap()).unwrap(), old);
        }
    }
}
