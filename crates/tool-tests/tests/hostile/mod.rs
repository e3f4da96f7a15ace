//! Hostile files: made by code, each with what is true of it, by the formats' specifications and not by what some
//! reader does. `hostile_files` asks the libraries about all of them, `llvm_hostile` the tools, LLVM's and ours.

#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small files, made for tests; a panic fails the test"
)]

use samples::with;

mod archives;
mod bitcode;
mod bundles;
mod compressed;
mod damaged;
mod elf;
mod objects;
mod packages;
mod targets;
mod texts;

/// An image in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The bundle entry ID, or `arch` of a package.
    pub id: String,
    pub bytes: Vec<u8>,
    /// True if it lies in another image, into which LLVM's tools do not look.
    pub inner: bool,
}

pub fn held(id: &str, bytes: &[u8]) -> Held {
    Held { id: id.to_owned(), bytes: bytes.to_vec(), inner: false }
}

/// Truth about a file.
#[derive(Clone, Debug)]
pub enum Truth {
    /// It is malformed: whoever gives an answer without a complaint is wrong.
    Refused,
    /// It is odd, but holds exactly these images, in this order.
    Holds(Vec<Held>),
    /// It is a part or a damaged copy of something that has these images: without a complaint there may be only such.
    Part(Vec<Held>),
    /// Unknown, but images are bytes of the file.
    Any,
}

/// Form of a file, which decides which tools read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Package,
    /// An object with packages in `.llvm.offloading`.
    PackageObject,
    Bundle,
    CompressedBundle,
    Text,
    /// An ELF file with bundles in a section.
    BundleElf,
    /// The same with compressed bundles.
    CompressedElf,
    /// An object whose sections are entries of a bundle.
    ObjectSections,
    /// An archive of objects with packages.
    Archive,
    /// An archive of bundles.
    DeviceArchive,
    Bitcode,
    /// COFF and PE files with bundles, Mach-O, WebAssembly.
    Other,
    /// No file, but a list of targets to bundle for, which is the name.
    Targets,
}

#[derive(Clone, Debug)]
pub struct Hostile {
    pub family: &'static str,
    /// Name of the damage.
    pub name: String,
    pub form: Form,
    pub bytes: Vec<u8>,
    /// Files that lie beside it.
    pub beside: Vec<(String, Vec<u8>)>,
    pub truth: Truth,
    /// True if the damage lies in a member of a sound archive or in an image of a sound bundle: tools that do not look
    /// into those have nothing to complain about.
    pub sound_outside: bool,
}

/// Number of parts and damaged copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Short,
    Long,
    /// As much as a library has time for.
    Full,
}

/// All files.
pub fn all(scale: Scale) -> Vec<Hostile> {
    let families = [
        packages::version_1(),
        packages::version_2(),
        packages::sequences(),
        bundles::fields(),
        bundles::ids(),
        bundles::sequences(),
        texts::texts(),
        compressed::headers(),
        compressed::streams(),
        archives::archives(),
        archives::thin(),
        archives::device_archives(),
        elf::packages(),
        elf::bundles(),
        elf::linked(),
        elf::object_form(),
        objects::coff(),
        objects::mach_o(),
        objects::wasm(),
        objects::pe(),
        bitcode::bitcode(),
        targets::targets(),
        damaged::cuts(scale),
        damaged::mutants(scale),
    ];
    families.into_iter().flat_map(|family| family.files).collect()
}

/// Files of one kind.
pub struct Family {
    name: &'static str,
    form: Form,
    pub files: Vec<Hostile>,
}

impl Family {
    pub fn new(name: &'static str, form: Form) -> Self {
        Family { name, form, files: Vec::new() }
    }

    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>, truth: Truth) {
        let (family, form) = (self.name, self.form);
        let (name, beside) = (name.into(), Vec::new());
        let file = Hostile { family, name, form, bytes, beside, truth, sound_outside: false };
        self.files.push(file);
    }

    /// Malformed inside of a sound archive or bundle.
    pub fn refused_inside(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.refused(name, bytes);
        self.files.last_mut().unwrap().sound_outside = true;
    }

    pub fn refused(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.add(name, bytes, Truth::Refused);
    }

    pub fn holds(&mut self, name: impl Into<String>, bytes: Vec<u8>, images: &[Held]) {
        self.add(name, bytes, Truth::Holds(images.to_vec()));
    }

    /// Some of these images may be found, or a fault.
    pub fn part(&mut self, name: impl Into<String>, bytes: Vec<u8>, images: &[Held]) {
        self.add(name, bytes, Truth::Part(images.to_vec()));
    }

    /// Malformed by each of these values of a field of eight bytes.
    pub fn field(&mut self, name: &str, base: &[u8], at: usize, values: &[u64]) {
        for value in values.iter().copied().collect::<std::collections::BTreeSet<_>>() {
            let bytes = with(base, at, &value.to_le_bytes());
            self.refused(format!("{name} {value:#x}"), bytes);
        }
    }
}

pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub fn count(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|window| *window == what).count()
}

/// Numbers that are the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Values that 64-bit numbers are hostile with.
pub const WILD: [u64; 5] = [1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 7, u64::MAX];
