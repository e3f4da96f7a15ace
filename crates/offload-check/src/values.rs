//! Sizes and percentages in policies.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A number of bytes: `4096`, `512K`, `200M`, `1.5G`, `2GiB`. K is 1024.
///
/// Exhaustive: a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Bytes(
    /// The number.
    pub u64,
);

/// A percentage: `5%`, `0.5 %`.
///
/// Exhaustive: a number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "Value")]
pub struct Percent(
    /// The number; 5 for `5%`.
    pub f64,
);

/// The bytes of device code, as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCode {
    /// The number.
    pub bytes: u64,
    /// `true` if it has shares of compressed bytes.
    pub is_estimate: bool,
}

impl DeviceCode {
    /// Returns both together.
    pub(crate) fn with(self, other: Self) -> Self {
        // Tables state the sizes, which may be too large for a number in total.
        let bytes = self.bytes.saturating_add(other.bytes);
        DeviceCode { bytes, is_estimate: self.is_estimate || other.is_estimate }
    }
}

/// `about 1.2 KiB` for an estimate.
impl fmt::Display for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_estimate { "about " } else { "" })?;
        Bytes(self.bytes).fmt(f)
    }
}

/// A number, a text, or what is neither.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Text(String),
    Other(IgnoredAny),
}

impl TryFrom<Value> for Bytes {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Number(number) => Ok(Bytes(number)),
            Value::Text(text) => text.parse(),
            Value::Other(_) => Err("expected a size such as 4096 or \"1.5G\"".to_owned()),
        }
    }
}

impl TryFrom<Value> for Percent {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Number(number) => Err(format!("expected a percentage such as \"{number}%\"")),
            Value::Text(text) => text.parse(),
            Value::Other(_) => Err("expected a percentage such as \"5.5%\"".to_owned()),
        }
    }
}

/// Reads a number that is not negative.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let at = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(at);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => Some(0),
            "k" | "kib" => Some(10),
            "m" | "mib" => Some(20),
            "g" | "gib" => Some(30),
            _ => None,
        };
        let bytes = number(digits.trim()).zip(shift).map(|(n, shift)| n * f64::from(1u32 << shift));
        // Numbers of up to 53 bits are exact.
        let bytes = bytes.filter(|bytes| *bytes < (1u64 << 53) as f64);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole part of at most 53 bits"
        )]
        let bytes = bytes.map(|bytes| Bytes(bytes as u64));
        bytes
            .ok_or_else(|| format!("'{text}' is not a size: expected one such as 200M, 1.5G, 4096"))
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix('%').and_then(|text| number(text.trim()));
        number
            .map(Percent)
            .ok_or_else(|| format!("'{text}' is not a percentage: expected one such as 5%"))
    }
}

/// In the unit in which it is short: `200.0 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut size = self.0 as f64;
        let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
        let mut unit = None;
        while size >= 1000.0 || unit.is_none() && size >= 1024.0 {
            let Some(next) = units.next() else { break };
            (size, unit) = (size / 1024.0, Some(next));
        }
        match unit {
            Some(unit) if self.0 >= 1024 => write!(f, "{size:.1} {unit}"),
            _ => write!(f, "{} B", self.0),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes, shown) in [
            ("0", 0, "0 B"),
            ("1000", 1000, "1000 B"),
            ("1023 b", 1023, "1023 B"),
            ("1K", 1024, "1.0 KiB"),
            ("200M", 200 << 20, "200.0 MiB"),
            (" 1.5 GiB ", 3 << 29, "1.5 GiB"),
            ("1000KiB", 1000 << 10, "1.0 MiB"),
        ] {
            let read: Bytes = text.parse().unwrap();
            assert_eq!((read.0, read.to_string()), (bytes, shown.to_owned()), "{text}");
        }
        for text in ["", "M", "-1M", "1e3", "200 MB", "inf", "nan", "9999999999G", "1..2K"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_have_a_sign() {
        assert_eq!("5%".parse(), Ok(Percent(5.0)));
        assert_eq!(" 0.5 % ".parse(), Ok(Percent(0.5)));
        for text in ["5", "-5%", "%", "+5%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }
}
