//! Rules about kernels, for gates.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use super::{Kernel, Measure, Stored};

/// A rule about kernels: a measure, a comparison and a number.
///
/// ```
/// use device_code::{KernelRule, kernels};
///
/// let rule: KernelRule = "max_threads>=256".parse()?;
/// let ptx = b".version 8.0\n.target sm_90\n.entry scale() .maxntid 256 { ret; }\n";
/// let kernels = kernels(ptx).and_then(|found| found.kernels).unwrap_or_default();
/// assert_eq!(rule.hits(&kernels[0]), Some(true));
/// let rule: KernelRule = "vgpr_spills>0".parse()?;
/// assert_eq!(rule.hits(&kernels[0]), None);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRule {
    measure: Measure,
    comparison: Comparison,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
    NotEqual,
}

/// The signs of each; those of two characters first.
const SIGNS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    (">", Comparison::More),
    ("<", Comparison::Less),
];

impl KernelRule {
    /// Returns the measure.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns whether the rule hits a kernel; `None` if the kernel does not have the number. A number that is known to be at
    /// least some other one hits if that may be so.
    #[must_use]
    pub fn hits(&self, kernel: &Kernel<'_>) -> Option<bool> {
        match self.measure.of(kernel) {
            Stored::Absent => None,
            Stored::Known(number) => Some(self.is_true_of(number)),
            Stored::Unknown(least) => {
                let grows = matches!(
                    self.comparison,
                    Comparison::More | Comparison::AtLeast | Comparison::NotEqual
                );
                Some(grows || self.is_true_of(least))
            }
        }
    }

    fn is_true_of(&self, number: u64) -> bool {
        match self.comparison {
            Comparison::More => number > self.number,
            Comparison::AtLeast => number >= self.number,
            Comparison::Less => number < self.number,
            Comparison::AtMost => number <= self.number,
            Comparison::Equal => number == self.number,
            Comparison::NotEqual => number != self.number,
        }
    }
}

impl FromStr for KernelRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = text.find(['>', '<', '=', '!']).and_then(|at| {
            let (name, rest) = text.split_at_checked(at)?;
            let (sign, comparison) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign))?;
            Some((name.trim(), *comparison, rest.get(sign.len()..)?.trim()))
        });
        let (name, comparison, number) = found
            .ok_or_else(|| format!("'{text}' is not a rule: expected one such as vgpr_spills>0"))?;
        let measure = Measure::from_name(name).ok_or_else(|| {
            let names =
                Measure::all().map(Measure::name).collect::<alloc::vec::Vec<_>>().join(", ");
            format!("'{name}' is not a measure: expected one of {names}")
        })?;
        let number = read(number).ok_or_else(|| {
            format!("'{number}' is not a number: expected one such as 0, 64 or 48K")
        })?;
        Ok(KernelRule { measure, comparison, number })
    }
}

/// Reads a number with a suffix K or M.
fn read(text: &str) -> Option<u64> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

impl fmt::Display for KernelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS.iter().find(|(_, comparison)| *comparison == self.comparison);
        let sign = sign.map_or("", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.measure, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> KernelRule {
        text.parse().unwrap()
    }

    #[test]
    fn rules_compare_what_is_stored() {
        let kernel = Kernel { registers: Some(64), ..Kernel::default() };
        for (text, hits) in [
            ("registers>63", Some(true)),
            ("vgprs > 64", Some(false)),
            ("registers>=64", Some(true)),
            ("registers<64", Some(false)),
            ("registers<=64", Some(true)),
            ("registers==64", Some(true)),
            ("registers!=64", Some(false)),
            ("vgpr_spills>0", None),
            ("spills>0", None),
        ] {
            assert_eq!(rule(text).hits(&kernel), hits, "{text}");
        }
    }

    #[test]
    fn a_number_that_is_not_known_hits_where_it_may() {
        let kernel = Kernel { private_memory: Stored::Unknown(16), ..Kernel::default() };
        for (text, hits) in [
            ("stack>1M", true),
            ("stack>0", true),
            ("stack<16", false),
            ("stack<17", true),
            ("stack==16", true),
        ] {
            assert_eq!(rule(text).hits(&kernel), Some(hits), "{text}");
        }
    }

    #[test]
    fn texts_that_are_not_rules_are_refused() {
        for (text, error) in [
            ("spills", "'spills' is not a rule: expected one such as vgpr_spills>0"),
            ("time>1", "'time' is not a measure: expected one of code, registers, "),
            ("code>1G", "'1G' is not a number: expected one such as 0, 64 or 48K"),
            ("code>", "'' is not a number"),
            ("code=1", "'code=1' is not a rule"),
        ] {
            let found = text.parse::<KernelRule>().unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
        assert_eq!(alloc::string::ToString::to_string(&rule("lds >= 48k")), "group>=49152");
    }
}
