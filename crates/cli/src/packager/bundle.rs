//! Packing: from files and what is said of them to one package.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

use offload_binary::{
    FormatVersion, ImageEntry, ImageKind, Layout, LlvmRelease, Piece, llvm_order,
};

use super::options::ImageSpec;
use crate::input;
use crate::opened::MaxInput;
use crate::payload::{Payload, at};

/// A package whose inputs were all found, and that only needs to be written.
#[derive(Debug)]
pub(crate) struct Package {
    layout: Layout,
    inputs: Vec<Payload>,
}

impl Package {
    /// Looks at every input and lays out the package. Nothing is written yet.
    ///
    /// Strings are stored in the order of the LLVM release that writes this version of the format.
    pub(crate) fn new(
        specs: &[ImageSpec],
        version: FormatVersion,
        release: LlvmRelease,
        max: MaxInput,
    ) -> io::Result<Self> {
        let order_of = match version {
            FormatVersion::V2 => LlvmRelease::Llvm23,
            _ => LlvmRelease::Llvm22,
        };
        let mut inputs: Vec<Payload> = Vec::new();
        let mut entries = Vec::new();
        for spec in specs {
            let pairs: Vec<_> = spec.pairs().collect();
            let strings: Vec<_> = llvm_order(order_of, &spec.keys())
                .into_iter()
                .filter_map(|index| pairs.get(index))
                .map(|&(key, value)| (Cow::Borrowed(key), Cow::Borrowed(value)))
                .collect();
            let files = spec.get("file").filter(|files| !files.is_empty()).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "'file' is a required image arguments".to_owned(),
                )
            })?;
            for file in files.split(|&byte| byte == b',') {
                let path = input::path(file);
                let again = path.as_os_str() == "-" && inputs.iter().any(|i| i.path() == path);
                if again {
                    let error = io::Error::other("standard input can be one image only");
                    return Err(at(&path, &error));
                }
                let (input, head) = Payload::open(&path, max, 4)?;
                let name = String::from_utf8_lossy(file);
                let mut entry = ImageEntry::new(input.size())
                    .image_kind(ImageKind::detect_as(release, &head, &name))
                    .offload_kind(spec.kind().unwrap_or(offload_binary::OffloadKind::NONE));
                entry.strings.clone_from(&strings);
                entries.push(entry);
                inputs.push(input);
            }
        }
        let layout = Layout::new(version, &entries).map_err(io::Error::other)?;
        Ok(Package { layout, inputs })
    }

    /// Bytes of the package.
    pub(crate) fn size(&self) -> u64 {
        self.layout.total_size()
    }

    /// The inputs with the sizes of their images.
    pub(crate) fn images(&self) -> impl ExactSizeIterator<Item = (&Path, u64)> {
        self.inputs.iter().map(|input| (input.path(), input.size()))
    }

    /// Writes the package. Images go from file to file; where both are files, the kernel copies.
    pub(crate) fn write_to<W: Write>(&mut self, out: &mut W) -> io::Result<()> {
        for piece in self.layout.pieces() {
            match piece {
                Piece::Bytes(bytes) => out.write_all(bytes)?,
                Piece::Image(index) => {
                    if let Some(input) = self.inputs.get_mut(index) {
                        input.copy_to(out)?;
                    }
                }
                Piece::Zeros(count) => {
                    io::copy(&mut io::repeat(0).take(count), out)?;
                }
            }
        }
        out.flush()
    }
}
