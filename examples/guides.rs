//! The programs of this package show Safepoint, one subject each; their tests also compile the programs in the guides.

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/approvals.md")]
#[doc = include_str!("../docs/guides/hooks.md")]
#[doc = include_str!("../docs/guides/own-model.md")]
#[doc = include_str!("../docs/guides/own-store.md")]
#[doc = include_str!("../docs/guides/provider-side.md")]
#[doc = include_str!("../docs/guides/server.md")]
#[doc = include_str!("../docs/guides/sessions.md")]
#[doc = include_str!("../docs/guides/testing.md")]
#[doc = include_str!("../docs/guides/web.md")]
struct Guides;
