//! Where this crate does not compile, and what to do there.

compile_error!(
    "safepoint-tools holds the processes that it starts by means of Linux (subreaper, control groups, /proc): on another \
     system leave it out. The engine, the models and the stores do not need it. docs/guides/platforms.md says what holds where."
);
