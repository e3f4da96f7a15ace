//! Reasons why a container cannot be laid out again.

use std::io;

use fat_object::{Error, PathStep};

use crate::error::Problem;
use crate::survey::Node;

#[derive(Debug)]
pub(super) enum RebuildError {
    Read(io::Error),
    Format(Error),
    Fatbin(nv_fatbin::Error),
    /// It has other entries than it had when the file was surveyed.
    Changed,
    /// The ID of an entry to be added names no architecture of NVIDIA.
    NoArchitecture,
    /// An image is to be replaced that is compressed together with others of its entry.
    Concatenated,
}

impl From<nv_fatbin::Error> for RebuildError {
    fn from(error: nv_fatbin::Error) -> Self {
        RebuildError::Fatbin(error)
    }
}

impl From<io::Error> for RebuildError {
    fn from(error: io::Error) -> Self {
        RebuildError::Read(error)
    }
}

pub(super) fn malformed(error: impl Into<Error>) -> RebuildError {
    RebuildError::Format(error.into())
}

impl RebuildError {
    /// Returns the error, of this container.
    pub(super) fn of(self, node: &Node, path: &[PathStep]) -> Problem {
        match self {
            RebuildError::Read(error) => Problem::from(error),
            RebuildError::Format(error) => Problem::damaged(path, node.location, error),
            RebuildError::Fatbin(error) => Problem::damaged_at(path, node.location, error),
            RebuildError::NoArchitecture => {
                let what = "the entry names no architecture of NVIDIA, expected sm_90 or compute_90 in its place";
                Problem::refused(path, what)
            }
            RebuildError::Concatenated => {
                let what = "an image that is compressed as one with others cannot be replaced";
                Problem::refused(path, what)
            }
            RebuildError::Changed => Problem::input_changed(),
        }
    }
}
