//! Variables of the environment that change which GPUs runtimes see, and what these pass for.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The GPUs that a list of visible ones leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Visible {
    /// These, by their positions, in this order.
    Only(Vec<usize>),
    /// The list names GPUs in another way than by position: `GPU-8932f937`.
    Unknown,
}

/// Returns which of `count` GPUs a value of `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES` leaves.
///
/// Positions are separated by commas. The list ends before the first that no GPU has, so that `-1` and no text at all leave none
/// ("CUDA Environment Variables" in NVIDIA's programming guide; "GPU isolation techniques" in AMD's documentation).
///
/// ```
/// use device_select::{Visible, visible_devices};
///
/// assert_eq!(visible_devices("1,0", 2), Visible::Only(vec![1, 0]));
/// assert_eq!(visible_devices("0,7,1", 2), Visible::Only(vec![0]));
/// assert_eq!(visible_devices("GPU-8932f937", 2), Visible::Unknown);
/// ```
#[must_use]
pub fn visible_devices(value: &str, count: usize) -> Visible {
    let mut positions = Vec::new();
    for word in value.split(',').map(str::trim) {
        if word.starts_with("GPU-") || word.starts_with("MIG-") {
            return Visible::Unknown;
        }
        match word.parse::<usize>() {
            Ok(position) if position < count && !positions.contains(&position) => {
                positions.push(position);
            }
            _ => break,
        }
    }
    Visible::Only(positions)
}

/// Returns the processor that a value of `HSA_OVERRIDE_GFX_VERSION` names, of three decimal numbers; `None` for another
/// text, which ROCm's runtime ignores or refuses.
///
/// ```
/// assert_eq!(device_select::overridden("10.3.0").as_deref(), Some("gfx1030"));
/// assert_eq!(device_select::overridden("9.0.10").as_deref(), Some("gfx90a"));
/// assert_eq!(device_select::overridden("gfx1030"), None);
/// ```
#[must_use]
pub fn overridden(value: &str) -> Option<String> {
    let mut numbers = value.trim().split('.').map(|number| number.parse::<u8>().ok());
    let (major, minor, stepping) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_one = numbers.next().is_none() && minor < 16 && stepping < 16;
    is_one.then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn lists_end_at_the_first_wrong_position() {
        let only = |value: &str| match visible_devices(value, 3) {
            Visible::Only(positions) => positions,
            Visible::Unknown => panic!("{value}"),
        };
        assert_eq!(only("2, 0"), [2, 0]);
        for (value, left) in
            [("", vec![]), ("-1", vec![]), ("3", vec![]), ("1,-1,0", vec![1]), ("0,0", vec![0])]
        {
            assert_eq!(only(value), left, "{value}");
        }
        assert_eq!(visible_devices("MIG-1", 3), Visible::Unknown);
    }

    #[test]
    fn overrides_are_three_numbers() {
        for bad in ["", "10.3", "10.3.0.0", "10.3.x", "10.16.0", "10.3.16", "300.0.0"] {
            assert_eq!(overridden(bad), None, "{bad}");
        }
        assert_eq!(overridden("11.5.1").as_deref(), Some("gfx1151"));
    }
}
