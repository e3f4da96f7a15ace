//! Code that the benchmarks share: tools, inputs, and measuring.
#![forbid(unsafe_code)]

pub mod hostile;

mod code;
mod measure;
mod tools;

pub use code::{DeviceCode, GPUS, machine_code};
pub use measure::{Sample, child, median, sample};
pub use tools::{build, llvm, run};
