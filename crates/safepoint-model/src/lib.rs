//! What a model is to Safepoint: the messages of a conversation, the trait that a provider implements, and its errors.
//!
//! A crate that adds a model depends on this one and not on the engine: it is small, and it changes rarely. Programs find
//! all of it in the crate `safepoint`, under the same names of modules (`safepoint::model`, `safepoint::message`, …).
//!
//! To add a model, implement [`model::Model`] and [`model::Conversation`].

mod error_source;
pub mod history;
pub mod ids;
mod json;
pub mod message;
pub mod model;
mod tagged;
mod text;
pub mod usage;

/// What the engine and the crates of providers need beside the API of models.
///
/// Nothing here is under the promise of semantic versioning: a minor release may change it.
pub mod raw {
    pub use crate::{error_source::ErrorSource, is_default};

    /// The size of a conversation, and which part of it is sent.
    pub mod history {
        pub use crate::history::omit::{View, bytes, bytes_of, said_in, tokens_of};
    }

    /// Where ids come from.
    pub mod ids {
        pub use crate::ids::unique::{Seeded, unique};
    }

    /// JSON from outside: how large it is, before it is read as values; and JSON that is written within bounds.
    pub mod json {
        pub use crate::json::{
            MOST_VALUES, Unread, bytes, is_wide, pairs, read, to_vec, to_vec_within, weight,
        };
    }

    /// Text that must be cut: always between characters.
    pub mod text {
        pub use crate::text::{head, tail};
    }

    /// The sum of what several runs cost, of which some may have no price.
    pub mod usage {
        pub use crate::usage::cost::{TotalCost, recorded};
    }
}

/// Whether a stored field has its default value, and is left out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
