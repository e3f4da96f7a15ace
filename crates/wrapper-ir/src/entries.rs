//! The entries that a compiler leaves in each host object, and the module that has them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::BitOr;

use crate::OffloadKind;
use crate::abi::Abi;
use crate::build;
use crate::description::Module;
use crate::error::{Error, ErrorKind};
use crate::target::Target;
use crate::wrapper::{check_suffix, is_supported};

/// One kernel or variable that exists on the host and on devices.
///
/// Its record connects the address by which the host knows it with its name in the device images.
///
/// Symbols are named as in LLVM IR: without the prefix of the target (an underscore in Mach-O). The module only
/// declares them, so they must be visible to the linker: a `static` of C or a private function of Rust is not.
///
/// ```
/// use wrapper_ir::{EntryFlags, OffloadEntry};
///
/// let kernel = OffloadEntry::kernel("_Z5scalePff", "_Z5scalePff");
/// let table = OffloadEntry::variable("table", "table", 1024).with_flags(EntryFlags::CONSTANT);
/// ```
#[derive(Clone, Debug)]
pub struct OffloadEntry<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) address: Option<Cow<'a, str>>,
    pub(crate) size: u64,
    pub(crate) flags: EntryFlags,
    pub(crate) data: u64,
    pub(crate) auxiliary: Option<Cow<'a, str>>,
    pub(crate) variable: bool,
}

impl<'a> OffloadEntry<'a> {
    /// Returns a kernel or OpenMP target region, whose name on devices is `name`.
    ///
    /// The host passes the address of `symbol` to the function of the runtime that launches kernels. It identifies the kernel and
    /// need not be code: clang makes a variable of its own for HIP (the "handle") and for OpenMP (`.NAME.region_id`).
    #[must_use]
    pub fn kernel(name: impl Into<Cow<'a, str>>, symbol: impl Into<Cow<'a, str>>) -> Self {
        Self {
            name: name.into(),
            address: Some(symbol.into()),
            size: 0,
            flags: EntryFlags::NONE,
            data: 0,
            auxiliary: None,
            variable: false,
        }
    }

    /// Returns a variable of `size` bytes, more than 0, whose name on devices is `name`.
    ///
    /// [`with_flags`](Self::with_flags) says more about it: that it is constant, a surface, a texture, or linked (OpenMP).
    #[must_use]
    pub fn variable(
        name: impl Into<Cow<'a, str>>,
        symbol: impl Into<Cow<'a, str>>,
        size: u64,
    ) -> Self {
        Self { size, variable: true, ..Self::kernel(name, symbol) }
    }

    /// Returns a CUDA or HIP variable in managed memory, of `size` bytes aligned to `align`.
    ///
    /// `initial` is a variable with its value at the start. `pointer` is a pointer variable, in which the runtime puts
    /// the address of the managed memory.
    #[must_use]
    pub fn managed(
        name: impl Into<Cow<'a, str>>,
        initial: impl Into<Cow<'a, str>>,
        pointer: impl Into<Cow<'a, str>>,
        size: u64,
        align: u64,
    ) -> Self {
        Self {
            flags: EntryFlags::MANAGED,
            data: align,
            auxiliary: Some(pointer.into()),
            ..Self::variable(name, initial, size)
        }
    }

    /// Returns the requirements that an OpenMP program states with `requires` clauses, as bits that libomptarget
    /// defines: 2 `reverse_offload`, 4 `unified_address`, 8 `unified_shared_memory`, 16 `dynamic_allocators`; 1 for
    /// none.
    #[must_use]
    pub fn requires(requirements: u64) -> Self {
        Self {
            address: None,
            flags: EntryFlags::OPENMP_REQUIRES,
            data: requirements,
            ..Self::kernel(".requires", "")
        }
    }

    /// Sets the flags.
    #[must_use]
    pub fn with_flags(mut self, flags: EntryFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets what else the runtime gets: the kind of a surface or texture (its dimensions), the alignment of a managed variable, 0
    /// otherwise.
    #[must_use]
    pub fn with_data(mut self, data: u64) -> Self {
        self.data = data;
        self
    }

    fn symbols(&self) -> impl Iterator<Item = &str> {
        [&self.address, &self.auxiliary].into_iter().flatten().map(AsRef::as_ref)
    }
}

/// Flags of an [`OffloadEntry`]. Each model has its own. Bits without a constant are kept as they are.
///
/// For CUDA and HIP the low three bits are the type of a variable, the others are flags; bit 3 says that the device code
/// declares the variable and does not define it. For OpenMP, bits 1 and 2 are for functions that construct and destroy
/// variables (up to LLVM 17), bit 5 for virtual tables with functions that are called on devices (LLVM 22).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntryFlags(u32);

impl EntryFlags {
    /// A kernel, or a variable without special properties.
    pub(crate) const NONE: Self = Self(0);

    /// CUDA and HIP, type 1: a variable in managed memory. [`OffloadEntry::managed`] sets it.
    pub(crate) const MANAGED: Self = Self(1);
    /// HIP, type 2: a surface reference.
    pub const SURFACE: Self = Self(2);
    /// HIP, type 3: a texture reference.
    pub const TEXTURE: Self = Self(3);
    /// CUDA and HIP: a variable in constant memory.
    pub const CONSTANT: Self = Self(1 << 4);
    /// HIP: a texture that is read as normalized floating point numbers.
    pub const NORMALIZED: Self = Self(1 << 5);

    /// OpenMP: a variable of `declare target link`; the entry has the address and size of a pointer to it.
    pub const OPENMP_LINK: Self = Self(1);
    /// OpenMP: a function of `declare target indirect`, of the size of a pointer.
    pub const OPENMP_INDIRECT: Self = Self(1 << 3);
    /// OpenMP: requirements, no function or variable. [`OffloadEntry::requires`] sets it.
    pub(crate) const OPENMP_REQUIRES: Self = Self(1 << 4);

    /// Returns the flags with these bits, known or not.
    #[must_use]
    pub const fn from_bits_retain(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns all bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for EntryFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// All bits, as a hexadecimal number.
impl fmt::Debug for EntryFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryFlags({:#x})", self.0)
    }
}

/// Describes the offload entries of a host object: what a compiler emits for each object, while a
/// [`Wrapper`](crate::Wrapper) is made once for each link.
///
/// The [`Module`] has no code and no images. Link its object together with the one that defines the symbols.
///
/// ```
/// use wrapper_ir::{Abi, Entries, OffloadKind, OffloadEntry, Target};
///
/// # fn main() -> Result<(), wrapper_ir::Error> {
/// let module = Entries::new(OffloadKind::HIP, Abi::Current, Target::new("x86_64-unknown-linux-gnu")?)
///     .with_entry(OffloadEntry::kernel("scale", "scale_handle"))
///     .module()?;
/// assert!(module.ir_to_string(&[])?.contains("@.offloading.entry.scale = weak constant"));
/// let object: Vec<u8> = module.object()?.to_vec(&[])?;
/// assert!(object.starts_with(b"\x7fELF"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Entries<'a> {
    pub(crate) kind: OffloadKind,
    pub(crate) abi: Abi,
    pub(crate) target: Target,
    pub(crate) entries: Vec<OffloadEntry<'a>>,
    pub(crate) retain: bool,
    pub(crate) suffix: Option<Cow<'a, str>>,
}

impl<'a> Entries<'a> {
    /// Starts without entries.
    #[must_use]
    pub fn new(kind: OffloadKind, abi: Abi, target: Target) -> Self {
        let kind = kind.current();
        Self { kind, abi, target, entries: Vec::new(), retain: true, suffix: None }
    }

    /// Appends an entry.
    #[must_use]
    pub fn with_entry(mut self, entry: OffloadEntry<'a>) -> Self {
        self.entries.push(entry);
        self
    }

    /// Appends entries.
    #[must_use]
    pub fn with_entries(mut self, entries: impl IntoIterator<Item = OffloadEntry<'a>>) -> Self {
        self.entries.extend(entries);
        self
    }

    /// Sets whether the linker must keep the entries (`SHF_GNU_RETAIN`, `N_NO_DEAD_STRIP`); the default is true.
    ///
    /// Without it they are as clang's: `ld.lld --gc-sections` drops them unless the link has the arguments that
    /// [`Module::compiler_args`] returns.
    #[must_use]
    pub fn with_retain(mut self, retain: bool) -> Self {
        self.retain = retain;
        self
    }

    /// Puts the entries into a section of their own, whose name ends in `_` and `suffix`. Only the wrapper with the same
    /// [`with_private_entries`](crate::Wrapper::with_private_entries) registers them.
    #[must_use]
    pub fn with_private_entries(mut self, suffix: impl Into<Cow<'a, str>>) -> Self {
        self.suffix = Some(suffix.into());
        self
    }

    /// Returns the description of the module, which the emitters write.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported) if entries of this kind, generation or object format, or variables with
    /// such flags, are not registered, [`Count`](ErrorKind::Count) without entries, [`Invalid`](ErrorKind::Invalid) for a
    /// wrong suffix, name, symbol or size, [`Limit`](ErrorKind::Limit) for a number that does not fit into its record.
    pub fn module(&self) -> Result<Module, Error> {
        self.check()?;
        Ok(build::own_entries::module(self))
    }

    fn check(&self) -> Result<(), Error> {
        let (kind, abi, format) = (self.kind, self.abi, self.target.format());
        if kind == OffloadKind::SYCL {
            let text = format!("{kind} registers no offload entries, expected openmp, cuda or hip");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        if !is_supported(kind, abi, format) {
            return Err(Error::unsupported(abi, kind, format));
        }
        if self.entries.is_empty() {
            let text = format!("no offload entry to emit for {kind}");
            return Err(Error::new(ErrorKind::Count, text));
        }
        if let Some(suffix) = &self.suffix {
            check_suffix(suffix, format)?;
        }
        let mut names = BTreeMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            self.check_entry(index, entry)?;
            if let Some(first) = names.insert(&entry.name, index) {
                let text = format!(
                    "offload entries {first} and {index} both have the name \"{}\"",
                    entry.name.escape_debug()
                );
                return Err(Error::new(ErrorKind::Invalid, text));
            }
        }
        Ok(())
    }

    fn check_entry(&self, index: usize, entry: &OffloadEntry<'_>) -> Result<(), Error> {
        if !is_symbol(&entry.name) {
            return Err(Error::bad_entry_name(index, &entry.name));
        }
        let taken =
            |symbol: &str| build::own_entries::RESERVED.iter().any(|s| symbol.starts_with(s));
        if let Some(symbol) = entry.symbols().find(|symbol| !is_symbol(symbol) || taken(symbol)) {
            let symbol = symbol.escape_debug();
            let text =
                format!("is at the symbol \"{symbol}\", expected one that the program defines");
            return Err(Error::of_entry(ErrorKind::Invalid, index, text));
        }
        if entry.variable && entry.size == 0 {
            let text = "is a variable of 0 bytes, which is registered as a kernel";
            return Err(Error::of_entry(ErrorKind::Invalid, index, text));
        }
        if entry.variable && !self.is_registered(entry) {
            let (kind, abi, flags) = (self.kind, self.abi, entry.flags.0);
            let text = format!(
                "has the flags {flags:#x}, but abi {abi} registers no such variables of kind {kind}"
            );
            return Err(Error::of_entry(ErrorKind::Unsupported, index, text));
        }
        let data_limit = match self.abi {
            Abi::Aomp => 0,
            Abi::Llvm18 | Abi::Llvm19 => u32::MAX.into(),
            Abi::Llvm22 | Abi::Current | Abi::Llvm24 => u64::MAX,
        };
        let size_limit = if self.target.pointer_bits() == 32 { u32::MAX.into() } else { u64::MAX };
        for (field, value, limit) in
            [("size", entry.size, size_limit), ("data", entry.data, data_limit)]
        {
            if value > limit {
                let text = format!("has the {field} {value:#x}, expected at most {limit:#x}");
                return Err(Error::of_entry(ErrorKind::Limit, index, text));
            }
        }
        Ok(())
    }

    /// Returns whether registration code has a function for such a variable.
    fn is_registered(&self, entry: &OffloadEntry<'_>) -> bool {
        const TYPE: u32 = 7;

        let managed = self.abi.has_common_entries();
        match (self.kind, entry.flags.0 & TYPE) {
            (OffloadKind::OPENMP | OffloadKind::SYCL, ..) => entry.auxiliary.is_none(),
            (_, 0) => true,
            (_, 1) => managed && entry.auxiliary.is_some(),
            (OffloadKind::HIP, 2 | 3) => true,
            _ => false,
        }
    }
}

/// Returns whether text can be the name of a symbol.
fn is_symbol(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}
