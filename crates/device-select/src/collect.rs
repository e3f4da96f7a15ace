//! Sorting the images of a file into units.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::HashMap;
use std::io::{self, Read, Seek};

use fat_object::{Container, ContainerKind, Image, Location, Options, PathStep, Visitor, walk};

use crate::candidate::Candidate;
use crate::runtime::Runtime;
use crate::unit::Unit;

/// Sections of device code that HIP's wrappers lead to: each bundle or offload binary in them is registered by itself.
const REGISTERED_SECTIONS: [&str; 3] = [".hip_fatbin", ".hip_fat", "__hip_fatbin"];

/// Linkers align what is registered by itself to this.
const PAGE: u64 = 4096;

/// The container of a unit, its runtime, whether a scan found it, whether it has graphics shaders, and its abstract module.
type UnitKey = (usize, Option<&'static str>, bool, bool, Option<u32>);

/// Collects the units of one file, as a visitor of a walk. [`units`] is enough for most programs.
#[derive(Debug, Default)]
pub struct Collector {
    units: Vec<Unit>,
    /// Positions in `units`.
    by_container: HashMap<UnitKey, usize>,
    /// The containers around.
    around: Vec<Around>,
    containers: usize,
    /// The offload binary in a section of registered ones that was entered last: the first of its unit, and where it
    /// ends.
    registered: Option<(Around, u64)>,
}

/// Returns the units of a file, in file order. Damaged parts are skipped: walk with a [`Collector`] to get
/// findings.
///
/// # Errors
///
/// The file cannot be read.
pub fn units(file: impl Read + Seek) -> io::Result<Vec<Unit>> {
    let mut collector = Collector::default();
    walk(file, &Options::default(), &mut collector)?;
    Ok(collector.finish())
}

/// A container around what is walked.
#[derive(Clone, Debug)]
struct Around {
    number: usize,
    /// The name of a section.
    section: Option<String>,
    start: u64,
    /// The same for what starts in the file as it is.
    offset: Option<u64>,
    /// The containers from outside in, up to the first offload binary of the unit, if it is a registered one.
    unit: Option<Vec<String>>,
}

impl Collector {
    /// Returns the first offload binary of the unit that this one belongs to, if both are registered. Version 1 has one
    /// for each image, one directly after the other.
    fn registered(&mut self, container: &Container, new: &Around) -> Option<Around> {
        let section = self.around.last()?;
        let is_registered =
            section.section.as_deref().is_some_and(|name| REGISTERED_SECTIONS.contains(&name));
        if container.kind() != ContainerKind::OffloadBinary || !is_registered {
            return None;
        }
        // Decompressed bytes count from their own start.
        let into = new.start.checked_sub(section.start);
        let is_inside_page = into.is_some_and(|into| !into.is_multiple_of(PAGE));
        let follows = |(first, end): &(Around, u64)| {
            first.number > section.number && *end == new.start && is_inside_page
        };
        let path = || container.path().iter().map(|s| format!("{}:{}", s.kind(), s.name()));
        let (first, _) = (self.registered.take().filter(follows))
            .unwrap_or_else(|| (Around { unit: Some(path().collect()), ..new.clone() }, 0));
        let end = new.start + container.size();
        self.registered = Some((first.clone(), end));
        Some(first)
    }

    /// Returns the units, when the walk is over.
    #[must_use]
    pub fn finish(self) -> Vec<Unit> {
        // Host code belongs to no runtime: it goes with the first one of its container, if there is one.
        let is_device = |unit: &Unit| !unit.candidates.iter().all(Candidate::is_host);
        let mut devices: HashMap<usize, usize> = HashMap::new();
        for unit in self.units.iter().filter(|unit| is_device(unit)) {
            // Abstract modules have names of their own.
            *devices.entry(unit.container).or_default() += usize::from(unit.module.is_none());
        }
        let (mut units, hosts): (Vec<_>, Vec<_>) = (self.units.into_iter())
            .partition(|unit| is_device(unit) || !devices.contains_key(&unit.container));
        let mut hosts: HashMap<usize, Unit> =
            hosts.into_iter().map(|host| (host.container, host)).collect();
        for unit in &mut units {
            unit.is_shared = unit.module.is_none()
                && devices.get(&unit.container).is_some_and(|count| *count > 1);
            if let Some(host) = hosts.remove(&unit.container) {
                unit.candidates.extend(host.candidates);
                unit.candidates.sort_by_key(Candidate::index);
            }
        }
        units
    }
}

impl Visitor for Collector {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.containers += 1;
        let section = (container.path().last())
            .filter(|segment| segment.kind() == ContainerKind::Section)
            .map(|segment| segment.name().to_owned());
        let start = match container.location() {
            Location::File(start)
            | Location::Decompressed(start)
            | Location::ThinMember(start)
            | Location::Bitcode(start) => start,
            _ => 0,
        };
        let offset = match container.location() {
            Location::File(offset) => Some(offset),
            _ => None,
        };
        let new = Around { number: self.containers, section, start, offset, unit: None };
        let around = self.registered(container, &new).unwrap_or(new);
        self.around.push(around);
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.around.pop();
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        // Each offload binary holds an image or some, and each section of the object form one, as does each place that
        // a scan found: the runtime chooses among all of them.
        let is_gzip = image.container() == ContainerKind::Gzip;
        let loose = is_gzip || image.path().last().is_some_and(PathStep::is_found_by_scan);
        let parts = loose
            || matches!(
                image.container(),
                ContainerKind::OffloadBinary | ContainerKind::Section | ContainerKind::File
            );
        // The driver takes one entry of a fatbinary, or one image of an entry that has several.
        let is_part = |step: &PathStep| step.kind() == ContainerKind::Concatenated;
        let parts = parts || image.path().last().is_some_and(is_part);
        let unit = self.around.last().and_then(|around| around.unit.as_ref());
        // The images of several streams of gzip are one choice.
        let dropped = usize::from(parts && unit.is_none()) + usize::from(is_gzip);
        // A file that is an image has nothing around it.
        let depth = self.around.len().checked_sub(dropped);
        let around = depth.and_then(|depth| self.around.get(..depth)).unwrap_or(&[]);
        let container = around.last().map_or(0, |around| around.number);
        let runtime = Runtime::of(image.target().kind());
        let candidate = Candidate::of(image)?;
        let is_file = image.container() == ContainerKind::File;
        let shaders = (loose || is_file) && candidate.code().is_shader();
        let module = image.module();
        let known = (container, runtime.as_str(), loose, shaders, module);
        let known = *self.by_container.entry(known).or_insert(self.units.len());
        if let Some(unit) = self.units.get_mut(known) {
            unit.candidates.push(candidate);
            return Ok(());
        }
        let section_at = around.iter().rposition(|around| around.section.is_some());
        let section = section_at.and_then(|at| around.get(at)?.section.clone());
        let host_at = section_at.and_then(|at| at.checked_sub(1));
        let host = host_at.and_then(|at| around.get(at)).map_or(0, |around| around.number);
        let segments = image.path().get(..around.len()).unwrap_or(image.path());
        let path = || segments.iter().map(|s| format!("{}:{}", s.kind(), s.name())).collect();
        let mut path: Vec<String> = unit.cloned().unwrap_or_else(path);
        path.extend(module.map(|module| format!("module:{module}")));
        self.units.push(Unit {
            path,
            runtime,
            is_shared: false,
            compressed: image.compression_around().is_some(),
            candidates: vec![candidate],
            container,
            host,
            // Not every container lies in a section.
            section: section.unwrap_or_default(),
            loose,
            module,
            shaders,
            offset: around.iter().rev().find_map(|around| around.offset),
            is_lost: false,
        });
        Ok(())
    }
}
