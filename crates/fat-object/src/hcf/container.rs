//! HCF containers of AdaptiveCpp, as a walk enters them.

use std::io;
use std::ops::Range;
use std::vec;

use super::{Hcf, HcfImage};
use device_code::FileFormat;
use target_id::{OffloadKind, Target};

use crate::context::Context;
use crate::error::Error;
use crate::image::Description;
use crate::image_target;
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Container, Finds, Opened};
use crate::source::Source;

/// Reads the text at the start of the window.
fn text(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Result<Vec<u8>, super::Error>> {
    const FIRST: u64 = 4096;
    let available = window.end - window.start;
    let mut prefix = Vec::new();
    loop {
        let read = prefix.len() as u64;
        let len = (2 * read).max(FIRST).min(available);
        source.append_range(&(window.start + read..window.start + len), &mut prefix)?;
        let text_len = match super::text(&prefix, available) {
            Ok(None) => continue,
            Ok(Some(text)) => text.len(),
            Err(error) => return Ok(Err(error)),
        };
        prefix.truncate(text_len);
        return Ok(Ok(prefix));
    }
}

/// Returns the size of the container at the start of the window; `None` if it is malformed or empty. Adds the bytes it
/// reads to `read`.
pub(crate) fn size(
    source: &mut Source<'_>,
    window: &Range<u64>,
    _: &[u8],
    read: &mut u64,
) -> io::Result<Option<u64>> {
    let text = match text(source, window)? {
        Ok(text) => text,
        Err(error) => {
            *read += error.offset();
            return Ok(None);
        }
    };
    *read += text.len() as u64;
    let hcf = Hcf::parse(&text, window.end - window.start).ok();
    let sound = hcf.filter(|hcf| hcf.faults.is_empty() && !hcf.images.is_empty());
    Ok(sound.map(|hcf| hcf.end))
}

/// Opens the container at the start of the window. Its end is unknown if an image in it is damaged.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Error>> {
    let start = window.start;
    let parsed = text(source, window)?.and_then(|text| Hcf::parse(&text, window.end - start));
    let Hcf { images, faults, end, .. } = match parsed {
        Ok(hcf) => hcf,
        Err(error) => return Ok(Err(Error::malformed(ContainerKind::Hcf, error.to_string()))),
    };
    let sound_end = faults.is_empty().then_some(start + end);
    let images = Images { start, faults, images: images.into_iter() };
    let step = PathStep::new(ContainerKind::Hcf, ordinal.to_string());
    Ok(Ok((Opened::here(step, start..start + end, images), sound_end)))
}

/// Returns the number of bytes of all names of an image.
fn names_of(image: &HcfImage) -> u64 {
    let kernels = image.kernels().map(|name| name.len() as u64).sum::<u64>();
    kernels + (image.node().len() + image.format().map_or(0, str::len)) as u64
}

/// The images of a container.
struct Images {
    start: u64,
    faults: Vec<super::Error>,
    images: vec::IntoIter<HcfImage>,
}

impl Children for Images {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        for fault in self.faults.drain(..) {
            found.finding(self.start, Error::malformed(ContainerKind::Hcf, fault.to_string()));
        }
        let Some(image) = self.images.next() else { return Ok(false) };
        if let Err(error) = cx.take_names(names_of(&image)) {
            found.finding(self.start, error);
            return Ok(false);
        }
        let range = image.range();
        let window = self.start + range.start..self.start + range.end;
        let own = match FileFormat::sniff(&source.peek(&window, FileFormat::SNIFF_LEN)?) {
            // It has the triple of the host: code for all GPUs is made of it.
            FileFormat::Bitcode => None,
            format => image_target::of_window(source, &window, format)?,
        };
        let triple = own.as_ref().and_then(Target::triple).cloned();
        let id = own.as_ref().map_or("", Target::id);
        let target = Target::new(Some(OffloadKind::Sycl), triple, id);
        let mut description = Description::new(ContainerKind::Hcf, target.into());
        description.info.offset_in_container = range.start;
        description.info.hcf = Some(image.into());
        found.image(window, description);
        Ok(true)
    }
}
