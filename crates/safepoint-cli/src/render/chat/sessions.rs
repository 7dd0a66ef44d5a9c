//! The list of stored conversations: this project's, or those of all projects.
//!
//! **Invariants**: what was typed and the marked row stay when the list changes.

use crossterm::event::{KeyCode, KeyEvent};

use super::{
    picker::{PickRow, Picked, Picker},
    surface::Pane,
};

/// A stored conversation, as it is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) id: String,
    /// Its name, or what was said first.
    pub(crate) title: String,
    /// How long ago it changed.
    pub(crate) when: String,
    pub(crate) state: String,
    /// What it has used, once that is known.
    pub(crate) spent: String,
    /// What it is about; none if that is not known.
    pub(crate) project: String,
    /// Whether it is about this project.
    pub(crate) is_here: bool,
}

/// The list while a person chooses.
#[derive(Clone, Debug)]
pub(crate) struct SessionPicker {
    picker: Picker,
    offers: Vec<Offer>,
    /// Whether those of other projects are listed too.
    is_all: bool,
}

impl SessionPicker {
    /// Lists those of this project; if there are none, all.
    pub(crate) fn new(mut offers: Vec<Offer>) -> Self {
        offers.sort_by_key(|offer| !offer.is_here);
        let is_all = offers.iter().all(|offer| !offer.is_here);
        let mut list = Self { picker: Picker::new("", Vec::new()), offers, is_all };
        list.show();
        list
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Picked {
        if key.code != KeyCode::Tab {
            return self.picker.key(key);
        }
        self.is_all = !self.is_all;
        self.show();
        Picked::Nothing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }

    /// What this one has used.
    pub(crate) fn spent(&mut self, id: &str, spent: String) {
        if let Some(offer) = self.offers.iter_mut().find(|offer| offer.id == id) {
            offer.spent = spent;
            self.show();
        }
    }

    pub(crate) fn pane(&self, rows: usize, columns: usize) -> Pane {
        self.picker.pane(rows, columns)
    }

    fn show(&mut self) {
        let listed = self.offers.iter().filter(|offer| self.is_all || offer.is_here);
        let rows = listed.map(|offer| {
            let Offer { id, title, when, state, spent, project, .. } = offer;
            let project = if self.is_all { project.as_str() } else { "" };
            let columns = [title.as_str(), when, state, spent, project];
            PickRow::new(id.as_str(), columns).and_found_by(&offer.project)
        });
        let (title, hint) = match self.is_all {
            true => ("Conversations of all projects", "Tab this project"),
            false => ("Conversations of this project", "Tab all projects"),
        };
        let rows = rows.collect();
        self.picker.hint(hint);
        self.picker.retitle(title, rows);
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    fn offer(id: &str, title: &str, project: &str) -> Offer {
        let is_here = project == "/here";
        let [id, title, project] = [id, title, project].map(str::to_owned);
        Offer {
            id,
            title,
            project,
            is_here,
            when: "2 h ago".into(),
            state: "idle".into(),
            ..Offer::default()
        }
    }

    fn tap(list: &mut SessionPicker, code: KeyCode) -> Picked {
        list.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn text(list: &SessionPicker) -> String {
        let lines = list.pane(20, 100).lines;
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    /// S7.42: this project's conversations come first; a key adds those of all others.
    #[test]
    fn this_projects_conversations_are_listed_and_a_key_adds_all_others() {
        let offers = [("1", "of another", "/there"), ("2", "of this one", "/here")];
        let mut list =
            SessionPicker::new(offers.map(|(id, title, project)| offer(id, title, project)).to_vec());
        let shown = text(&list);
        assert!(shown.contains("of this one") && !shown.contains("of another"), "{shown}");
        tap(&mut list, KeyCode::Tab);
        let shown = text(&list);
        assert!(shown.find("of this one") < shown.find("of another") && shown.contains("/there"), "{shown}");
        list.paste("another");
        list.spent("1", "12.5k tokens".into());
        let shown = text(&list);
        assert!(shown.contains("1 of 2") && shown.contains("12.5k tokens"), "{shown}");
        assert_eq!(tap(&mut list, KeyCode::Enter), Picked::Chosen("1".into()));
    }

    #[test]
    fn where_this_project_has_none_all_are_listed() {
        let list = SessionPicker::new(vec![offer("1", "of another", "/there")]);
        assert!(text(&list).contains("of another"), "{}", text(&list));
    }
}
