//! Durations, sizes and addresses as people write them.

use std::net::SocketAddr;
use std::time::Duration;

/// Parses `250ms`, `1.5s`, `2m`, `12h`, `1d`; of bare numbers only 0, because tools disagree on what `100` means.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "" if number.parse::<f64>() == Ok(0.0) => 1.0,
        "" if number.parse::<f64>().is_ok() => {
            return Err(format!("expected a duration with its unit, such as {number}ms or {number}s, found {text:?}"));
        }
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("expected a duration like 250ms, 1.5s, 2m, 12h or 1d, found {text:?}")),
    };
    let value: f64 = number.parse().map_err(|_| format!("expected a duration like 250ms or 2m, found {text:?}"))?;
    Duration::try_from_secs_f64(value * seconds).map_err(|error| format!("{text:?}: {error}"))
}

/// Parses `512`, `64KiB`, `8MiB`, `1.5GiB` (powers of 1024) and `64KB`, `1GB` (powers of 1000).
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size like 64MiB or 1GB, found {text:?}");
    let (number, unit) = split(text);
    let scale: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1_048_576.0,
        "g" | "gib" => 1_073_741_824.0,
        "t" | "tib" => 1_099_511_627_776.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(wrong()),
    };
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let result = value * scale;
    // 2^53: past it a float no longer counts single bytes.
    if !(0.0..=9_007_199_254_740_992.0).contains(&result) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked above")]
    Ok(result as u64)
}

/// Parses an address to listen on; a port alone is one of this machine.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let local = |port: &str| port.parse().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))).ok();
    let by_port = || local(text.strip_prefix("localhost:").unwrap_or(text));
    text.parse().ok().or_else(by_port).ok_or_else(|| {
        format!("expected an address with its port (127.0.0.1:8080, [::1]:8080), localhost:8080, or a port alone, found {text:?}")
    })
}

/// `1.4 GiB`, for people.
pub fn show_bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let mut value = n as f64;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") }
}

/// `1,234,567`, for people.
pub fn show_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1d"), Ok(Duration::from_secs(86_400)));
        assert!(duration("100").unwrap_err().contains("100ms or 100s"));
        for wrong in ["", "x", "2", "0.5", "-1s", "1 fortnight", "1e400s", "1.2.3s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(bytes("1GB"), Ok(1_000_000_000));
        assert_eq!(bytes("0"), Ok(0));
        for wrong in ["", "MiB", "-5", "9EiB", "99999999999TiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(show_bytes(512), "512 B");
        assert_eq!(show_bytes(1_610_612_736), "1.5 GiB");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(999), "999");
    }
}
