//! COFF objects: their headers and symbols, and without some of their sections. From Microsoft's "PE Format".

mod file;
mod header;
mod remove;
mod symbol;

pub(crate) use file::{Object, STRING_SIZE_LEN};
pub(crate) use header::{Header, Section, long_name};
use object::{LittleEndian, U32};
pub(crate) use remove::remove;
pub(crate) use symbol::Symbol;

use crate::error::Error;
use crate::pod::LE;

pub(crate) const FORMAT: &str = "COFF";
pub(crate) const LIMIT: u64 = u32::MAX as u64;

pub(crate) fn narrow(value: u64) -> Result<U32<LittleEndian>, Error> {
    u32::try_from(value).map(|value| U32::new(LE, value)).map_err(|_| too_large(value))
}

pub(crate) fn too_large(value: u64) -> Error {
    Error::too_large(FORMAT, value, LIMIT)
}
