//! The JSON of kernels.

use std::io;

use device_code::{
    KernelKind, KernelList, ListedArgument, ListedImage, ListedKernel, Measure, Occupancy, Stored,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

use tool_kit::json::Array;

/// Writes the kernels of a file as members of an array.
pub(super) fn write(rows: &mut Array, file: &str, list: &KernelList) -> io::Result<()> {
    for row in &list.kernels {
        let (image, occupancy) = (list.image(row), list.occupancy(row));
        rows.row(&Record { file, image, row, occupancy })?;
    }
    Ok(())
}

/// A kernel: all that is stored, `null` for what is not.
struct Record<'a> {
    file: &'a str,
    image: Option<&'a ListedImage>,
    row: &'a ListedKernel,
    occupancy: Option<Occupancy>,
}

/// The waves that registers allow at most, with what that follows from.
struct Bound(Occupancy);

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Occupancy { waves, registers, limits, .. } = self.0;
        let mut record = serializer.serialize_map(Some(6))?;
        record.serialize_entry("waves_at_most", &waves)?;
        record.serialize_entry("registers", &registers)?;
        record.serialize_entry("granule", &limits.granule)?;
        record.serialize_entry("total", &limits.total)?;
        record.serialize_entry("parts", &limits.parts)?;
        record.serialize_entry("max_waves", &limits.max_waves)?;
        record.end()
    }
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Record { file, image, row, .. } = self;
        let kernel = &row.kernel;
        let mut record = serializer.serialize_map(None)?;
        record.serialize_entry("file", file)?;
        if let Some(image) = image {
            record.serialize_entry("image", &image.index)?;
            record.serialize_entry("target", &image.target)?;
            record.serialize_entry("format", image.format.as_str())?;
            record.serialize_entry("version", &image.version.map(|version| version.to_string()))?;
            record.serialize_entry("relocatable", &image.is_relocatable)?;
        }
        record.serialize_entry("name", row.name(true))?;
        record.serialize_entry("demangled", row.name(false))?;
        let kind = match kernel.kind {
            KernelKind::Init => "init",
            KernelKind::Fini => "fini",
            KernelKind::Shader => "shader",
            _ => "kernel",
        };
        record.serialize_entry("kind", kind)?;
        record.serialize_entry("code_is_estimated", &kernel.is_code_size_estimated)?;
        let is_unknown = matches!(kernel.private_memory, Stored::Unknown(_));
        record.serialize_entry("private_is_unknown", &is_unknown)?;
        for measure in Measure::all() {
            record.serialize_entry(measure.name(), &row.of(measure).known())?;
        }
        record.serialize_entry("group_reserved", &kernel.group_memory_reserved)?;
        record.serialize_entry("spill_memory", &kernel.spill_memory)?;
        record.serialize_entry("wave_size", &kernel.wave_size)?;
        record.serialize_entry("required_workgroup", &kernel.required_group_size)?;
        record.serialize_entry("max_registers", &kernel.max_registers)?;
        record.serialize_entry("constants", &Banks(&kernel.constants))?;
        record.serialize_entry("occupancy", &self.occupancy.map(Bound))?;
        record.serialize_entry(
            "argument_list",
            &row.arguments.as_ref().map(|all| all.iter().map(Described).collect::<Vec<_>>()),
        )?;
        record.end()
    }
}

/// Sizes of banks of constants by their numbers.
struct Banks<'a>(&'a [(u32, u64)]);

impl Serialize for Banks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(bank, size)| (bank, size)))
    }
}

/// An argument.
struct Described<'a>(&'a ListedArgument);

impl Serialize for Described<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_map(Some(4))?;
        let Described(argument) = self;
        record.serialize_entry("name", &argument.name.as_deref())?;
        record.serialize_entry("kind", &argument.kind.as_deref())?;
        record.serialize_entry("offset", &argument.offset)?;
        record.serialize_entry("size", &argument.size)?;
        record.end()
    }
}
