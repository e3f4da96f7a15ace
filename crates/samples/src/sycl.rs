//! Linked host files with SYCL images and the tables that describe them.

use crate::{put, words};

/// An image and what its descriptor says.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its target.
    pub target: String,
    /// Its format: 0 none, 4 compressed.
    pub format: u8,
    /// As it lies in the file.
    pub stored: Vec<u8>,
    /// Bytes before compression.
    pub size: u64,
    /// Names of its kernels.
    pub kernels: Vec<String>,
    /// Aspects that a device must have.
    pub aspects: Vec<u32>,
    /// The target that it was compiled for.
    pub compile_target: Option<String>,
}

impl Sample {
    /// Creates an image that is not compressed.
    #[must_use]
    pub fn plain(target: &str, bytes: &[u8], kernels: &[&str]) -> Self {
        Sample {
            target: target.to_owned(),
            format: 0,
            stored: bytes.to_vec(),
            size: bytes.len() as u64,
            kernels: kernels.iter().map(|&name| name.to_owned()).collect(),
            aspects: Vec::new(),
            compile_target: None,
        }
    }

    /// Makes it a zstd frame with one raw block.
    #[must_use]
    pub fn compressed(mut self) -> Self {
        self.format = 4;
        self.stored = frame(&self.stored);
        self
    }

    /// Sets the target that it was compiled for.
    #[must_use]
    pub fn compile_target(mut self, name: &str) -> Self {
        self.compile_target = Some(name.to_owned());
        self
    }

    /// Sets the aspects that a device must have.
    #[must_use]
    pub fn aspects(mut self, aspects: &[u32]) -> Self {
        self.aspects = aspects.to_vec();
        self
    }
}

/// Returns a zstd frame that holds these bytes as they are: a single segment, one raw block of at most 128 KiB.
#[must_use]
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    let block = (len << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &len.to_le_bytes(), &block[..3], bytes].concat()
}

/// Returns a SPIR-V module with this number in it.
#[must_use]
pub fn spirv(number: u32) -> Vec<u8> {
    words(&[0x0723_0203, 0x0001_0400, 0x0006_000e, 20 + number, 0, 2 << 16 | 17, number])
}

/// Description of a file.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The version of the descriptors of images.
    pub version: u16,
    /// The kind of offloading.
    pub kind: u8,
    /// A PE file, not an ELF file.
    pub is_pe: bool,
    /// Pointers are in relocations only.
    pub relocated: bool,
    /// Entries of 56 bytes.
    pub new_entries: bool,
    /// Images of each table; the last may have fewer.
    pub per_table: usize,
    /// The name of all sections with images, if they are not named by targets.
    pub section: Option<&'static str>,
    /// Other bytes in these sections, after the images.
    pub trailing: &'static [u8],
}

impl Default for Form {
    fn default() -> Self {
        Form {
            version: 3,
            kind: 4,
            is_pe: false,
            relocated: false,
            new_entries: false,
            per_table: 100,
            section: None,
            trailing: &[],
        }
    }
}

/// The address at which the file is loaded.
pub const BASE: u64 = 0x1_8000_0000;
/// Place of the first section, in the file and from `BASE`.
pub const FIRST: u64 = 0x1000;

/// A file, and where things lie in it.
#[derive(Clone, Debug)]
pub struct File {
    /// The file.
    pub bytes: Vec<u8>,
    /// The offset of each image's descriptor.
    pub descriptors: Vec<usize>,
    /// The offset of each table.
    pub tables: Vec<usize>,
    /// The offset of each image.
    pub images: Vec<usize>,
    /// The offset of the section with places and sizes.
    pub tgtimg: usize,
}

struct Data {
    bytes: Vec<u8>,
    /// Offsets of pointers, and addresses.
    pointers: Vec<(usize, u64)>,
}

impl Data {
    fn address(&self) -> u64 {
        BASE + self.bytes.len() as u64
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn pointer(&mut self, address: u64) {
        if address != 0 {
            self.pointers.push((self.bytes.len(), address));
        }
        self.number(address);
    }

    fn text(&mut self, text: &str) -> u64 {
        let address = self.address();
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        address
    }

    fn raw(&mut self, bytes: &[u8]) -> u64 {
        let address = self.address();
        self.bytes.extend(bytes);
        address
    }
}

/// Returns a host file with one section for each target.
#[must_use]
pub fn file(form: Form, images: &[Sample]) -> File {
    let mut data = Data { bytes: vec![0; usize::try_from(FIRST).unwrap()], pointers: Vec::new() };
    let mut sections: Vec<(String, usize, usize, u64)> = Vec::new();
    let mut targets: Vec<&str> = images.iter().map(|image| &image.target[..]).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut places = vec![0; images.len()];
    for target in targets {
        data.align(16);
        let start = data.bytes.len();
        for (n, image) in images.iter().enumerate().filter(|(_, image)| image.target == target) {
            data.align(16);
            places[n] = data.bytes.len();
            data.raw(&image.stored);
        }
        data.align(16);
        data.raw(form.trailing);
        let name = match form.section {
            Some(name) => name.to_owned(),
            None if form.is_pe => "__CLANG_".to_owned(),
            None => format!("__CLANG_OFFLOAD_BUNDLE__sycl-{target}"),
        };
        sections.push((name, start, data.bytes.len(), 2));
    }

    data.align(16);
    let start = data.bytes.len();
    let (mut descriptors, mut tables) = (vec![0; images.len()], Vec::new());
    for (t, chunk) in images.chunks(form.per_table).enumerate() {
        let first = t * form.per_table;
        let parts: Vec<_> = chunk.iter().map(|image| parts(&mut data, form, image)).collect();
        data.align(16);
        let array = data.address();
        for (n, (image, part)) in chunk.iter().zip(parts).enumerate() {
            descriptors[first + n] = data.bytes.len();
            data.raw(&form.version.to_le_bytes());
            data.raw(&[form.kind, image.format, 0, 0, 0, 0]);
            data.pointer(part.target);
            data.pointer(part.options);
            data.pointer(part.options);
            if form.version < 3 {
                data.number(0);
                data.number(0);
            }
            let begin = BASE + places[first + n] as u64;
            data.pointer(begin);
            data.pointer(begin + image.stored.len() as u64);
            data.pointer(part.entries.0);
            data.pointer(part.entries.1);
            if form.version > 1 {
                data.pointer(part.sets.0);
                data.pointer(part.sets.1);
            }
        }
        tables.push(data.bytes.len());
        data.raw(&[1, 0]);
        data.raw(&u16::try_from(chunk.len()).unwrap().to_le_bytes());
        data.raw(&[0; 4]);
        data.pointer(array);
        data.number(0);
        data.number(0);
    }
    let name = if form.is_pe { ".rdata" } else { ".data.rel.ro" };
    sections.push((name.to_owned(), start, data.bytes.len(), 3));

    data.align(16);
    let tgtimg = data.bytes.len();
    for (image, place) in images.iter().zip(&places) {
        data.pointer(BASE + *place as u64);
        data.number(image.size);
    }
    sections.push((".tgtimg".to_owned(), tgtimg, data.bytes.len(), 3));
    if form.relocated {
        let pointers = std::mem::take(&mut data.pointers);
        let start = data.bytes.len();
        for (place, address) in pointers {
            data.bytes[place..place + 8].fill(0);
            data.number(BASE + place as u64);
            data.number(8);
            data.number(address);
        }
        sections.push((".rela.dyn".to_owned(), start, data.bytes.len(), 2));
    }
    let bytes = if form.is_pe { pe(data.bytes, &sections) } else { elf(data.bytes, &sections) };
    File { bytes, descriptors, tables, images: places, tgtimg }
}

struct Parts {
    target: u64,
    options: u64,
    entries: (u64, u64),
    sets: (u64, u64),
}

fn parts(data: &mut Data, form: Form, image: &Sample) -> Parts {
    let target = data.text(&image.target);
    let options = data.text("");
    let kernels: Vec<_> = image.kernels.iter().map(|name| data.text(name)).collect();
    data.align(8);
    let start = data.address();
    for name in kernels {
        if form.new_entries {
            data.number(0);
            data.number(0x0008_0001);
            data.number(0);
            data.pointer(name);
            data.raw(&[0; 24]);
        } else {
            data.number(0);
            data.pointer(name);
            data.raw(&[0; 16]);
        }
    }
    let entries = (start, data.address());
    if form.version == 1 {
        return Parts { target, options, entries, sets: (0, 0) };
    }
    let (set, misc) = (data.text("SYCL/device requirements"), data.text("SYCL/misc properties"));
    let (aspects, level) = (data.text("aspects"), data.text("optLevel"));
    let compile_target = data.text("compile_target");
    let counted = |bytes: &[u8]| [&(8 * bytes.len() as u64).to_le_bytes()[..], bytes].concat();
    let bytes: Vec<_> = image.aspects.iter().flat_map(|aspect| aspect.to_le_bytes()).collect();
    let mut required = vec![(aspects, counted(&bytes))];
    if let Some(name) = &image.compile_target {
        required.push((compile_target, counted(name.as_bytes())));
    }
    let required: Vec<_> =
        required.into_iter().map(|(name, value)| (name, data.raw(&value), value.len())).collect();
    data.align(8);
    let requirements = data.address();
    for (name, value, size) in required {
        data.pointer(name);
        data.pointer(value);
        data.number(2);
        data.number(size as u64);
    }
    let end = data.address();
    data.pointer(level);
    data.number(0);
    data.number(1);
    data.number(2);
    let last = data.address();
    let sets = data.address();
    for (name, start, end) in [(set, requirements, end), (misc, end, last)] {
        data.pointer(name);
        data.pointer(start);
        data.pointer(end);
    }
    Parts { target, options, entries, sets: (sets, data.address()) }
}

/// Takes the section headers off an ELF file, as `sstrip` does. The dynamic segment says where relocations are.
pub fn strip(bytes: &mut Vec<u8>) {
    let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let table = usize::try_from(number(40)).unwrap();
    let headers = bytes.split_off(table);
    let is_relocations = |header: &&[u8]| header[4] == 4;
    let dynamic = match headers.chunks(64).find(is_relocations) {
        Some(header) => {
            [&[7, 0, 0, 0, 0, 0, 0, 0], &header[16..24], &[8, 0, 0, 0, 0, 0, 0, 0], &header[32..40]]
                .concat()
        }
        None => Vec::new(),
    };
    put(bytes, 40, &[0; 8]);
    put(bytes, 60, &[0; 4]);
    put(bytes, 56, &[2]);
    let (at, len) = (bytes.len() as u64, dynamic.len() as u64);
    bytes.extend(dynamic);
    put(bytes, 120, &[2, 0, 0, 0, 4]);
    for (n, number) in [at, BASE + at, BASE + at, len, len, 8].into_iter().enumerate() {
        put(bytes, 128 + 8 * n, &number.to_le_bytes());
    }
}

/// Name, start, end, flags of ELF.
type Sections = [(String, usize, usize, u64)];

fn elf(mut bytes: Vec<u8>, sections: &Sections) -> Vec<u8> {
    let mapped = bytes.len() as u64;
    let mut names = b"\0.shstrtab\0".to_vec();
    let mut headers = vec![0; 64];
    let mut header = |name: u32, kind: u32, flags: u64, address: u64, start: u64, size: u64| {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for number in [flags, address, start, size, 0, 1, 0] {
            headers.extend(number.to_le_bytes());
        }
    };
    for (name, start, end, flags) in sections {
        let (start, end) = (*start as u64, *end as u64);
        let kind = if name == ".rela.dyn" { 4 } else { 1 };
        header(u32::try_from(names.len()).unwrap(), kind, *flags, BASE + start, start, end - start);
        names.extend(name.as_bytes());
        names.push(0);
    }
    header(1, 3, 0, 0, mapped, names.len() as u64);
    bytes.extend(&names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    bytes.extend(headers);
    let count = u16::try_from(sections.len() + 2).unwrap();
    put(&mut bytes, 0, b"\x7fELF\x02\x01\x01");
    put(&mut bytes, 16, &[3, 0, 62, 0, 1]);
    put(&mut bytes, 32, &64_u64.to_le_bytes());
    put(&mut bytes, 40, &table.to_le_bytes());
    put(&mut bytes, 52, &[64, 0, 56, 0, 1, 0, 64, 0]);
    put(&mut bytes, 60, &count.to_le_bytes());
    put(&mut bytes, 62, &(count - 1).to_le_bytes());
    put(&mut bytes, 64, &[1, 0, 0, 0, 6]);
    for (n, number) in [0, BASE, BASE, mapped, mapped, 0x1000].into_iter().enumerate() {
        put(&mut bytes, 72 + 8 * n, &number.to_le_bytes());
    }
    bytes
}

/// Sections lie in memory where they lie in the file.
fn pe(mut bytes: Vec<u8>, sections: &Sections) -> Vec<u8> {
    put(&mut bytes, 0, b"MZ");
    put(&mut bytes, 60, &64_u32.to_le_bytes());
    put(&mut bytes, 64, b"PE\0\0\x64\x86");
    put(&mut bytes, 70, &u16::try_from(sections.len()).unwrap().to_le_bytes());
    put(&mut bytes, 84, &[240, 0, 0x22, 0x20]);
    let optional = 88;
    put(&mut bytes, optional, &[0x0b, 0x02]);
    put(&mut bytes, optional + 24, &BASE.to_le_bytes());
    put(&mut bytes, optional + 32, &16_u32.to_le_bytes());
    put(&mut bytes, optional + 36, &16_u32.to_le_bytes());
    let size = u32::try_from(bytes.len()).unwrap();
    put(&mut bytes, optional + 56, &size.to_le_bytes());
    put(&mut bytes, optional + 60, &0x1000_u32.to_le_bytes());
    put(&mut bytes, optional + 108, &16_u32.to_le_bytes());
    for (n, (name, start, end, _)) in sections.iter().enumerate() {
        let at = optional + 240 + 40 * n;
        put(&mut bytes, at, name.as_bytes());
        let (start, size) = (u32::try_from(*start).unwrap(), u32::try_from(end - start).unwrap());
        for (n, number) in [size, start, size, start].into_iter().enumerate() {
            put(&mut bytes, at + 8 + 4 * n, &number.to_le_bytes());
        }
        put(&mut bytes, at + 36, &0x4000_0040_u32.to_le_bytes());
    }
    bytes
}
