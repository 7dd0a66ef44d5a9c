//! Commands under the guard, with real processes: how they end, how they are stopped, and that nothing is left.

mod process {
    pub(crate) mod support;

    mod endings;
    mod output;
    mod stops;
    mod trees;
    mod losses;
    mod unguarded;
    mod roles;
}
