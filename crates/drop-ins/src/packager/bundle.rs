//! Packing: from files and what is said of them to one offload binary.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use byte_parts::Layout;
use ccob::{Method, WriteOptions};
use offload_binary::llvm::{self, Release, string_order};
use offload_binary::{FormatVersion, ImageEntry};

use super::options::ImageSpec;
use tool_kit::input;
use tool_kit::opened::MaxInput;
use tool_kit::payload::{Payload, Payloads, at};
use tool_kit::permissions::NewPermissions;

/// An offload binary whose inputs were all found, and that only needs to be written.
pub struct Package {
    version: FormatVersion,
    layout: Layout,
    inputs: Vec<Payload>,
    compressed: Option<Vec<u8>>,
}

impl fmt::Debug for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Package")
            .field("version", &self.version)
            .field("layout", &self.layout)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

impl Package {
    /// Looks at every input and lays out the offload binary. Nothing is written yet.
    ///
    /// Strings are stored in the order of the LLVM release that writes this version of the format.
    pub fn new(
        specs: &[ImageSpec],
        version: FormatVersion,
        release: Release,
        max: MaxInput,
    ) -> io::Result<Self> {
        let order_of = match version {
            FormatVersion::V1 => Release::Llvm22,
            _ => Release::Llvm23,
        };
        let mut inputs: Vec<Payload> = Vec::new();
        let mut entries = Vec::new();
        for spec in specs {
            let pairs: Vec<_> = spec.pairs().collect();
            let strings: Vec<_> = string_order(order_of, &spec.keys())
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
                    .with_image_kind(llvm::image_kind(release, &head, &name))
                    .with_offload_kind(spec.kind().unwrap_or(offload_binary::OffloadKind::NONE));
                entry.strings.clone_from(&strings);
                entries.push(entry);
                inputs.push(input);
            }
        }
        let layout = offload_binary::layout(version, &entries).map_err(io::Error::other)?;
        Ok(Package { version, layout, inputs, compressed: None })
    }

    /// Compresses the offload binary, which is of version 3, in memory.
    pub fn compress(&mut self, how: &WriteOptions) -> io::Result<()> {
        let refused = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let version = self.version;
        if version != FormatVersion::V3 {
            return Err(refused(format!(
                "packages of version {version} cannot be compressed: expected version 3"
            )));
        }
        // zlib takes no other, and -1 for its own choice.
        let levels = -1..=9;
        if let Some(level) = how.level().filter(|level| !levels.contains(level))
            && how.method() == Method::ZLIB
        {
            return Err(refused(format!(
                "zlib compression level {level} is out of range: expected -1 to 9"
            )));
        }
        let level = how.level().filter(|level| (how.method(), *level) != (Method::ZLIB, -1));
        let how = how.clone().with_level(level);
        let mut plain = Vec::new();
        let size = usize::try_from(self.layout.size()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        plain.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.write_to(&mut plain)?;
        self.compressed = Some(fat_edit::compress_offload_binary(&plain, &how)?);
        Ok(())
    }

    /// Returns the size of the offload binary in bytes.
    pub fn size(&self) -> u64 {
        self.compressed.as_ref().map_or(self.layout.size(), |bytes| bytes.len() as u64)
    }

    /// Returns the permissions for the offload binary.
    pub fn permissions(&self) -> NewPermissions {
        NewPermissions::of_all(self.inputs.iter().map(Payload::permissions))
    }

    /// Returns the inputs with the sizes of their images.
    pub fn images(&self) -> impl ExactSizeIterator<Item = (&Path, u64)> {
        self.inputs.iter().map(|input| (input.path(), input.size()))
    }

    /// Writes the offload binary. Images go from file to file; where both are files, the kernel copies.
    pub fn write_to<W: Write>(&mut self, out: &mut W) -> io::Result<()> {
        if let Some(bytes) = &self.compressed {
            out.write_all(bytes)?;
            return out.flush();
        }
        self.layout.parts().write_to(&mut Payloads(self.inputs.iter_mut().collect()), out)?;
        out.flush()
    }
}
