//! The description as LLVM bitcode.
//!
//! The bitcode of "LLVM Bitcode File Format" (the LLVM documentation), as LLVM 15 and later read it. Everything
//! that readers can do without is left out, and numbers are as long as they are; the only abbreviations are those
//! of blobs.
//!
//! ```text
//! 42 43 C0 DE
//! identification   who wrote it, and that it is of today's kind
//! module
//!   types
//!   triple, data layout, names of sections, name of the source
//!   variables, functions         names are ranges of the string table
//!   constants                    the images first, from 32-bit boundaries on, large ones behind padding
//!   bodies of functions          with the names of their values
//! string table
//! ```

mod codes;
mod constants;
mod functions;
mod types;

use std::collections::BTreeMap;

use llvm_bitcode::{MAGIC, Writer};

use crate::description::{Function, Global, Linkage, Module};
use crate::error::Error;
use crate::layout::Output;
use crate::to_u64;
use constants::Constants;
use functions::{Bodies, log_align};
use types::Types;

/// The most bytes there can be in one blob, whose length readers keep in 32 bits.
pub(crate) const MAX_BLOB: u64 = 0xFFFF_FFFF;

impl Module {
    /// Lays the module out as LLVM bitcode, which LLVM 15 and later read. The bytes of the images
    /// are in it as they are, each image from a multiple of four bytes on, a large one
    /// of 4 KiB (from 1 MiB on) or 64 KiB (from 16 MiB on), since that makes copies fast.
    ///
    /// LLVM's readers take eight to twelve times the size of the images in memory. From about a
    /// gigabyte on, use a native object.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for an image of 4 GiB or more, or when all images together have
    /// about 16 GiB: the sizes do not fit into bitcode.
    ///
    /// # Example
    ///
    /// ```
    /// use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};
    ///
    /// # fn main() -> Result<(), wrapper_ir::Error> {
    /// let image = b"a device image";
    /// let target = Target::new("x86_64-unknown-linux-gnu")?;
    /// let module = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target)
    ///     .with_image(Image::from_bytes(image))
    ///     .module()?;
    /// let bitcode = module.bitcode()?.to_vec(&[image])?;
    /// assert_eq!(bitcode[..4], *b"BC\xC0\xDE");
    /// # Ok(())
    /// # }
    /// ```
    pub fn bitcode(&self) -> Result<byte_parts::Layout, Error> {
        Ok(self.lay_out_bitcode()?.finish())
    }

    fn lay_out_bitcode(&self) -> Result<Output, Error> {
        let mut types = Types::new(self)?;
        let mut constants = Constants::new(self, &mut types)?;
        for function in &self.functions {
            types.function(function)?;
        }
        for global in &self.globals {
            types.number(&global.ty)?;
            if let Some(init) = &global.init {
                constants.number(init, &mut types)?;
            }
        }
        // Bodies are written into the void first, for the types and constants they have.
        let (types, constants) = (&mut types, &mut constants);
        Bodies { module: self, types, constants }.write(&mut Writer::new(MAGIC))?;

        let mut stream = Writer::new(MAGIC);
        write_identification(&mut stream)?;
        stream.enter_block(codes::MODULE_BLOCK, 3);
        // Version 2: names are in the string table, operands of instructions are relative.
        stream.record(codes::MODULE_VERSION, &[2]);
        types.write(&mut stream)?;
        let text = |stream: &mut Writer, code, text: &str| {
            stream.text_record(code, &[], text.as_bytes());
        };
        text(&mut stream, codes::MODULE_TRIPLE, self.target.triple());
        text(&mut stream, codes::MODULE_DATALAYOUT, self.target.data_layout());
        text(&mut stream, codes::MODULE_SOURCE_FILENAME, self.source_name);
        let sections = Sections::new(self);
        for name in &sections.names {
            text(&mut stream, codes::MODULE_SECTIONNAME, name);
        }
        let mut names = Names::default();
        for global in &self.globals {
            let init = global.init.as_ref().map(|init| constants.number(init, types));
            let record = variable(
                names.add(&global.name),
                types.number(&global.ty)?,
                init.transpose()?,
                sections.number(global.section.as_deref()),
                global,
            );
            stream.record(codes::MODULE_GLOBALVAR, &record);
        }
        for function in &self.functions {
            let record = function_record(
                names.add(&function.name),
                types.function(function)?,
                sections.number(function.section.as_deref()),
                function,
            );
            stream.record(codes::MODULE_FUNCTION, &record);
        }
        constants.write(&mut stream)?;
        Bodies { module: self, types, constants }.write(&mut stream)?;
        stream.end_block()?;
        stream.enter_block(codes::STRTAB_BLOCK, 3);
        let blob = stream.define_blob(codes::STRTAB_BLOB);
        stream.blob(blob, names.0.as_bytes());
        stream.end_block()?;
        let (bytes, holes) = stream.finish();
        self.fill(&bytes, &holes)
    }

    /// Returns the stream with images in its holes, which are given as the number of bytes before them.
    fn fill(&self, bytes: &[u8], holes: &[usize]) -> Result<Output, Error> {
        let mut layout = Output::new(&self.inputs);
        let mut rest = bytes;
        let mut written = 0;
        let blobs = self.blobs.iter().filter(|blob| blob.size != 0);
        for (blob, &hole) in blobs.zip(holes) {
            let parts = rest.split_at_checked(hole - written);
            let (before, after) = parts.ok_or_else(|| Error::internal("a hole past the end"))?;
            layout.push_bytes(before)?;
            layout.push_image(blob)?;
            (rest, written) = (after, hole);
        }
        layout.push_bytes(rest)?;
        Ok(layout)
    }
}

fn write_identification(stream: &mut Writer) -> Result<(), Error> {
    stream.enter_block(codes::IDENTIFICATION_BLOCK, 5);
    let producer = concat!("wrapper-ir ", env!("CARGO_PKG_VERSION"));
    stream.text_record(codes::IDENTIFICATION_STRING, &[], producer.as_bytes());
    stream.record(codes::IDENTIFICATION_EPOCH, &[0]);
    Ok(stream.end_block()?)
}

/// The string table: the names of variables and functions, one after the other.
#[derive(Default)]
struct Names(String);

impl Names {
    /// Returns the offset and size of a name that is put at the end.
    fn add(&mut self, name: &str) -> [u64; 2] {
        let range = [to_u64(self.0.len()), to_u64(name.len())];
        self.0.push_str(name);
        range
    }
}

/// The names of sections, once each.
struct Sections<'m> {
    names: Vec<&'m str>,
    /// Numbers from 1.
    numbers: BTreeMap<&'m str, u64>,
}

impl<'m> Sections<'m> {
    fn new(module: &'m Module) -> Self {
        let mut sections = Self { names: Vec::new(), numbers: BTreeMap::new() };
        let globals = module.globals.iter().filter_map(|global| global.section.as_deref());
        let functions = module.functions.iter().filter_map(|function| function.section.as_deref());
        for name in globals.chain(functions) {
            sections.numbers.entry(name).or_insert_with(|| {
                sections.names.push(name);
                to_u64(sections.names.len())
            });
        }
        sections
    }

    /// Returns the number of a section, 0 for none.
    fn number(&self, name: Option<&str>) -> u64 {
        name.and_then(|name| self.numbers.get(name)).copied().unwrap_or(0)
    }
}

fn variable(
    [name, name_size]: [u64; 2],
    ty: u64,
    init: Option<u64>,
    section: u64,
    global: &Global,
) -> Vec<u64> {
    // The second bit: the type of the variable, not of the pointer to it.
    let flags = u64::from(global.constant) | 2;
    let mut record = vec![
        name,
        name_size,
        ty,
        flags,
        init.map_or(0, |init| init + 1),
        linkage(global.linkage),
        log_align(global.align),
        section,
        u64::from(global.hidden),
        0, // thread-local
        u64::from(global.unnamed_addr),
        0, // initialised elsewhere
        0, // DLL storage
        0, // comdat
        0, // attributes
        u64::from(is_dso_local(global.linkage, global.hidden)),
    ];
    if global.no_sanitize {
        // Offset and size of the partition's name, then a bit each for address and hwaddress.
        record.extend([0, 0, 3]);
    }
    record
}

fn function_record(
    [name, name_size]: [u64; 2],
    ty: u64,
    section: u64,
    function: &Function,
) -> Vec<u64> {
    vec![
        name,
        name_size,
        ty,
        0, // calling convention
        u64::from(function.is_declaration()),
        linkage(function.linkage),
        0, // attributes
        0, // alignment
        section,
        0, // visibility
        0, // garbage collector
        0, // unnamed_addr
        0, // prologue
        0, // DLL storage
        0, // comdat
        0, // prefix
        0, // personality
        u64::from(is_dso_local(function.linkage, false)),
    ]
}

/// Returns whether only the program or library that it is linked into can define the symbol.
fn is_dso_local(linkage: Linkage, hidden: bool) -> bool {
    linkage == Linkage::Internal || hidden && linkage != Linkage::ExternWeak
}

fn linkage(linkage: Linkage) -> u64 {
    match linkage {
        Linkage::External => 0,
        Linkage::Appending => 2,
        Linkage::Internal => 3,
        Linkage::ExternWeak => 7,
        Linkage::Weak => 16,
        Linkage::WeakOdr => 17,
    }
}
