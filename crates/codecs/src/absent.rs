//! A codec that this build lacks.

#![allow(dead_code, reason = "not every codec needs everything")]

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::input::{Grown, Input};

fn no_codec<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::NoCodec, 0))
}

pub(crate) fn decode(_: &Input<'_>, _: Grown<'_>) -> Result<(Vec<u8>, usize), Error> {
    no_codec()
}

pub(crate) fn decode_into(_: &Input<'_>, _: &mut [u8], _: Grown<'_>) -> Result<usize, Error> {
    no_codec()
}

pub(crate) fn encode(_: &[u8], _: i32) -> Result<Vec<u8>, Error> {
    no_codec()
}

pub(crate) fn encode_code(_: &[u8], _: Option<i32>, _: u32, _: &mut Vec<u8>) -> Result<(), Error> {
    no_codec()
}
