//! Code that the benchmarks share: tools, inputs, and measuring.
#![forbid(unsafe_code)]

pub mod hostile;

mod code;
mod cuda;
mod limited;
mod measure;
mod tools;

pub use code::{Code, DeviceCode, GPUS, machine_code};
pub use cuda::{SMS, cubin, ptx};
pub use limited::{Outcome, limited};
pub use measure::{Sample, child, median, sample};
pub use tools::{build, llvm, nvidia, run};
