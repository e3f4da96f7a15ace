//! Detection of contents by their first bytes.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use device_code::FileFormat;

use crate::archive::Members;
use crate::bundle::{Text, is_text_ending_in_marker};
use crate::context::Context;
use crate::error::Error;
use crate::opened::{Children, Finds, Walked};
use crate::ranges::Ranges;
use crate::scan::{Scan, is_squashfs};
use crate::sequence::Sequence;
use crate::source::Source;
use crate::{archive, bare, bitcode, containers, host, kpack, other, wasm};

/// The first page of an SQLite database, which has its schema, is at most this long.
const SCHEMA: usize = 64 << 10;

/// The contents of a window: a container, a host file, an archive, or an image in no container.
pub(crate) struct Contents {
    window: Range<u64>,
    state: State,
    /// `true` if it has to be a container.
    is_container: bool,
    format: FileFormat,
    /// Containers that were entered before.
    before: usize,
}

enum State {
    Unknown,
    Known(Box<dyn Children>),
    Walked,
}

impl Contents {
    pub(crate) fn new(window: Range<u64>) -> Self {
        let (state, format) = (State::Unknown, FileFormat::Unknown);
        Contents { window, state, is_container: false, format, before: 0 }
    }

    /// Returns the contents of a compressed bundle.
    pub(crate) fn of_container(window: Range<u64>) -> Self {
        Contents { is_container: true, ..Self::new(window) }
    }

    /// Returns what is wrong with a header that hid containers.
    fn hid(&self, source: &mut Source<'_>) -> io::Result<Option<Error>> {
        match self.format {
            FileFormat::DirectX | FileFormat::MetalLibrary => {
                bare::shader(source, &self.window, self.format)
            }
            format @ FileFormat::Squashfs => Ok(Some(Error::embedded(format, 0))),
            _ => Ok(None),
        }
    }

    fn open(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<Option<Box<dyn Children>>> {
        let window = self.window.clone();
        let head = source.peek(&window, FileFormat::SNIFF_LEN)?;
        let format = FileFormat::sniff(&head);
        self.format = format;
        self.before = cx.entered;
        let is_host = format.may_hold_images() || cx.is_outside();
        Ok(match format {
            FileFormat::Bundle if bundle_format::text::is_text_bundle(&head) => {
                Some(Box::new(Text::new(window)))
            }
            format if containers::is_in_sequences(format) => {
                Some(Box::new(Sequence::new(window, false)))
            }
            FileFormat::Archive | FileFormat::Deb => match archive::open(cx, source, &window)? {
                Ok(members) => Some(Box::<Members>::new(members)),
                Err(error) => {
                    found.finding(window.start, error);
                    None
                }
            },
            FileFormat::Kpack => match kpack::open(cx, source, &window)? {
                Ok(keys) => Some(Box::new(keys)),
                Err(error) => {
                    found.finding(window.start, error);
                    None
                }
            },
            FileFormat::Wasm => wasm::open(cx, source, &window)?,
            FileFormat::Bitcode => Some(Box::new(bitcode::open(source, &window)?)),
            // The file itself may be a code object that was made the host of a bundle.
            FileFormat::Elf { .. }
            | FileFormat::Cubin
            | FileFormat::Coff
            | FileFormat::Pe
            | FileFormat::MachO
                if is_host =>
            {
                host::open(cx, source, &window, found)?
            }
            // Last, because it costs another reading. Anything may stand before the first marker.
            FileFormat::Unknown | FileFormat::Ptx | FileFormat::LinkerScript
                if is_text_ending_in_marker(source, &window, &head)? =>
            {
                self.format = FileFormat::Bundle;
                Some(Box::new(Text::new(window)))
            }
            // Only the databases of kernels are of interest.
            FileFormat::Sqlite if !other::is_kernel_database(&source.peek(&window, SCHEMA)?) => {
                self.format = FileFormat::Unknown;
                None
            }
            FileFormat::DirectX | FileFormat::MetalLibrary | FileFormat::Squashfs
                if cx.options.scan
                    && cx.is_outside()
                    && !source.is_start()
                    && !is_sound(source, &window, format)? =>
            {
                // Then it is not a magic.
                let mut walked = Ranges::default();
                walked.insert(&(0..4));
                Some(Box::new(Scan::new(window, &walked, Rc::new([]))))
            }
            FileFormat::Unknown if cx.is_outside() && !source.is_start() => {
                let (may_scan, scans) = (other::is_scanned(&head), cx.options.scan);
                cx.unsearched += usize::from(may_scan && !scans);
                (may_scan && scans).then(|| Box::new(Scan::of_file(window)) as Box<dyn Children>)
            }
            _ => None,
        })
    }
}

/// Returns whether the header of a shader or of a file system is in order. Anything may follow one that is not.
fn is_sound(source: &mut Source<'_>, window: &Range<u64>, format: FileFormat) -> io::Result<bool> {
    if format == FileFormat::Squashfs {
        let head = source.peek(window, FileFormat::SNIFF_LEN)?;
        return Ok(is_squashfs(&head, window.end - window.start));
    }
    Ok(bare::shader(source, window, format)?.is_none())
}

impl Children for Contents {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        match &mut self.state {
            State::Unknown => {
                self.state = match self.open(cx, source, found)? {
                    Some(children) => State::Known(children),
                    None => State::Walked,
                };
                return Ok(true);
            }
            State::Known(children) => {
                if !children.next(cx, source, found)? {
                    self.state = State::Walked;
                }
                return Ok(true);
            }
            State::Walked => {}
        }
        if cx.entered > self.before && cx.is_outside() {
            if let Some(error) = self.hid(source)? {
                found.finding(self.window.start, error);
            }
        } else if bare::may_be(self.format) && cx.is_outside() {
            bare::image(source, &self.window, self.format, found)?;
        }
        if self.is_container && !self.format.is_container() {
            let first = source.peek(&self.window, 8)?;
            found.finding(self.window.start, Error::unknown_contents(&first));
        }
        Ok(false)
    }

    fn left(&mut self, walked: Walked) {
        if let State::Known(children) = &mut self.state {
            children.left(walked);
        }
    }

    fn walked(&mut self) -> Walked {
        Walked { format: Some(self.format), ..Walked::default() }
    }
}
