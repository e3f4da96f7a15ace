//! Rules about kernels, for gates.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
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
/// let kernels = kernels(ptx).and_then(|found| found.kernels).unwrap();
/// assert_eq!(rule.hits(&kernels[0]), Some(true));
/// let rule: KernelRule = "vgpr_spills>0".parse()?;
/// assert_eq!(rule.hits(&kernels[0]), None);
/// # Ok::<(), device_code::NotARule>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRule {
    measure: Measure,
    comparison: Comparison,
    bound: Bound,
}

/// The number of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Number(u64),
    /// Percent that are added to the earlier number.
    Growth(u64),
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

    /// Returns whether the rule compares with an earlier number: `code>+5%`.
    #[must_use]
    pub fn is_relative(&self) -> bool {
        matches!(self.bound, Bound::Growth(_))
    }

    /// Returns whether the rule hits a number that was another one before. A rule that is not
    /// [relative](Self::is_relative) takes the new one.
    #[must_use]
    pub fn hits_change(&self, old: u64, new: u64) -> bool {
        match self.bound {
            Bound::Number(number) => self.compare(new.into(), number.into()),
            Bound::Growth(percent) => {
                let bound = u128::from(old) * (100 + u128::from(percent));
                self.compare(u128::from(new) * 100, bound)
            }
        }
    }

    /// Returns whether the rule hits a kernel; `None` if the kernel does not have the number. A number that is known to be at
    /// least some other one hits if that may be so. A [relative](Self::is_relative) rule hits none.
    #[must_use]
    pub fn hits(&self, kernel: &Kernel<'_>) -> Option<bool> {
        match self.measure.of(kernel) {
            Stored::Absent => None,
            Stored::Known(number) => Some(!self.is_relative() && self.hits_change(0, number)),
            Stored::Unknown(least) => {
                let grows = matches!(
                    self.comparison,
                    Comparison::More | Comparison::AtLeast | Comparison::NotEqual
                );
                Some(!self.is_relative() && (grows || self.hits_change(0, least)))
            }
        }
    }

    fn compare(&self, number: u128, bound: u128) -> bool {
        match self.comparison {
            Comparison::More => number > bound,
            Comparison::AtLeast => number >= bound,
            Comparison::Less => number < bound,
            Comparison::AtMost => number <= bound,
            Comparison::Equal => number == bound,
            Comparison::NotEqual => number != bound,
        }
    }
}

/// The reason why a text is not a [`KernelRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotARule {
    /// The text has no comparison.
    #[error("'{0}' is not a rule: expected one such as vgpr_spills>0")]
    Malformed(String),
    /// The text before the comparison.
    #[error("'{0}' is not a measure: expected one of {names}", names = measures())]
    Measure(String),
    /// The text after the comparison.
    #[error("'{0}' is not a number: expected one such as 0, 64, 48K or +5%")]
    Number(String),
}

/// Returns the names of all measures.
fn measures() -> String {
    Measure::all().map(Measure::name).collect::<Vec<_>>().join(", ")
}

/// Reads a rule such as `vgpr_spills>0`, `lds >= 48k` or `code>+5%`. The comparisons are `>`, `>=`, `<`, `<=`, `==` and `!=`; K is 1024,
/// M is 1024 K.
impl FromStr for KernelRule {
    type Err = NotARule;

    fn from_str(text: &str) -> Result<Self, NotARule> {
        let found = text.find(['>', '<', '=', '!']).and_then(|at| {
            let (name, rest) = text.split_at_checked(at)?;
            let (sign, comparison) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign))?;
            Some((name.trim(), *comparison, rest.get(sign.len()..)?.trim()))
        });
        let (name, comparison, number) =
            found.ok_or_else(|| NotARule::Malformed(text.to_owned()))?;
        let measure = Measure::from_name(name).ok_or_else(|| NotARule::Measure(name.to_owned()))?;
        let bound = match number.strip_prefix('+').and_then(|text| text.strip_suffix('%')) {
            Some(percent) => percent.parse().ok().map(Bound::Growth),
            None => read(number).map(Bound::Number),
        };
        let bound = bound.ok_or_else(|| NotARule::Number(number.to_owned()))?;
        Ok(KernelRule { measure, comparison, bound })
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
        match self.bound {
            Bound::Number(number) => write!(f, "{}{sign}{number}", self.measure),
            Bound::Growth(percent) => write!(f, "{}{sign}+{percent}%", self.measure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

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
    fn growth_is_in_percent_of_what_was() {
        let more = rule("code>+5%");
        assert!(more.is_relative() && !rule("code>5").is_relative());
        for (old, new, hits) in
            [(100, 105, false), (100, 106, true), (0, 0, false), (0, 1, true), (200, 100, false)]
        {
            assert_eq!(more.hits_change(old, new), hits, "{old} {new}");
        }
        let kernel = Kernel { code_size: Some(1), ..Kernel::default() };
        assert_eq!(more.hits(&kernel), Some(false));
        assert!(rule("registers>=64").hits_change(0, 64));
        assert_eq!(more.to_string(), "code>+5%");
    }

    #[test]
    fn texts_that_are_not_rules_are_refused() {
        for (text, error) in [
            ("spills", "'spills' is not a rule: expected one such as vgpr_spills>0"),
            ("time>1", "'time' is not a measure: expected one of code, registers, "),
            ("code>1G", "'1G' is not a number: expected one such as 0, 64, 48K or +5%"),
            ("code>", "'' is not a number"),
            ("code=1", "'code=1' is not a rule"),
        ] {
            let found = text.parse::<KernelRule>().unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
        assert_eq!(rule("lds >= 48k").to_string(), "group>=49152");
    }
}
