//! Sessions.
mod machine;
mod words;
