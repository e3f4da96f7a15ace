//! Device wheels.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;

use device_select::PackageGroup;
use gpu_packages::{NewWheel, Storing, WheelMetadata, Zip};
use kpack::Scheme;
use tool_kit::positioned::Positioned;

use super::contents::Contents;
use super::packs::Pack;
use super::texts::{device_metadata, device_name};

/// The permissions of packs.
const MODE: u16 = 0o644;

/// The level of published wheels.
const LEVEL: u32 = 6;

/// The wheel of a group of GPUs in the making.
pub(super) struct Device {
    pub(super) group: PackageGroup,
    pub(super) packs: Vec<Pack>,
    /// Members of the wheel that is split.
    pub(super) files: Vec<usize>,
}

/// Values that all device wheels of a split share.
pub(super) struct Shared<'a> {
    pub(super) zip: &'a Zip,
    pub(super) reader: Positioned<'a>,
    pub(super) host: &'a WheelMetadata,
    pub(super) contents: &'a Contents,
    pub(super) prefix: &'a str,
    pub(super) requires: &'a [String],
    pub(super) scheme: Scheme,
    pub(super) generator: &'a str,
    pub(super) threads: NonZeroUsize,
}

impl Device {
    /// Returns the wheel of a group among others, by the keys of their groups.
    pub(super) fn of(devices: &mut BTreeMap<String, Self>, group: PackageGroup) -> &mut Self {
        let key = group.key().to_owned();
        devices.entry(key).or_insert_with(|| Device { group, packs: Vec::new(), files: Vec::new() })
    }

    /// Writes the wheel.
    pub(super) fn write(
        &self,
        shared: &Shared<'_>,
        out: &mut File,
    ) -> Result<(), gpu_packages::Error> {
        let Shared { zip, reader, host, contents, prefix, threads, .. } = *shared;
        let name = device_name(prefix, &self.group);
        let mut wheel = NewWheel::new(out, &host.directory(&name))?;
        let storing = match shared.scheme {
            Scheme::Plain => Storing::Deflated(LEVEL),
            // Compressed once is enough.
            Scheme::Zstd => Storing::Plain,
        };
        for pack in &self.packs {
            let path = contents.path_of(pack);
            wheel.add(&path, MODE, pack.reader(), pack.size(), storing, threads)?;
        }
        for index in &self.files {
            wheel.copy(zip, *index, reader)?;
        }
        let metadata = device_metadata(host, prefix, &self.group, shared.requires);
        wheel.add_text("METADATA", &metadata)?;
        wheel.add_text("WHEEL", &host.wheel_text(shared.generator))?;
        if !contents.root.is_empty() {
            wheel.add_text("top_level.txt", &format!("{}\n", contents.root))?;
        }
        wheel.finish()?;
        Ok(())
    }
}
