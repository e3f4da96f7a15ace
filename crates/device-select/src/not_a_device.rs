//! Texts that name no device.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::few::few;

/// The reason why a text does not name a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotADevice {
    /// No text at all.
    #[error("expected a target ID such as gfx90a:xnack+ or sm_86")]
    Empty,
    /// A target ID that cannot be read.
    #[error("{0}")]
    Malformed(target_id::Error),
    /// A name that no processor has, nor a future one could have.
    #[error("unknown processor {0}")]
    Unknown(String),
    /// A generic processor, which covers several: its name and the names of those processors.
    #[error("{} is not a GPU, it covers several: {}", .0, few(.1))]
    Generic(&'static str, Vec<&'static str>),
    /// The name of portable code.
    #[error("{0} is not a GPU, it is portable code")]
    Portable(String),
    /// A name of several products, or a part of their names, and these with their processors.
    #[error("{typed} names several GPUs: {}", listed(.choices))]
    Several {
        /// The text.
        typed: String,
        /// Products with their processors: `Quadro RTX 4000 (sm_75)`.
        choices: Vec<String>,
    },
    /// A GPU of Apple's.
    #[error(
        "{0} is a GPU of Apple's: its code is in Metal libraries, which are listed but not judged"
    )]
    Apple(String),
    /// A PCI ID that is not in the table.
    #[error("no GPU with PCI ID {0} is known; expected a target ID")]
    UnknownPciId(String),
}

/// Returns the first choices, and the number of the others.
fn listed(choices: &[String]) -> String {
    let listed = choices.get(..NotADevice::MOST_CHOICES).unwrap_or(choices);
    match choices.len() - listed.len() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}
