//! What says whether arguments fit their tool, before it runs (S4.11): its JSON Schema, or without the feature `schema` its
//! type.

#[cfg(feature = "schema")]
mod by_schema;
#[cfg(any(test, not(feature = "schema")))]
mod by_type;

#[cfg(feature = "schema")]
pub(crate) use by_schema::Fits;
#[cfg(not(feature = "schema"))]
pub(crate) use by_type::Fits;
