//! Durations as people write them: `500ms`, `5s`, `2m`, `1h`, `30d`, `0`.

use std::time::Duration;

/// The same, where `never` is a word too: the longest time there is.
pub(crate) fn parse_or_never(text: &str) -> Result<Duration, String> {
    if text.trim() == "never" { Ok(Duration::MAX) } else { parse(text) }
}

/// Reads a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_not_a_number| wrong(text))?;
    let seconds = match unit.trim() {
        "ms" => number / 1000.0,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        "" if number == 0.0 => 0.0,
        _ => return Err(wrong(text)),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_too_large| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("`{text}` is not a duration; write 500ms, 5s, 2m, 1h, 7d or 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        for wrong in ["", "5", "-1s", "s", "1y", "1e999h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
