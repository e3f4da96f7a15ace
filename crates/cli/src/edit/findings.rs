//! Findings of a file that is to be edited.

use tool_kit::failure::Failure;

/// The most findings that are warned of one by one.
const MOST: usize = 5;

/// The rule for files with findings of `offload verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Findings {
    Refused,
    /// With `--allow-findings`.
    Allowed,
}

impl Findings {
    /// Returns warnings about findings that are allowed.
    ///
    /// # Errors
    ///
    /// There are findings, and they are refused.
    pub(super) fn allow(self, findings: &[impl ToString]) -> Result<Vec<String>, Failure> {
        let advice = "allow editing with --allow-findings";
        match (self, findings) {
            (_, []) => Ok(Vec::new()),
            (Findings::Refused, [finding]) => {
                Err(format!("{} ({advice})", finding.to_string()).into())
            }
            (Findings::Refused, [first, ..]) => {
                Err(format!("{} ({} findings; {advice})", first.to_string(), findings.len()).into())
            }
            (Findings::Allowed, _) => {
                let mut warnings: Vec<_> =
                    findings.iter().take(MOST).map(ToString::to_string).collect();
                if let Some(more) = findings.len().checked_sub(MOST).filter(|&n| n > 0) {
                    warnings.push(format!("{more} more findings of `offload verify`"));
                }
                Ok(warnings)
            }
        }
    }
}
