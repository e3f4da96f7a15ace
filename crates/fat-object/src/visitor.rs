//! The consumer of a walk.

use std::io;

use crate::error::Finding;
use crate::image::Image;
use crate::model::{Container, Enter};
use crate::source::ReadSeek;

/// Receives what a [`walk`](crate::walk()) finds, in file order.
///
/// An error from any method ends the walk and becomes its result.
pub trait Visitor {
    /// Returns whether a container is to be opened. It is asked before anything in it is read or decompressed. Default:
    /// [`Enter::Open`].
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn opens(&mut self, container: &Container) -> Enter {
        Enter::Open
    }

    /// Enters a container; [`leave`](Visitor::leave) follows when all of its contents were visited. Not called for one
    /// that cannot be opened, which is a finding.
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        Ok(())
    }

    /// Visits an image.
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()>;

    /// Receives a finding. Default: ignores a warning; ends the walk at an error, as
    /// [`InvalidData`](io::ErrorKind::InvalidData) with the [`Finding`] inside.
    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        finding.error_only()
    }

    /// Leaves the container that was entered last.
    fn leave(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Opens the file that a thin archive names. `name` is what the archive stores: a path relative to the
    /// directory of the archive. Libraries know no files: the default refuses.
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
