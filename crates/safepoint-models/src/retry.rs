//! When another try is made: exponential back-off with full jitter, and what the server asked for.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use http::header::{HeaderMap, RETRY_AFTER};

/// How often and how long to wait before another try.
///
/// ```
/// use std::time::Duration;
/// use safepoint_models::{Patience, Retry};
/// let stubborn = Retry { tries: 8, most: Duration::from_secs(30), ..Retry::default() };
/// let patience = Patience { retry: stubborn, ..Patience::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all; 1 never tries again. Default 4.
    pub tries: u32,
    /// The longest wait before the second try; it doubles each time. Default 0.5 s.
    pub first: Duration,
    /// The longest wait before any try. Default 8 s.
    pub most: Duration,
    /// A `Retry-After` beyond this is not waited for. Default 60 s.
    pub most_asked: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            tries: 4,
            first: Duration::from_millis(500),
            most: Duration::from_secs(8),
            most_asked: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// One try, no more.
    #[must_use]
    pub fn never() -> Self {
        Self { tries: 1, ..Self::default() }
    }

    /// How long to wait after `failed` tries, or that there is no other; with a text where the server asked for too
    /// long a wait.
    pub(crate) fn after(&self, failed: u32, asked: Option<Duration>) -> Result<Duration, Option<String>> {
        if failed >= self.tries {
            return Err(None);
        }
        match asked {
            Some(asked) if asked > self.most_asked => {
                Err(Some(format!("the provider asks to wait {} s before another try", asked.as_secs())))
            }
            Some(asked) => Ok(asked),
            None => {
                let longest = self.first.saturating_mul(1 << (failed - 1).min(16)).min(self.most);
                Ok(longest.mul_f64(0.5 + jitter() / 2.0))
            }
        }
    }
}

/// A number from 0 to 1; the standard library's hasher is seeded at random, which is all that is needed here.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0u8);
    #[expect(clippy::cast_precision_loss, reason = "jitter")]
    let part = (random >> 11) as f64 / (1u64 << 53) as f64;
    part
}

/// `Retry-After` in seconds or as a date, and OpenAI's `retry-after-ms`.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    if let Some(millis) = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()?.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(std::time::SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.8: a wait that is too long is refused, with what the server asked for.
    #[test]
    fn an_hour_is_not_waited_for() {
        let hour = Duration::from_secs(3600);
        let refused = Retry::default().after(1, Some(hour)).unwrap_err().unwrap();
        assert!(refused.contains("3600 s"), "{refused}");
    }

    #[test]
    fn waits_grow_and_end() {
        let retry = Retry::default();
        assert!(retry.after(1, None).unwrap() <= retry.first);
        assert!(retry.after(3, None).unwrap() >= retry.first);
        assert_eq!(retry.after(4, None), Err(None));
        assert_eq!(retry.after(1, Some(Duration::from_secs(3))), Ok(Duration::from_secs(3)));
    }
}
