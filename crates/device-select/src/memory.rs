//! One fat binary in memory, as a runtime is given it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use bundle_format::{Bundle, EntryId};
use offload_binary::{CompressedBinary, ImageKind, binaries};
use target_id::{NvidiaArch, OffloadKind, Target};

use crate::device::Device;
use crate::order::{Order, best};

/// The first bytes of a compressed bundle.
const CCOB: &[u8] = b"CCOB";
/// The first bytes of a bundle.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The first bytes of an offload binary.
const OFFLOAD_BINARY: &[u8] = b"\x10\xff\x10\xad";
/// The first bytes of a frame of Zstandard.
const ZSTD: &[u8] = &0xfd2f_b528_u32.to_le_bytes();
/// Most bytes that an offload binary may have decompressed; of a bundle `ccob` has 2 GiB.
const MAX_UNCOMPRESSED: u64 = 4 << 30;

/// Kind of a [`LoadError`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// The bytes are neither a bundle, compressed or not, nor an offload binary.
    NotThisFormat,
    /// The container is damaged or truncated.
    Malformed,
    /// The container cannot be decompressed.
    Codec,
    /// The device leaves a feature open, and the image depends on it.
    OpenFeatures,
}

/// Error of [`load`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct LoadError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: LoadErrorKind,
    message: String,
}

impl LoadError {
    #[cold]
    fn new(kind: LoadErrorKind, message: impl Into<String>) -> Self {
        LoadError(Box::new(Inner { kind, message: message.into() }))
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> LoadErrorKind {
        self.0.kind
    }
}

/// Returns the image of a fat binary that the runtime loads on a device: a slice of `fat_binary`, or, if that is compressed,
/// decompressed bytes. `None` if it has none for the device.
///
/// A fat binary is a bundle, a compressed bundle (`CCOB`), or offload binaries one after the other. Bytes after it are
/// ignored. Names decide, as they do for runtimes: images are not looked into, except that empty ones are skipped.
///
/// ```
/// use device_select::{Device, load};
///
/// let fat_binary = std::fs::read("../../examples/data/hip.hipfb")?;
/// let gpu = Device::parse("amdgcn-amd-amdhsa--gfx1100")?; // as rocminfo prints it
/// let image = load(&fat_binary, &gpu)?.ok_or("no code for this GPU")?;
/// assert!(image.starts_with(b"\x7fELF"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The fat binary is malformed, or needs a codec that is not compiled in. Or `device` leaves open whether `xnack` or `sramecc`
/// is on, and the choice depends on it: the runtime asks the hardware.
pub fn load<'data>(
    fat_binary: &'data [u8],
    device: &Device,
) -> Result<Option<Cow<'data, [u8]>>, LoadError> {
    if fat_binary.starts_with(CCOB) {
        let bundle = ccob::decompress(fat_binary, &ccob::ReadOptions::default());
        let bundle = bundle.map_err(|error| codec(&error))?.data;
        let found = of_bundle(&bundle, true, device)?;
        return Ok(found.and_then(|range| cut(bundle, range)).map(Cow::Owned));
    }
    if fat_binary.starts_with(BUNDLE) {
        let found = of_bundle(fat_binary, false, device)?;
        return Ok(found.and_then(|range| fat_binary.get(range)).map(Cow::Borrowed));
    }
    if !fat_binary.starts_with(OFFLOAD_BINARY) {
        let text = "expected a bundle, a compressed bundle or an offload binary";
        return Err(LoadError::new(LoadErrorKind::NotThisFormat, text));
    }
    let available = fat_binary.len() as u64;
    let compressed = CompressedBinary::parse_prefix(fat_binary, available);
    if let Some(header) = compressed.map_err(|error| malformed(&error))? {
        let plain = inflate(fat_binary, &header)?;
        let found = of_binaries(&plain, device)?;
        return Ok(found.and_then(|range| cut(plain, range)).map(Cow::Owned));
    }
    let found = of_binaries(fat_binary, device)?;
    Ok(found.and_then(|range| fat_binary.get(range)).map(Cow::Borrowed))
}

fn codec(error: &ccob::Error) -> LoadError {
    LoadError::new(LoadErrorKind::Codec, error.to_string())
}

fn malformed(error: &impl ToString) -> LoadError {
    LoadError::new(LoadErrorKind::Malformed, error.to_string())
}

/// Decompresses an offload binary.
fn inflate(data: &[u8], header: &CompressedBinary) -> Result<Vec<u8>, LoadError> {
    let Range { start, end } = header.stream();
    let stream = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let stream = stream.and_then(|(start, end)| data.get(start..end));
    let stream = stream.ok_or_else(|| malformed(&"expected the stream in the offload binary"))?;
    let size = header.body_size();
    if size > MAX_UNCOMPRESSED {
        let text = format!(
            "decompressing this offload binary ({size} bytes) would exceed the limit of 4 GiB"
        );
        return Err(LoadError::new(LoadErrorKind::Codec, text));
    }
    let zstd = stream.starts_with(ZSTD);
    let method = if zstd { ccob::Method::ZSTD } else { ccob::Method::ZLIB };
    let body = ccob::decompress_stream(method, stream, size).map_err(|error| codec(&error))?;
    Ok([&header.plain_header()[..], &body].concat())
}

/// Returns the range of the image to load in a bundle.
fn of_bundle(
    data: &[u8],
    compressed: bool,
    device: &Device,
) -> Result<Option<Range<usize>>, LoadError> {
    let bundle = Bundle::parse(data).map_err(|error| malformed(&error))?;
    let mut images = Vec::new();
    for entry in bundle.entries() {
        // Entries whose IDs are not text are for no device.
        let id = entry.id_str().ok().and_then(|id| EntryId::parse(id).ok());
        if let (Some(id), Some(image)) = (id, range(entry.offset(), entry.size())) {
            images.push((id.target(), image));
        }
    }
    choose(&images, false, compressed, device)
}

/// Returns the range of the image to load in offload binaries.
fn of_binaries(data: &[u8], device: &Device) -> Result<Option<Range<usize>>, LoadError> {
    let mut images = Vec::new();
    for binary in binaries(data) {
        let (start, binary) = binary.map_err(|error| malformed(&error))?;
        for entry in binary.entries() {
            let target = entry.target();
            // PTX is compiled for any later GPU.
            let ptx = match entry.image_kind() {
                ImageKind::PTX => target.id().strip_prefix("sm_"),
                _ => None,
            };
            let target = match ptx.map(|sm| format!("compute_{sm}")) {
                Some(id) => Target::new(target.kind().cloned(), target.triple().cloned(), &id),
                None => target,
            };
            let image = range(start + entry.image_offset(), entry.image_size());
            images.extend(image.map(|image| (target, image)));
        }
    }
    choose(&images, true, false, device)
}

/// Returns `size` bytes at an offset; `None` if they cannot be in memory.
fn range(start: u64, size: u64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(size).ok()?)?)
}

fn choose(
    images: &[(Target, Range<usize>)],
    in_binaries: bool,
    compressed: bool,
    device: &Device,
) -> Result<Option<Range<usize>>, LoadError> {
    let is_ignored =
        |target: &Target| NvidiaArch::parse(target.id()).is_ok_and(|arch| device.ignores(arch));
    let images: Vec<_> = images
        .iter()
        .filter(|(target, image)| !target.is_host() && !image.is_empty() && !is_ignored(target))
        .collect();
    let order = match images.first().and_then(|(target, _)| target.kind()) {
        Some(OffloadKind::OpenMp) if in_binaries => Order::First,
        Some(OffloadKind::Hip | OffloadKind::HipV4) if !compressed => Order::FirstOfTier,
        Some(OffloadKind::Cuda) => Order::Driver,
        _ => Order::Best,
    };
    match best(order, images.iter().map(|(target, _)| target), device)[..] {
        [] => Ok(None),
        [(n, states)] if states == device.all_states() => {
            Ok(images.get(n).map(|(_, image)| image.clone()))
        }
        [(n, states), ..] => {
            let label = images.get(n).map_or("", |(target, _)| target.id());
            let name = device.name();
            Err(LoadError::new(
                LoadErrorKind::OpenFeatures,
                format!("{name} loads {label} if {}", device.condition(states)),
            ))
        }
    }
}

/// Returns a range of `data`, in its memory.
fn cut(mut data: Vec<u8>, range: Range<usize>) -> Option<Vec<u8>> {
    data.get(range.clone())?;
    data.truncate(range.end);
    data.drain(..range.start);
    Some(data)
}
