//! The page of results.

use std::error::Error;
use std::path::Path;

use crate::bench::Bench;

pub(crate) fn check(_path: &Path) -> Result<(), Box<dyn Error>> {
    Ok(())
}

pub(crate) fn write(_path: &Path, _bench: &Bench) -> Result<(), Box<dyn Error>> {
    Ok(())
}
