//! A store of your own for one run: the engine records each fact before it acts on it.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, History,
    log::{Log, LogError, RunRecord},
};
use safepoint_models::openai;

/// Keeps the facts, and writes each one's name where a program of yours would write its row.
#[derive(Default)]
struct Journal(Mutex<Vec<RunRecord>>);

impl Log for Journal {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(async move {
            let row = serde_json::to_value(&record.fact).map_err(LogError::new)?;
            let mut rows = self.0.lock().map_err(|_poisoned| LogError::new("a writer has panicked"))?;
            println!("{} {}", rows.len(), row["fact"]);
            rows.push(record);
            Ok(rows.len() as u64 - 1)
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        Box::pin(async {
            let rows = self.0.lock().map_err(|_poisoned| LogError::new("a writer has panicked"))?;
            Ok(rows.clone())
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    let outcome = agent.run_recorded(Arc::new(Journal::default()), History::new(), "Hello?").await;
    println!("{}", outcome.answer().unwrap_or_default());
    Ok(())
}
