//! Options of a split of a wheel, and its result.

use std::path::{Path, PathBuf};

use device_select::{FileReader, PackageGroup};
use fat_edit::Split;
use kpack::Scheme;
use tool_inputs::limits::Limits;

/// Options of a split of a wheel into a host wheel, and a device wheel for each GPU and each group of GPUs with files.
#[derive(Debug)]
pub struct WheelSplit<'a> {
    /// The directory for the wheels, made if it does not exist.
    pub output: &'a Path,
    /// The directory in the wheel with the libraries, below which `.kpack` lies: the one top directory with libraries to be split by
    /// default; `.` is the root of the wheel.
    pub overlay_root: Option<&'a str>,
    /// The start of the names of device packages, to which `-gfx942` is added: the name of the wheel with `-device` by default.
    pub device_prefix: Option<&'a str>,
    /// Further requirements of device wheels. Requirements with `@GFXARCH@` are for wheels of one GPU.
    pub device_requires: &'a [String],
    /// Libraries whose files for single GPUs move to device wheels.
    pub readers: &'a [FileReader],
    /// The form of packs.
    pub scheme: Scheme,
    /// The level of zstd.
    pub level: i32,
    /// The program, as device wheels name it.
    pub generator: &'a str,
    /// Split a wheel with findings of `offload verify`.
    pub allow_findings: bool,
    /// Split a signed wheel, and signed libraries, which lose their signatures.
    pub drop_signature: bool,
    /// Limits of memory and threads.
    pub limits: &'a Limits,
}

/// Result of a split of a wheel.
#[derive(Debug)]
pub struct WheelParts {
    /// The host wheel.
    pub host: PathBuf,
    /// Its size in bytes.
    pub host_size: u64,
    /// In the order of the keys of their groups.
    pub devices: Vec<DeviceWheel>,
    /// The libraries that lost their device code.
    pub members: Vec<SplitMember>,
    /// The targets of packs, and of files that moved, in order.
    pub targets: Vec<String>,
    /// Findings of the wheel, which are allowed.
    pub findings: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A device wheel.
#[derive(Debug)]
pub struct DeviceWheel {
    /// Its GPUs.
    pub group: PackageGroup,
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The number of its packs.
    pub packs: usize,
    /// The number of their code objects.
    pub images: u64,
    /// The number of other files.
    pub files: usize,
}

/// A library of a wheel that lost its device code.
#[derive(Debug)]
pub struct SplitMember {
    /// The path in the wheel.
    pub path: String,
    /// The size before, in bytes.
    pub size: u64,
    /// The library without device code.
    pub split: Split,
}
