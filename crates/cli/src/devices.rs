//! Devices and their names, and the one rule for which images a device could load, behind `offload match` and `offload
//! thin`.
//!
//! Knows devices and labels of images; no files, no arguments.

mod device;
mod fit;
mod products;

pub(crate) use device::{Device, NotADevice, States, Vendor, may_be_processor};
pub(crate) use fit::{Code, Fit, agree};
pub(crate) use products::{Product, target_id};
