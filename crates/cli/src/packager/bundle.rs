//! Packing: from files and what is said of them to one package.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use offload_binary::{
    FormatVersion, ImageEntry, ImageKind, Layout, LlvmRelease, Piece, llvm_order,
};

use super::options::ImageSpec;
use crate::input;
use crate::report::reason;

/// A package whose inputs were all found, and that only needs to be written.
#[derive(Debug)]
pub(crate) struct Package {
    layout: Layout,
    inputs: Vec<Input>,
}

/// A file that becomes an image.
#[derive(Debug)]
struct Input {
    path: PathBuf,
    size: u64,
    /// The contents of what can be read only once: standard input, pipes.
    spooled: Option<File>,
}

impl Package {
    /// Looks at every input and lays out the package. Nothing is written yet.
    ///
    /// Strings are stored in the order of the LLVM release that writes this version of the format.
    pub(crate) fn new(
        specs: &[ImageSpec],
        version: FormatVersion,
        release: LlvmRelease,
    ) -> io::Result<Self> {
        let order_of = match version {
            FormatVersion::V2 => LlvmRelease::Llvm23,
            _ => LlvmRelease::Llvm22,
        };
        let mut inputs: Vec<Input> = Vec::new();
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
                let again = path.as_os_str() == "-" && inputs.iter().any(|i| i.path == path);
                let opened = if again {
                    Err(io::Error::other("standard input can be one image only"))
                } else {
                    Input::open(&path)
                };
                let (input, head) = opened.map_err(|error| at(&path, &error))?;
                let name = String::from_utf8_lossy(file);
                let mut entry = ImageEntry::new(input.size)
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
        self.inputs.iter().map(|input| (&*input.path, input.size))
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

impl Input {
    /// The input and its first bytes. The file is closed again: there can be more than may be open at one time.
    fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = input::open_sized(path)?;
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        Read::take(&mut file, 4).read_to_end(&mut head)?;
        let keep = path.as_os_str() == "-" || !path.is_file();
        let spooled = keep.then_some(file);
        Ok((Input { path: path.to_owned(), size, spooled }, head))
    }

    fn copy_to<W: Write>(&mut self, out: &mut W) -> io::Result<()> {
        let mut opened;
        let file = match &mut self.spooled {
            Some(file) => file,
            None => {
                opened = File::open(&self.path).map_err(|error| at(&self.path, &error))?;
                &mut opened
            }
        };
        let changed = |found: u64| {
            let message = format!("has {found} bytes now, but had {}", self.size);
            at(&self.path, &io::Error::other(message))
        };
        file.rewind()?;
        let now = file.metadata()?.len();
        if now != self.size {
            return Err(changed(now));
        }
        let copied = io::copy(&mut file.take(self.size), out)?;
        if copied == self.size { Ok(()) } else { Err(changed(copied)) }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("'{}': {}", path.display(), reason(error)))
}
