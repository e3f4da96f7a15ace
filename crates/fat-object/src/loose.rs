//! Images in no container.

use std::io;
use std::ops::Range;

use device_code::FileFormat;

use crate::context::Context;
use crate::image::Description;
use crate::image_target;
use crate::model::ContainerKind;
use crate::opened::{Children, Finds};
use crate::source::Source;

/// An image in no container.
pub(crate) struct Loose {
    pub(crate) kind: ContainerKind,
    pub(crate) window: Range<u64>,
    pub(crate) format: FileFormat,
}

impl Children for Loose {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let target = image_target::of_window(source, &self.window, self.format)?;
        found.image(self.window.clone(), Description::of_loose(self.kind, target));
        Ok(false)
    }
}
