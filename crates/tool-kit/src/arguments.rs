//! Argument parsing that commands share and clap does not do.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;

use crate::{input, style};

/// Ends the process: the command line makes no sense.
pub fn usage(fault: &str) -> ! {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{}\n", style::printable(fault))).exit()
}

/// Returns an argument `ID=FILE`.
pub fn split(argument: &OsString) -> Result<(Vec<u8>, PathBuf), String> {
    let bytes = input::bytes(argument.clone());
    let mut parts = bytes.splitn(2, |&byte| byte == b'=');
    match (parts.next(), parts.next()) {
        (Some(id), Some(file)) if !id.is_empty() && !file.is_empty() => {
            Ok((id.to_vec(), input::path(file)))
        }
        _ => Err(format!("'{}': expected ID=FILE", argument.display())),
    }
}
