//! The list that stands in the place of the input: conversations, models, or turns.

use crossterm::event::KeyEvent;
use safepoint::ids::TurnId;

use super::{
    kept::KeptAsk,
    picker::{PickRow, Picked, Picker},
    rewind::RewindAsk,
    sessions::SessionPicker,
    state::{Action, State, Tone},
    surface::Pane,
};
use crate::prices::Figures;

/// The models that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedModels {
    /// As `/model` takes them.
    pub(crate) names: Vec<String>,
    /// Providers that did not answer, and why.
    pub(crate) missing: Vec<String>,
}

/// A turn that can be gone back to before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedTurn {
    pub(crate) turn: TurnId,
    /// What the person said.
    pub(crate) said: String,
    /// How long ago.
    pub(crate) when: String,
}

/// What is chosen. Exhaustive: each says what its choice does.
#[derive(Clone, Debug)]
pub(super) enum Choosing {
    Session(SessionPicker),
    Model(Picker),
    Turn(Picker),
}

impl Choosing {
    pub(super) fn key(&mut self, key: KeyEvent) -> Picked {
        match self {
            Self::Session(list) => list.key(key),
            Self::Model(list) | Self::Turn(list) => list.key(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self {
            Self::Session(list) => list.paste(text),
            Self::Model(list) | Self::Turn(list) => list.paste(text),
        }
    }

    pub(super) fn pane(&self, rows: usize, columns: usize) -> Pane {
        match self {
            Self::Session(list) => list.pane(rows, columns),
            Self::Model(list) | Self::Turn(list) => list.pane(rows, columns),
        }
    }

    /// What choosing this row does.
    pub(super) fn chosen(&self, key: String) -> Option<Action> {
        match self {
            Self::Session(_) => Some(Action::Kept(KeptAsk::Open(key))),
            Self::Model(_) => Some(Action::Model(key)),
            Self::Turn(_) => {
                let turn = TurnId::new(key.parse().ok()?);
                Some(Action::Rewind(RewindAsk::Before(turn, Vec::new())))
            }
        }
    }
}

impl State {
    /// `/model`: the name of the one in use, and a list as soon as the providers have answered.
    pub(super) fn ask_models(&mut self) {
        self.tell(Tone::Plain, &format!("the model is {}; asking which others there are…", self.model));
        self.actions.push(Action::OfferModels);
    }

    /// Another model is used from the next turn on.
    pub(crate) fn took_model(&mut self, name: String, figures: Figures) {
        self.meter.set(figures);
        self.tell(Tone::Aside, &format!("the model is {name} from the next turn on"));
        self.kept.model = Some(name.clone());
        self.model = name;
    }

    /// Opens the list of turns; what going back to before one of them does is shown before anything happens.
    pub(crate) fn pick_turn(&mut self, turns: &[OfferedTurn]) {
        if turns.is_empty() {
            return self.tell(Tone::Plain, "no turn yet: there is nothing to go back to");
        }
        if self.leaving.is_some() {
            return;
        }
        let row = |turn: &OfferedTurn| {
            let number = turn.turn.number().to_string();
            PickRow::new(number.clone(), [format!("{number} {}", turn.said), turn.when.clone()])
        };
        self.kept.list =
            Some(Choosing::Turn(Picker::new("Turns to go back to", turns.iter().map(row).collect())));
    }

    /// Opens the list of models.
    pub(crate) fn pick_model(&mut self, offered: &OfferedModels) {
        for missing in &offered.missing {
            self.tell(Tone::Aside, &format!("no list of models from {missing}"));
        }
        if self.leaving.is_some() {
            return;
        }
        let about = |name: &str| if name == self.model { "in use" } else { "" };
        let rows = offered.names.iter().map(|name| PickRow::new(name.as_str(), [name.as_str(), about(name)]));
        self.kept.list = Some(Choosing::Model(Picker::new("Models", rows.collect())));
    }
}
