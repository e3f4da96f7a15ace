//! Texts that name no device.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::few::few;

/// The reason why a text does not name a device.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotADevice {
    /// No text at all.
    Empty,
    /// A target ID that cannot be read.
    Malformed(target_id::Error),
    /// A name that no processor has, nor a future one could have.
    Unknown(String),
    /// A generic processor, which stands for several: its name and theirs.
    Generic(&'static str, Vec<&'static str>),
    /// The name of portable code.
    Portable(String),
    /// A name of several products, or a part of their names, and these with their processors.
    Several {
        /// The text.
        typed: String,
        /// Products with their processors: `Quadro RTX 4000 (sm_75)`.
        choices: Vec<String>,
    },
    /// A PCI ID that is not in the table.
    UnknownPciId(String),
}

impl fmt::Display for NotADevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotADevice::Empty => f.write_str("expected a target ID such as gfx90a:xnack+ or sm_86"),
            NotADevice::Malformed(error) => error.fmt(f),
            NotADevice::Unknown(name) => write!(f, "unknown processor {name}"),
            NotADevice::Generic(name, covered) => {
                write!(f, "{name} is not a GPU, it stands for several: {}", few(covered))
            }
            NotADevice::Portable(name) => write!(f, "{name} is not a GPU, it is portable code"),
            NotADevice::Several { typed, choices } => {
                let listed = choices.get(..Self::MOST_CHOICES).unwrap_or(choices);
                write!(f, "{typed} names several GPUs: {}", listed.join(", "))?;
                match choices.len() - listed.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            NotADevice::UnknownPciId(id) => {
                write!(f, "no GPU with PCI ID {id} is known; expected a target ID")
            }
        }
    }
}

impl core::error::Error for NotADevice {}
