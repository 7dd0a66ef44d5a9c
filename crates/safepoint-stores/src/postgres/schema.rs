//! The tables, and how those of an earlier release become those of this one.
//!
//! **Invariants:** a step that was released is never changed; a new release adds a step.

use safepoint::{raw::store::Cause, store::Error};

use super::{core::Core, options::Migration, rooms::quoted, tries::Again};

/// Step `n` brings version `n` to `n + 1`; the last one's version is ours.
const STEPS: [&str; 2] = [include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// What is found where the tables are to be.
enum FoundSchema {
    Version(u32),
    Nothing,
    /// Tables of something else.
    Foreign,
}

impl Core {
    /// Brings the schema to our version, in one transaction, or says why not.
    pub(super) async fn bring_up(&self) -> Result<(), Error> {
        let mut tries = self.tries(Again::Always);
        loop {
            let found = match self.found_schema().await? {
                FoundSchema::Version(found) if found == known() => return Ok(()),
                FoundSchema::Version(found) if found > known() => {
                    return Err(Error::Newer { found, known: known() });
                }
                FoundSchema::Version(found) => found,
                FoundSchema::Nothing => 0,
                FoundSchema::Foreign => {
                    let schema = &self.options.schema;
                    let why =
                        format!("the schema {schema} has tables of another program: choose another schema");
                    return Err(Error::Failed(Cause::new(why)));
                }
            };
            if self.options.migration == Migration::CheckOnly {
                let why = format!(
                    "the schema {} is of version {found}, and {} is needed: let a role that may create in the database open it once",
                    self.options.schema,
                    known()
                );
                return Err(Error::Failed(Cause::new(why)));
            }
            if let Err(failure) = self.migrate(found).await {
                tries.after(failure).await?;
            }
        }
    }

    async fn found_schema(&self) -> Result<FoundSchema, Error> {
        const FIND: &str = "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass($1 || '.meta') AND attname = 'version'), \
             EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2 AND c.relkind = 'r')";
        let (path, name) = (quoted(&self.options.schema), &self.options.schema);
        let rows = self.look(FIND, &[&path, name]).await?;
        let get = |at| rows.first().is_some_and(|row| row.try_get::<_, bool>(at).unwrap_or(false));
        if !get(0) {
            return Ok(if get(1) { FoundSchema::Foreign } else { FoundSchema::Nothing });
        }
        let versions = self.look("SELECT version FROM meta", &[]).await?;
        let version = versions.first().and_then(|row| row.try_get::<_, i32>(0).ok());
        Ok(FoundSchema::Version(version.and_then(|version| u32::try_from(version).ok()).unwrap_or(0)))
    }

    /// All steps from this version on, as one message: no lock waits for this process. Where another process was first, nothing is
    /// done.
    async fn migrate(&self, found: u32) -> Result<(), super::failure::Failure> {
        let steps: String = STEPS.iter().skip(found as usize).copied().collect();
        let is_as_found = if found == 0 {
            "to_regclass('meta') IS NULL".to_owned()
        } else {
            format!("EXISTS (SELECT 1 FROM meta WHERE version = {found})")
        };
        let sql = format!(
            "BEGIN; SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO '60s'; SELECT pg_advisory_xact_lock({LOCK}, hashtext(current_setting('search_path'))); \
             CREATE SCHEMA IF NOT EXISTS {}; \
             DO $do$ BEGIN IF NOT ({is_as_found}) THEN \
             RAISE EXCEPTION 'another process was first' USING ERRCODE = 'serialization_failure'; END IF; END $do$; \
             {steps}; INSERT INTO meta (version) VALUES ({1}) ON CONFLICT (one) DO UPDATE SET version = {1}; COMMIT",
            quoted(&self.options.schema),
            known()
        );
        self.batch(&sql).await
    }
}

/// Names the lock of migrations among those of other programs.
const LOCK: i32 = 0x5361_6665;

fn known() -> u32 {
    STEPS.len() as u32
}
