//! Promises of the public types, for any contents: if one is broken, this file does not compile.
#![forbid(unsafe_code)]

use device_code::{Candidate, Fault, FileFormat};
use llvm_bitcode::Unreadable;

samples::promises! {
    sent: Candidate<'static>, Fault, Unreadable;
    value: FileFormat;
    copied: FileFormat;
    displayed: FileFormat;
}
