//! Measures of kernels, by the names that people use.

use core::fmt;

use super::{Kernel, Stored};

/// A number that a kernel may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Measure {
    /// [`Kernel::code_size`], in bytes.
    Code,
    /// [`Kernel::registers`].
    Registers,
    /// [`Kernel::registers_allocated`].
    Allocated,
    /// [`Kernel::accumulators`].
    Accumulators,
    /// [`Kernel::scalars`].
    Scalars,
    /// [`Kernel::vector_spills`].
    VectorSpills,
    /// [`Kernel::scalar_spills`].
    ScalarSpills,
    /// The sum of both.
    Spills,
    /// [`Kernel::group_memory`], in bytes.
    GroupMemory,
    /// [`Kernel::private_memory`], in bytes.
    PrivateMemory,
    /// [`Kernel::frame`], in bytes.
    Frame,
    /// [`Kernel::arguments_size`], in bytes.
    Arguments,
    /// [`Kernel::barriers`].
    Barriers,
    /// [`Kernel::max_group_size`].
    GroupSize,
}

/// The names of each; the first one is printed.
const NAMES: [(Measure, &[&str]); 14] = [
    (Measure::Code, &["code", "size"]),
    (Measure::Registers, &["registers", "vgprs", "regs"]),
    (Measure::Allocated, &["allocated"]),
    (Measure::Accumulators, &["accumulators", "agprs"]),
    (Measure::Scalars, &["scalars", "sgprs"]),
    (Measure::VectorSpills, &["vgpr_spills"]),
    (Measure::ScalarSpills, &["sgpr_spills"]),
    (Measure::Spills, &["spills"]),
    (Measure::GroupMemory, &["group", "lds", "shared"]),
    (Measure::PrivateMemory, &["private", "scratch", "stack"]),
    (Measure::Frame, &["frame"]),
    (Measure::Arguments, &["arguments", "kernarg", "params"]),
    (Measure::Barriers, &["barriers"]),
    (Measure::GroupSize, &["workgroup", "max_threads"]),
];

impl Measure {
    /// Returns all measures.
    pub fn all() -> impl Iterator<Item = Measure> {
        NAMES.into_iter().map(|(measure, _)| measure)
    }

    /// Returns the name: `code`, `registers`, `vgpr_spills`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(measure, _)| *measure == self)
            .and_then(|(_, names)| names.first())
            .copied()
            .unwrap_or("")
    }

    /// Returns the measure with this name, or one of its other names: `vgprs` for `registers`, `lds` and `shared` for `group`.
    ///
    /// ```
    /// use device_code::Measure;
    ///
    /// assert_eq!(Measure::from_name("lds"), Some(Measure::GroupMemory));
    /// assert_eq!(Measure::from_name("time"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(measure, _)| *measure)
    }

    /// Returns whether it counts bytes.
    #[must_use]
    pub fn is_in_bytes(self) -> bool {
        use Measure::{Arguments, Code, Frame, GroupMemory, PrivateMemory};
        matches!(self, Code | GroupMemory | PrivateMemory | Frame | Arguments)
    }

    /// Returns the number that a kernel has.
    #[must_use]
    pub fn of(self, kernel: &Kernel<'_>) -> Stored {
        let number = match self {
            Measure::PrivateMemory => return kernel.private_memory,
            Measure::Code => kernel.code_size,
            Measure::GroupMemory => kernel.group_memory,
            Measure::Frame => kernel.frame,
            Measure::Arguments => kernel.arguments_size,
            Measure::Registers => kernel.registers.map(u64::from),
            Measure::Allocated => kernel.registers_allocated.map(u64::from),
            Measure::Accumulators => kernel.accumulators.map(u64::from),
            Measure::Scalars => kernel.scalars.map(u64::from),
            Measure::VectorSpills => kernel.vector_spills.map(u64::from),
            Measure::ScalarSpills => kernel.scalar_spills.map(u64::from),
            Measure::Spills => {
                let both = kernel.vector_spills.zip(kernel.scalar_spills);
                both.map(|(vector, scalar)| u64::from(vector) + u64::from(scalar))
            }
            Measure::Barriers => kernel.barriers.map(u64::from),
            Measure::GroupSize => kernel.max_group_size.map(u64::from),
        };
        number.map_or(Stored::Absent, Stored::Known)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
