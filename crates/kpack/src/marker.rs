//! The marker in a library without its device code.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use codecs::msgpack::Writer;

use crate::error::Error;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::msgpack::Reader;

/// The most bytes of a marker that ROCm's loader reads.
const MOST: usize = 64 << 10;

const PATHS: &str = "kpack_search_paths";

/// The marker in a library without its device code: one MessagePack map, to which all its wrappers lead.
///
/// ```
/// use kpack::Marker;
///
/// let marker = Marker::new("lib/libfoo.so", ["../.kpack/foo_@GFXARCH@.kpack"]);
/// let bytes = marker.to_vec()?;
/// assert_eq!(Marker::parse(&bytes)?, (marker, bytes.len()));
/// # Ok::<(), kpack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    kernel_name: String,
    search_paths: Vec<String>,
}

impl Marker {
    /// Creates a marker for the code objects of this name, in packs at these paths. Paths are relative to the directory of the
    /// library; `@GFXARCH@` is a placeholder for the target.
    pub fn new<P: Into<String>>(
        kernel_name: impl Into<String>,
        search_paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let search_paths = search_paths.into_iter().map(Into::into).collect();
        Marker { kernel_name: kernel_name.into(), search_paths }
    }

    /// Parses the marker at the start of the bytes, and returns it with its length in bytes. Unknown keys are skipped.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed): one of the keys `kpack_search_paths` and
    /// `kernel_name` is missing or there twice, or there is no path.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Error> {
        let mut reader = Reader::new(bytes.get(..MOST).unwrap_or(bytes), 0);
        let (mut name, mut paths) = (None, None);
        for _ in 0..reader.map("marker")? {
            let at = reader.offset();
            let key = reader.text("marker: a key")?;
            // Loaders take the first, AMD's Python tools the last.
            if (key == "kernel_name" && name.is_some()) || (key == PATHS && paths.is_some()) {
                return Err(Error::malformed(at, format!("marker: the key {key} is there twice")));
            }
            match key {
                "kernel_name" => name = Some(reader.text("kernel_name")?.to_string()),
                PATHS => {
                    let count = reader.array(PATHS)?;
                    let read = (0..count).map(|_| Ok(reader.text(PATHS)?.to_string()));
                    paths = Some(read.collect::<Result<Vec<String>, Error>>()?);
                }
                _ => {
                    reader.skip()?;
                }
            }
        }
        let missing = |key| Error::malformed(0, format!("marker: expected the key {key}"));
        let kernel_name = name.ok_or_else(|| missing("kernel_name"))?;
        let search_paths = paths.filter(|paths| !paths.is_empty());
        let search_paths = search_paths.ok_or_else(|| missing(PATHS))?;
        Ok((Marker { kernel_name, search_paths }, reader.position()))
    }

    /// Returns the name that its code objects have in packs, before the `#`.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        &self.kernel_name
    }

    /// Returns the paths of packs, with `@GFXARCH@` for the target.
    #[must_use]
    pub fn search_paths(&self) -> &[String] {
        &self.search_paths
    }

    /// Returns the bytes, as AMD's tools write them.
    ///
    /// # Errors
    ///
    /// [`Limit`](ErrorKind::Limit) for a name or a path of more than 4 GiB.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut out = Writer::new();
        out.map(2);
        out.text(PATHS);
        out.array(self.search_paths.len());
        self.search_paths.iter().for_each(|path| out.text(path));
        out.text("kernel_name");
        out.text(&self.kernel_name);
        Ok(out.finish()?)
    }
}
