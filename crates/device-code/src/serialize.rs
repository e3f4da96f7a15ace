use alloc::string::ToString;
use core::ops::Range;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::format::FileFormat;
use crate::kernels::{
    KernelPair, KernelRecord, KernelTotals, ListedArgument, ListedKernel, Measure, Occupancy,
    Stored,
};

/// The name used in machine-readable output; nothing for what was not read.
impl Serialize for FileFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FileFormat::NotRead => serializer.serialize_none(),
            format => serializer.serialize_str(format.as_str()),
        }
    }
}

/// The name.
impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// `waves_at_most`, and what that follows from.
impl Serialize for Occupancy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Occupancy { waves, registers, limits, .. } = self;
        let mut fields = serializer.serialize_struct("Occupancy", 6)?;
        fields.serialize_field("waves_at_most", waves)?;
        fields.serialize_field("registers", registers)?;
        fields.serialize_field("granule", &limits.granule)?;
        fields.serialize_field("total", &limits.total)?;
        fields.serialize_field("parts", &limits.parts)?;
        fields.serialize_field("max_waves", &limits.max_waves)?;
        fields.end()
    }
}

/// `name`, `kind`, `offset`, `size`.
impl Serialize for ListedArgument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ListedArgument", 4)?;
        fields.serialize_field("name", &self.name.as_deref())?;
        fields.serialize_field("kind", &self.kind.as_deref())?;
        fields.serialize_field("offset", &self.offset)?;
        fields.serialize_field("size", &self.size)?;
        fields.end()
    }
}

/// Sizes of banks of constants by their numbers.
struct Banks<'a>(&'a [(u32, u64)]);

impl Serialize for Banks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(bank, size)| (bank, size)))
    }
}

/// One object of `offload kernels --json`, without the name of the file: `null` for what is not stored.
impl Serialize for KernelRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let KernelRecord { image, kernel: row, occupancy } = self;
        let kernel = &row.kernel;
        let mut record = serializer.serialize_map(None)?;
        if let Some(image) = image {
            record.serialize_entry("image", &image.index)?;
            record.serialize_entry("target", &image.target)?;
            record.serialize_entry("format", image.format.as_str())?;
            record.serialize_entry("version", &image.version.map(|version| version.to_string()))?;
            record.serialize_entry("relocatable", &image.is_relocatable)?;
        }
        record.serialize_entry("name", row.name(true))?;
        record.serialize_entry("demangled", row.name(false))?;
        record.serialize_entry("kind", kernel.kind.as_str())?;
        record.serialize_entry("code_is_estimated", &kernel.is_code_size_estimated)?;
        let start = |range: &Option<Range<usize>>| range.as_ref().map(|range| range.start);
        record.serialize_entry("code_offset", &start(&kernel.code_range))?;
        record.serialize_entry("descriptor_offset", &start(&kernel.descriptor_range))?;
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
        record.serialize_entry("occupancy", occupancy)?;
        record.serialize_entry("argument_list", &row.arguments)?;
        record.end()
    }
}

/// The numbers of a kernel by the names of their measures.
struct Numbers<'a>(&'a ListedKernel);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Measure::all().map(|one| (one.name(), self.0.of(one).known())))
    }
}

/// `target`, `name`, `demangled`, `changes`, `old`, `new`.
impl Serialize for KernelPair<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |mangled| self.either().map(|kernel| kernel.name(mangled));
        let mut fields = serializer.serialize_struct("KernelPair", 6)?;
        fields.serialize_field("target", self.target)?;
        fields.serialize_field("name", &name(true))?;
        fields.serialize_field("demangled", &name(false))?;
        fields.serialize_field("changes", &self.changes())?;
        fields.serialize_field("old", &self.old.map(Numbers))?;
        fields.serialize_field("new", &self.new.map(Numbers))?;
        fields.end()
    }
}

/// `images`, `size`, `kernels`, `code`.
impl Serialize for KernelTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("KernelTotals", 4)?;
        fields.serialize_field("images", &self.images)?;
        fields.serialize_field("size", &self.size)?;
        fields.serialize_field("kernels", &self.kernels)?;
        fields.serialize_field("code", &self.code)?;
        fields.end()
    }
}
