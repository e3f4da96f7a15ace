//! Bundles in the object form: every entry is a section of the host object, named after its ID.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

use bundle_format::MAGIC_TEXT;
use fat_object::{FileFormat, Image, Location};
use object_edit::{HostObject, NewSections, remove_sections};

use crate::error::{Error, Problem};

/// Contents of the section that marks the host object itself, as clang-offload-bundler 22 writes it.
pub const HOST_PLACEHOLDER: &[u8] = &[0];

/// Lays out `object` with the entries of a bundle in its sections: each entry has an ID and a size in bytes.
///
/// This is what `clang-offload-bundler --type=o` makes of a host object, in the *Clang Offload Bundler* documentation's terms the
/// object form. Sections are named `__CLANG_OFFLOAD_BUNDLE__` and the bundle entry ID, in the order given. The host's own entry
/// is a section that holds [`HOST_PLACEHOLDER`]. [`NewSections`] says how the sections lie in the file.
///
/// LLVM has no object form for WebAssembly. These modules get a custom section for each entry after everything else, with the
/// same name. LLVM's bundler lists and unbundles them. A link copies them into its output.
///
/// Nothing says that an ID must be sound or occur once: the bundle's rules are its maker's to check.
///
/// ```no_run
/// use fat_edit::{HOST_PLACEHOLDER, object_bundle};
///
/// let host = std::fs::read("host.o")?;
/// let mut image = std::fs::File::open("gfx90a.out")?;
/// let entries = [
///     ("host-x86_64-unknown-linux-gnu-", 1),
///     ("hip-amdgcn-amd-amdhsa--gfx90a", image.metadata()?.len()),
/// ];
/// let bundle = object_bundle(&host, &entries)?;
/// let contents: [&mut dyn std::io::Read; 2] = [&mut &*HOST_PLACEHOLDER, &mut image];
/// bundle.write_to(std::fs::File::create("fat.o")?, contents)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Host`](crate::ErrorKind::Host) with what [`NewSections::new`] refuses, and
/// [`Refused`](crate::ErrorKind::Refused) for an ID that has a zero byte.
pub fn object_bundle<'a>(
    object: &'a [u8],
    entries: &[(impl AsRef<str>, u64)],
) -> Result<NewSections<'a>, Error> {
    for (index, (id, _)) in entries.iter().enumerate() {
        if let Some(offset) = id.as_ref().bytes().position(|byte| byte == 0) {
            let what = format!(
                "bundle entry ID {index} has a zero byte at {offset}, which a section name cannot hold"
            );
            return Err(Problem::refused(&[], what).into());
        }
    }
    let named = entries.iter().map(|(id, size)| (format!("{MAGIC_TEXT}{}", id.as_ref()), *size));
    let sections = NewSections::new(object, &named.collect::<Vec<_>>());
    Ok(sections.map_err(Problem::from)?)
}

/// Returns the host object of a bundle in the object form: `object` without the sections of the bundle.
/// [`remove_sections`] describes the result.
///
/// ```
/// assert!(fat_edit::remove_bundle_sections(b"!<arch>\n").is_err());
/// ```
///
/// # Errors
///
/// [`Host`](crate::ErrorKind::Host) with what [`remove_sections`] refuses.
pub fn remove_bundle_sections(object: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    Ok(remove_sections(object, MAGIC_TEXT).map_err(Problem::from)?)
}

/// The host object for which a placeholder stands.
#[non_exhaustive]
pub enum PlacedHost {
    /// Ranges of the walked file.
    InFile(HostObject),
    /// In memory, as the object lies in a compressed container or a thin archive.
    Bytes(Vec<u8>),
}

impl fmt::Debug for PlacedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacedHost::InFile(plan) => f.debug_tuple("InFile").field(plan).finish(),
            PlacedHost::Bytes(bytes) => f.debug_tuple("Bytes").field(&bytes.len()).finish(),
        }
    }
}

/// Returns the host object that an image marks; `None` for other images than
/// [placeholders](FileFormat::HostPlaceholder).
///
/// # Errors
///
/// Errors of reading; [`InvalidData`](io::ErrorKind::InvalidData) for an object that is malformed.
pub fn host_object(image: &mut Image<'_, '_>) -> io::Result<Option<PlacedHost>> {
    if image.format() != FileFormat::HostPlaceholder {
        return Ok(None);
    }
    let place = image.location();
    if let (Location::File(_), Some((source, object))) = (place, image.object_source()) {
        let host = HostObject::plan(source, &object, MAGIC_TEXT)?;
        return Ok(Some(PlacedHost::InFile(host)));
    }
    let mut object = Vec::new();
    if let Some(mut reader) = image.enclosing_object() {
        reader.read_to_end(&mut object)?;
    }
    let host = remove_bundle_sections(&object);
    let host = host.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(PlacedHost::Bytes(host.into_owned())))
}

/// Returns whether no section of this name is loaded with a linked file.
pub(crate) fn is_never_loaded(name: &str) -> bool {
    name.starts_with(MAGIC_TEXT) || name.starts_with(".llvm.offloading")
}
