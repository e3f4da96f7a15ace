//! Files of no format that is read, and streams and shaders that only a scan finds.

use std::io::Cursor;

use fat_object::{
    ContainerKind, ErrorKind, FileFormat, Listing, Options, Severity, list, list_slice,
};
use samples::elf::{elf, progbits};
use samples::example;

const PTX: &[u8] =
    b"//\n.version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

/// A stream of gzip, with a name if there is one.
fn gzip(bytes: &[u8], name: &[u8]) -> Vec<u8> {
    let flags = if name.is_empty() { 0 } else { 8 };
    let mut stream = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
    if !name.is_empty() {
        stream.extend([name, b"\0"].concat());
    }
    stream.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    let crc = bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0xedb8_8320))
    });
    stream.extend((!crc).to_le_bytes());
    stream.extend((bytes.len() as u32).to_le_bytes());
    stream
}

fn directx(parts: u32, size: u32) -> Vec<u8> {
    let mut bytes = b"DXBC".to_vec();
    bytes.extend([7; 16]);
    for number in [1, size, parts, 32 + 4 * parts] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(size as usize, 1);
    bytes
}

fn metal(size: u64) -> Vec<u8> {
    let mut bytes = b"MTLB\x01\x80\x02\0\x07\0\0\x81\0\0\0\0".to_vec();
    for number in [size, 88] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(size as usize, 1);
    bytes
}

fn host(section: &[u8]) -> Vec<u8> {
    let mut host = elf(true, false);
    host.sections = vec![progbits(".rodata", section), progbits(".data", b"data")];
    host.build()
}

/// Lists a file in memory, and from a reader, which gives the same.
fn listed(file: &[u8]) -> Listing {
    let lent = list_slice(file, &Options::default()).unwrap();
    let read = list(Cursor::new(file), &Options::default()).unwrap();
    assert_eq!(lent.images(), read.images());
    lent
}

fn formats(listing: &Listing) -> Vec<FileFormat> {
    listing.images().iter().map(fat_object::ImageInfo::format).collect()
}

#[test]
fn files_of_any_format_are_scanned() {
    let bundle = example("hip.hipfb");
    let file = [b"\x14\0\0\0IREE".as_slice(), &[9; 90], &bundle].concat();
    let found = listed(&file);
    assert_eq!(found.images().len(), 2);
    assert_eq!(found.format(), FileFormat::Unknown);
    assert_eq!(found.images()[1].path()[0].to_string(), "outside-sections:0x62");
    let none = list_slice(&file, &Options::default().with_scan(false)).unwrap();
    assert_eq!(none.images(), []);
    // Text is not scanned, whatever it quotes.
    let text = [b"KERNEL = '''".as_slice(), PTX, b"'''\n"].concat();
    assert_eq!(listed(&text).images(), []);
}

#[test]
fn streams_of_gzip_with_device_code_are_opened() {
    for name in [b"".as_slice(), b"k.ptx"] {
        let stream = gzip(PTX, name);
        let file = host(&[b"\0", &stream[..], &[0; 5], &gzip(b"text", b""), &stream].concat());
        let found = listed(&file);
        assert_eq!(formats(&found), [FileFormat::Ptx; 2]);
        assert!(found.findings().is_empty());
        let image = &found.images()[0];
        assert_eq!(image.target().id(), "sm_75");
        assert_eq!(image.path()[1].to_string(), "gzip:0");
        assert_eq!(image.compression_around().unwrap().method(), "gzip");
        assert_eq!(image.compression_around().unwrap().stored_size(), stream.len() as u64);
        assert_eq!(image.size(), PTX.len() as u64);
    }
}

#[test]
fn damaged_and_large_streams_of_gzip_are_told() {
    let long = [PTX, &[b' '; 1 << 20]].concat();
    let stream = gzip(&long, b"");
    let file = host(&stream[..stream.len() / 2]);
    let found = listed(&file);
    assert_eq!(found.images(), []);
    assert_eq!(found.findings()[0].error().kind(), ErrorKind::Malformed);
    let low = Options::default().with_max_decompressed(1 << 16);
    let listing = list_slice(&host(&stream), &low).unwrap();
    let text = "the gzip stream with device code cannot be decompressed: it gives more bytes than may be decompressed";
    assert_eq!(listing.findings()[0].error().to_string(), text);
    // The contents are there, and the trailer contradicts them.
    let stream = gzip(PTX, b"k");
    let end = stream.len();
    for (wrong, at, text) in [
        (end - 8, 8, "fails its checksum: expected CRC-32 5fb1a916, found 5fb1a917"),
        (end - 4, 4, "has another size than it says: expected 77 bytes, found 76"),
    ] {
        let mut stream = stream.clone();
        stream[wrong] ^= 1;
        let found = listed(&[b"\x01\0\x02", &stream[..]].concat());
        assert_eq!(formats(&found), [FileFormat::Ptx]);
        let [finding] = found.findings() else { panic!("{:?}", found.findings()) };
        assert_eq!(finding.location().offset(), 3 + (end - at) as u64);
        assert_eq!(finding.error().container(), Some(ContainerKind::Gzip));
        assert!(finding.error().to_string().contains(text), "{finding}");
    }
    let found = listed(&[b"\x01\0\x02", &stream[..end - 3]].concat());
    assert_eq!(formats(&found), [FileFormat::Ptx]);
    assert!(found.findings()[0].to_string().ends_with("expected a trailer of 8 bytes, found 5"));
    // Each byte may be wrong.
    for at in 0..stream.len() {
        for bit in 0..8 {
            let mut stream = stream.clone();
            stream[at] ^= 1 << bit;
            let _ = listed(&host(&stream));
        }
    }
}

#[test]
fn shaders_of_other_systems_are_images() {
    let (directx, metal) = (directx(2, 100), metal(120));
    let found = listed(&host(&[&[1; 4], &directx[..], &metal, &metal[..119]].concat()));
    assert_eq!(formats(&found), [FileFormat::DirectX, FileFormat::MetalLibrary]);
    let sizes: Vec<_> = found.images().iter().map(fat_object::ImageInfo::size).collect();
    assert_eq!(sizes, [100, 120]);
    for (file, format) in [(directx, FileFormat::DirectX), (metal, FileFormat::MetalLibrary)] {
        assert_eq!(formats(&listed(&file)), [format]);
    }
    // Headers that contradict themselves.
    for (at, value) in [(20, 2), (24, 30), (24, 255), (28, 0), (28, 65), (32, 3), (32, 200)] {
        let mut bytes = self::directx(2, 100);
        bytes[at] = value;
        assert_eq!(listed(&host(&bytes)).images(), [], "{at}");
    }
    for (at, value) in [(16, 80), (16, 255), (24, 3), (24, 200)] {
        let mut bytes = self::metal(120);
        bytes[at] = value;
        assert_eq!(listed(&host(&bytes)).images(), [], "{at}");
    }
}

#[test]
fn device_binaries_of_intel_before_zebin_are_images() {
    let mut image = elf(true, false);
    let program = [0x494e_5443_u32, 1081, 12, 8, 0, 0, 0].map(u32::to_le_bytes).concat();
    image.sections.push(progbits(".device", &program));
    let mut image = image.build();
    image[16..20].copy_from_slice(&[4, 0xff, 0, 0]);
    assert_eq!(errors(&image), [] as [&str; 0]);
    let found = errors(&image[..image.len() / 2]);
    assert!(found[0].starts_with("malformed Intel device binary: byte 0x28"), "{found:?}");
    assert_eq!(formats(&listed(&image)), [FileFormat::IntelBinary]);
    let found = listed(&host(&[&[1; 8], &image[..], b"more"].concat()));
    assert_eq!(formats(&found), [FileFormat::IntelBinary]);
    assert_eq!(found.images()[0].size(), image.len() as u64);
}

#[test]
fn what_is_not_read_has_a_name() {
    let mut squashfs = b"hsqs".to_vec();
    squashfs.resize(96, 0);
    squashfs[12..16].copy_from_slice(&(1_u32 << 17).to_le_bytes());
    squashfs[22] = 17;
    squashfs[28] = 4;
    squashfs[40] = 96;
    let mut program = elf(true, false);
    program.trailing = squashfs.clone();
    let program = program.build();
    let found = listed(&program);
    let finding = &found.findings()[0];
    assert_eq!(finding.error().kind(), ErrorKind::NotRead);
    assert_eq!(finding.severity(), Severity::Warning);
    let at = program.len() - squashfs.len();
    assert_eq!(
        finding.error().to_string(),
        format!("the squashfs file system at {at:#x} is not read")
    );
    squashfs[22] = 16;
    assert!(listed(&host(&squashfs)).findings().is_empty());

    let format = |bytes: &[u8]| list_slice(bytes, &Options::default()).unwrap().format();
    let database = |table: &str| format!("SQLite format 3\0{:99}{table}", "").into_bytes();
    assert_eq!(format(&database("CREATE TABLE kern_db (id)")), FileFormat::Sqlite);
    assert_eq!(format(&database("CREATE TABLE other (id)")), FileFormat::Unknown);
    assert_eq!(format(b"\x04\x22\x4d\x18..."), FileFormat::Lz4);
    assert_eq!(format(b"7z\xbc\xaf\x27\x1c..."), FileFormat::SevenZip);
    assert_eq!(format(b"ftrt\0\0\0\0"), FileFormat::TensorRt);
}

#[test]
fn entries_without_device_code_are_told() {
    let mut object = elf(true, false);
    object.sections = vec![progbits("llvm_offload_entries", &[1; 64]), progbits(".data", b"data")];
    let found = listed(&object.build());
    let texts: Vec<_> =
        found.findings().iter().map(|finding| finding.error().to_string()).collect();
    let expected =
        "section llvm_offload_entries registers kernels, but the file holds no device code";
    assert_eq!(texts, [expected]);
    let packages = example("packages.offload");
    object.sections.push(progbits(".llvm.offloading", &packages));
    assert!(listed(&object.build()).findings().is_empty());
    object.sections = vec![progbits("llvm_offload_entries", b"")];
    assert!(listed(&object.build()).findings().is_empty());
}

/// IR modules and native images.
type Module<'a> = (&'a [&'a [u8]], &'a [&'a [u8]]);

/// A SYCLBIN of version 1 with abstract modules of these IR modules and native images.
fn modules(modules: &[Module<'_>]) -> Vec<u8> {
    const SPIRV: &[u8] = b"[SYCLBIN/ir module metadata]\ntype=1|0\n\0\0";
    const PTX: &[u8] = b"[SYCLBIN/ir module metadata]\ntype=1|1\n\0\0";
    let (ir, native): (Vec<_>, Vec<_>) = modules.iter().copied().unzip();
    let (ir, native) = (ir.concat(), native.concat());
    let mut file = b"IBYS".to_vec();
    for number in [1, modules.len() as u32, ir.len() as u32, native.len() as u32, 0] {
        file.extend(number.to_le_bytes());
    }
    let images = || ir.iter().chain(&native);
    let bytes: usize = images().map(|image| image.len()).sum();
    for number in [80, bytes as u64, 0, 5] {
        file.extend(number.to_le_bytes());
    }
    let (mut first_ir, mut first_native) = (0, 0);
    for (ir, native) in modules {
        file.extend([0; 16]);
        for number in [ir.len(), first_ir, native.len(), first_native] {
            file.extend((number as u32).to_le_bytes());
        }
        (first_ir, first_native) = (first_ir + ir.len(), first_native + native.len());
    }
    let mut offset = 0_u64;
    for image in images() {
        let is_ptx = image.starts_with(b"//") || image.starts_with(b".version");
        for number in [if is_ptx { 40 } else { 0 }, 40, offset, image.len() as u64] {
            file.extend(number.to_le_bytes());
        }
        offset += image.len() as u64;
    }
    file.extend([SPIRV, PTX].concat());
    images().for_each(|image| file.extend(*image));
    file
}

/// A SYCLBIN of version 1 with an abstract module, these IR modules and these native images.
fn syclbin(ir: &[&[u8]], native: &[&[u8]]) -> Vec<u8> {
    modules(&[(ir, native)])
}

/// The texts of the errors found in a file.
fn errors(file: &[u8]) -> Vec<String> {
    listed(file).findings().iter().map(|finding| finding.error().to_string()).collect()
}

#[test]
fn images_of_syclbin_files_belong_to_modules() {
    let spirv = [0x0723_0203_u32, 0x0001_0400, 6, 9, 0, 2 << 16 | 17, 6, 3 << 16 | 14, 2, 2];
    let spirv: Vec<u8> = spirv.iter().flat_map(|word| word.to_le_bytes()).collect();
    let of = |file: &[u8]| -> Vec<_> {
        listed(file).images().iter().map(fat_object::ImageInfo::module).collect()
    };
    let file = modules(&[(&[&spirv], &[]), (&[PTX], &[PTX, PTX]), (&[], &[])]);
    assert_eq!(errors(&file), [] as [&str; 0]);
    // IR modules come first.
    assert_eq!(of(&file), [Some(0), Some(1), Some(1), Some(1)]);
    // The first module has two IR modules: one belongs to the second.
    let mut shared = file.clone();
    shared[56 + 16] = 2;
    let message = "malformed SYCLBIN: the first image of abstract module 1 is 0x1, expected 0x2";
    assert_eq!(errors(&shared), [message]);
    shared[56 + 16] = 3;
    let message =
        "malformed SYCLBIN: the end of the IR modules of abstract module 0 is 0x3, expected 0x2";
    assert_eq!(errors(&shared), [message]);
    assert_eq!(of(&shared)[0], None);
}

#[test]
fn images_of_syclbin_files_are_what_they_are_said_to_be() {
    let file = syclbin(&[b"garbage!"], &[b"garbage!"]);
    let found = errors(&file);
    let ends = [
        "unknown where SPIR-V is expected",
        "unknown where an ELF file or another image of a known format is expected",
    ];
    assert_eq!(found.len(), 2, "{found:?}");
    for (error, end) in found.iter().zip(ends) {
        assert!(error.ends_with(end), "{error}");
    }
    let found = errors(&syclbin(&[b"\x03\x02\x23\x07"], &[]));
    let message =
        "malformed SPIR-V module: byte 0x4: expected 20 bytes or more, a multiple of 4, found 4";
    assert_eq!(found, [message]);
}

#[test]
fn images_of_syclbin_files_do_not_overlap() {
    let mut file = syclbin(&[PTX], &[PTX, PTX]);
    // The last one starts in the one before.
    let header = 56 + 32 * 3;
    file[header + 16] -= 1;
    let found = listed(&file);
    assert_eq!(found.images().len(), 0);
    let data = 56 + 32 * 4 + 80;
    let at = data + 2 * PTX.len() - 1;
    let message = format!("malformed SYCLBIN: images 1 and 2 overlap at {at:#x}");
    assert_eq!(errors(&file), [message]);
    // Many images of the same bytes.
    const MANY: u32 = 100_000;
    let mut file = b"IBYS".to_vec();
    [1, 0, 0, MANY, 0].iter().for_each(|number: &u32| file.extend(number.to_le_bytes()));
    [0, 8, 0, 0].iter().for_each(|number: &u64| file.extend(number.to_le_bytes()));
    let header = [0_u64, 0, 0, 8].map(u64::to_le_bytes).concat();
    (0..MANY).for_each(|_| file.extend(&header));
    file.extend([1; 8]);
    assert_eq!(errors(&file).len(), 1);
}

#[test]
fn images_of_syclbin_files_are_listed() {
    let packages = example("packages.offload");
    let listing = listed(&packages);
    let of = |format: FileFormat| {
        let image = listing.images().iter().find(|image| image.format() == format).unwrap();
        image.bytes_in(&packages).unwrap()
    };
    let (spirv, ptx, cubin) = (of(FileFormat::SpirV), of(FileFormat::Ptx), of(FileFormat::Cubin));
    let file = syclbin(&[spirv, ptx], &[cubin]);
    let found = listed(&file);
    assert!(found.findings().is_empty(), "{:?}", found.findings());
    assert_eq!(formats(&found), [FileFormat::SpirV, FileFormat::Ptx, FileFormat::Cubin]);
    let bytes: Vec<_> = found.images().iter().map(|image| image.bytes_in(&file).unwrap()).collect();
    assert_eq!(bytes, [spirv, ptx, cubin]);
    let target = found.images()[0].target();
    assert_eq!(target.to_string(), "sycl-spirv64-unknown-unknown-unknown-");
    assert_eq!(found.images()[2].path()[0].to_string(), "syclbin:0");
    // In an offload binary, as clang-offload-packager puts it there.
    let entry = offload_binary::ImageEntry::new(file.len() as u64);
    let layout = offload_binary::layout(offload_binary::FormatVersion::V1, &[entry]).unwrap();
    assert_eq!(listed(&layout.to_vec(&[&file]).unwrap()).images().len(), 4);
}

#[test]
fn damaged_syclbin_files_are_told() {
    let file = syclbin(&[PTX], &[PTX]);
    for cut in 0..file.len() {
        let found = listed(&file[..cut]);
        assert!(found.images().is_empty(), "{cut}");
        assert!(cut < 4 || !found.findings().is_empty(), "{cut}");
    }
    for at in 0..file.len() {
        for value in [0, 1, 127, 255] {
            let mut file = file.clone();
            file[at] = value;
            let _ = listed(&file);
        }
    }
    let mut newer = file.clone();
    newer[4] = 2;
    let text = listed(&newer).findings()[0].error().to_string();
    assert_eq!(text, "malformed SYCLBIN: its version is 0x2, expected 0x1");
    let mut beyond = file;
    beyond[56 + 32 + 24] = 255;
    let found = listed(&beyond);
    assert_eq!((found.images().len(), found.findings().len()), (1, 1));
}

/// A superblock of squashfs that states a size.
fn squashfs(size: u64) -> Vec<u8> {
    let mut bytes = b"hsqs".to_vec();
    bytes.resize(96, 0);
    for (at, value) in [(12, 0x20000_u32), (20, 17 << 16), (28, 4)] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[40..48].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn headers_that_are_not_sound_hide_nothing() {
    let bundle = example("hip.hipfb");
    let (mut directx, mut metal) = (directx(2, 100), metal(120));
    directx[27] = 0x80;
    metal[23] = 0x80;
    for (header, text) in [
        (directx, "malformed DirectX shader"),
        (metal, "malformed Metal library"),
        (squashfs(1 << 63), "the squashfs file system at 0x0 is not read"),
    ] {
        let file = [&header[..], &bundle].concat();
        let found = listed(&file);
        assert_eq!(found.images().len(), 2, "{text}");
        let place = format!("outside-sections:{:#x}", header.len());
        assert_eq!(found.images()[1].path()[0].to_string(), place);
        let [finding] = found.findings() else { panic!("{:?}", found.findings()) };
        assert!(finding.error().to_string().starts_with(text), "{finding}");
        // In other data, too.
        assert_eq!(listed(&[b"\x01\0", &file[..]].concat()).images().len(), 2, "{text}");
        assert_eq!(listed(&host(&file)).images().len(), 2, "{text}");
    }
    // One that is sound is not searched.
    let file = [&squashfs(96 + bundle.len() as u64)[..], &bundle].concat();
    assert_eq!(listed(&file).images(), []);
    assert_eq!(listed(&host(&file)).images(), []);
    assert_eq!(listed(&squashfs(1 << 63)).findings().len(), 0);
}
