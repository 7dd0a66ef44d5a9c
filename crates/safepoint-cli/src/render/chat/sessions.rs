//! The list of stored conversations: this project's, or those of all projects.
//!
//! **Invariants**: what was typed and the marked row stay when the list changes.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use crossterm::event::{KeyCode, KeyEvent};

use super::{
    excerpt::Said,
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

/// What is known of a conversation once it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) id: String,
    /// What it has used; empty if nothing.
    pub(crate) spent: String,
    /// What was said in it; none if it is too long to be read, or those before it have taken all the room.
    pub(crate) said: Option<Arc<Said>>,
}

/// The list while a person chooses.
#[derive(Clone, Debug)]
pub(crate) struct SessionPicker {
    picker: Picker,
    offers: Vec<Offer>,
    /// What those say that were read.
    said: HashMap<String, Option<Arc<Said>>>,
    /// Whether those of other projects are listed too.
    is_all: bool,
    /// The conversations are read as long as this is there.
    wanted: Arc<()>,
}

impl SessionPicker {
    /// Lists those of this project; if there are none, all.
    pub(crate) fn new(mut offers: Vec<Offer>) -> Self {
        offers.sort_by_key(|offer| !offer.is_here);
        let is_all = offers.iter().all(|offer| !offer.is_here);
        let picker = Picker::new("", Vec::new());
        let mut list = Self { picker, offers, said: HashMap::new(), is_all, wanted: Arc::default() };
        list.show();
        list
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
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

    /// Whether the list is still there to show what is found.
    pub(crate) fn wanted(&self) -> Weak<()> {
        Arc::downgrade(&self.wanted)
    }

    /// What some of them have used, and what was said in them.
    pub(crate) fn looked(&mut self, looked: Vec<Looked>) {
        for Looked { id, spent, said } in looked {
            if let Some(offer) = self.offers.iter_mut().find(|offer| offer.id == id) {
                offer.spent = spent;
            }
            self.said.insert(id, said);
        }
        self.show();
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
            let said = self.said.get(id).cloned().flatten();
            PickRow::new(id.as_str(), columns).and_found_by(&offer.project).and_said(said)
        });
        let (title, hint) = match self.is_all {
            true => ("Conversations of all projects", "Tab this project"),
            false => ("Conversations of this project", "Tab all projects"),
        };
        let rows = rows.collect();
        self.picker.hint(&format!("{hint}{}", self.searched()));
        self.picker.retitle(title, rows);
    }

    /// What of the conversations is not searched.
    fn searched(&self) -> String {
        let (read, all) = (self.said.len(), self.offers.len());
        if read < all {
            return format!(" · searched: {read} of {all}");
        }
        let is_cut = |said: &&Option<Arc<Said>>| said.as_ref().is_none_or(|said| said.is_cut);
        match self.said.values().filter(is_cut).count() {
            0 => String::new(),
            cut => format!(" · {cut} too long to search all of"),
        }
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
        list.looked(vec![Looked { id: "1".into(), spent: "12.5k tokens".into(), said: None }]);
        let shown = text(&list);
        assert!(shown.contains("1 of 2") && shown.contains("12.5k tokens"), "{shown}");
        assert_eq!(tap(&mut list, KeyCode::Enter), Picked::Chosen("1".into()));
    }

    /// S7.42: a conversation is found by what was said in it, and the place is shown; the list says what of it is not searched.
    #[test]
    fn a_conversation_is_found_by_any_word_that_was_said_in_it() {
        let offers = [("1", "fix it", "/here"), ("2", "the docs", "/here"), ("3", "the rest", "/here")];
        let mut list =
            SessionPicker::new(offers.map(|(id, title, project)| offer(id, title, project)).to_vec());
        let said = |id: &str, texts: &[&str]| {
            let mut said = Said::default();
            texts.iter().for_each(|text| said.push(text));
            Looked { id: id.into(), spent: String::new(), said: Some(Arc::new(said)) }
        };
        list.looked(vec![said("1", &["fix it", "The Overflow is in\nparse_header, which nothing checks"])]);
        assert!(text(&list).contains("searched: 1 of 3"), "{}", text(&list));
        list.looked(vec![
            said("2", &["the docs", "written"]),
            Looked { id: "3".into(), ..Looked::default() },
        ]);
        assert!(text(&list).contains("1 too long to search all of"), "{}", text(&list));
        tap(&mut list, KeyCode::Down);
        list.paste("fix OVERFLOW");
        let shown = text(&list);
        assert!(shown.contains("1 of 3") && shown.contains("❯ fix it"), "{shown}");
        assert!(
            shown.contains("\n    fix it The Overflow is in parse_header, which nothing checks"),
            "{shown}"
        );
        assert_eq!(tap(&mut list, KeyCode::Enter), Picked::Chosen("1".into()));
        for columns in [20, 60] {
            let lines = list.pane(3, columns).lines;
            assert!(lines.len() <= 3 && lines.iter().all(|line| line.width() <= columns), "{lines:?}");
        }
    }

    /// S7.42
    #[test]
    fn rows_with_their_places_fit_the_screen_around_the_marked_one() {
        let offers: Vec<Offer> = (0..40).map(|at| offer(&at.to_string(), "a talk", "/here")).collect();
        let mut list = SessionPicker::new(offers);
        let mut said = Said::default();
        said.push("about the parser");
        let said = Some(Arc::new(said));
        let looked = (0..40).map(|at| Looked { id: at.to_string(), said: said.clone(), ..Looked::default() });
        list.looked(looked.collect());
        list.paste("parser");
        for key in [KeyCode::Home, KeyCode::PageDown, KeyCode::Down, KeyCode::End, KeyCode::Up] {
            tap(&mut list, key);
            for rows in [2, 3, 5, 8, 24] {
                let lines = list.pane(rows, 60).lines;
                assert!(lines.len() <= rows, "{lines:?}");
                let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
                assert_eq!(shown.iter().filter(|line| line.starts_with('❯')).count(), 1, "{shown:#?}");
            }
        }
    }

    #[test]
    fn where_this_project_has_none_all_are_listed() {
        let list = SessionPicker::new(vec![offer("1", "of another", "/there")]);
        assert!(text(&list).contains("of another"), "{}", text(&list));
    }
}
