//! Edits of compressed offload binaries, and offload binaries that are compressed and decompressed.

use std::io::Cursor;

use crate::editing::{code, edited, hip_binary, images, plan_with, run, surveyed};
use ccob::{Method, WriteOptions};
use fat_edit::{
    Change, CompressOptions, Edit, EditNote, EditOptions, EditPlan, ErrorKind,
    compress_offload_binary, survey_closed,
};
use fat_object::{Options, decompress_offload_binary};
use offload_binary::{CompressedBinary, FormatVersion};
use samples::bundle::bundle;
use samples::elf::{self, all_elf, progbits};
use samples::linked::{self, Linked, Loaded, Style};

const TRIPLE: &str = "amdgpu9.0a-amd-amdhsa";

/// A plain offload binary with images of these sizes.
fn package(version: FormatVersion, sizes: &[u32]) -> Vec<u8> {
    let archs = ["gfx906", "gfx90a", "gfx1100", "gfx942"];
    let images: Vec<_> = (1..).zip(sizes).map(|(seed, size)| code(seed, *size)).collect();
    let entries = archs.iter().zip(&images).map(|(arch, image)| (TRIPLE, *arch, &image[..]));
    hip_binary(version, &entries.collect::<Vec<_>>())
}

fn plain(sizes: &[u32]) -> Vec<u8> {
    package(FormatVersion::V3, sizes)
}

fn methods() -> [WriteOptions; 2] {
    [Method::ZSTD, Method::ZLIB].map(|method| WriteOptions::default().with_method(method))
}

fn compressed(sizes: &[u32], how: &WriteOptions) -> Vec<u8> {
    compress_offload_binary(&plain(sizes), how).unwrap()
}

fn method_of(package: &[u8]) -> Method {
    if package[40..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) { Method::ZSTD } else { Method::ZLIB }
}

fn compress_with(file: &[u8], options: CompressOptions) -> (EditPlan, Vec<u8>) {
    plan_with(file, EditOptions::default(), &[], |_, edit| edit.compress(options)).unwrap()
}

fn compress(file: &[u8]) -> (EditPlan, Vec<u8>) {
    compress_with(file, CompressOptions::default())
}

fn decompress(file: &[u8]) -> Vec<u8> {
    plan_with(file, EditOptions::default(), &[], |_, edit| edit.decompress()).unwrap().1
}

#[test]
fn images_are_removed_from_and_added_to_compressed_offload_binaries() {
    let sizes = [5000, 333, 40];
    for how in methods() {
        let (before, after) = (plain(&[900]), compressed(&[70, 7000], &how));
        let file = [&before[..], &compressed(&sizes, &how), &after].concat();
        for index in 0..3 {
            let out = edited(&file, &[], |_, edit| edit.remove(1 + index)).unwrap();
            assert!(out.starts_with(&before) && out.ends_with(&after));
            let package = &out[before.len()..out.len() - after.len()];
            assert_eq!((package.len() % 8, method_of(package)), (0, how.method()));
            let mut left = images(&file);
            left.remove(1 + index);
            assert_eq!(images(&out), left);
            // Entries that stay keep everything that is said of them.
            let expected = edited(&plain(&sizes), &[], |_, edit| edit.remove(index)).unwrap();
            assert!(decompress_offload_binary(package, 1 << 20).unwrap() == expected);
        }
        let new = code(9, 777);
        let wish = |edit: &mut Edit, first: usize, container: usize| {
            edit.replace(first + 1, 0);
            edit.add(container, "hip-amdgpu9.42-amd-amdhsa--gfx942", 0);
        };
        let out = edited(&file, &[&new], |_, edit| wish(edit, 1, 1)).unwrap();
        let expected = edited(&plain(&sizes), &[&new], |_, edit| wish(edit, 0, 0)).unwrap();
        let package = &out[before.len()..out.len() - after.len()];
        assert!(decompress_offload_binary(package, 1 << 20).unwrap() == expected);
        assert_eq!(method_of(package), how.method());
        // All images of one leave, if they may.
        let all = |edit: &mut Edit| (1..4).for_each(|index| edit.remove(index));
        let error = edited(&file, &[], |_, edit| all(edit)).unwrap_err();
        assert!(error.kind() == ErrorKind::Refused, "{error}");
        let options = EditOptions::default().with_allow_empty(true);
        let (_, out) = plan_with(&file, options, &[], |_, edit| all(edit)).unwrap();
        assert_eq!(surveyed(&out).containers()[1].images(), 1..1);
        assert_eq!(images(&out).len(), 3);
    }
}

#[test]
fn decompressing_restores_offload_binaries_byte_for_byte() {
    for how in methods() {
        let device = bundle(
            &[("host-x86_64-unknown-linux-gnu-", b""), (samples::bundle::GFX906, &code(4, 6000))],
            8,
        );
        for file in [
            plain(&[5000, 333]),
            [plain(&[5000]), plain(&[33, 4000]), plain(&[9000])].concat(),
            // With bundles, zeros, one that is not worth it, and one that was compressed before.
            [plain(&[5000]), device, vec![0; 56], plain(&[1]), compressed(&[77], &how)].concat(),
        ] {
            let (plan, small) =
                compress_with(&file, CompressOptions::default().with_write(how.clone()));
            assert_eq!(images(&small), images(&file));
            assert!(small.len() < file.len());
            let notes: Vec<_> = plan.notes().to_vec();
            assert!(notes.is_empty(), "{notes:?}");
            assert_eq!(method_of(&small), how.method());
            assert!(compress(&small).1 == small, "idempotent");
            let back = decompress(&small);
            // Compressed offload binaries are plain then, too.
            assert!(back == decompress(&file));
            assert!(
                back == file
                    || surveyed(&file).containers().last().unwrap().compression().is_some()
            );
            // Again, in another way.
            let other = methods().into_iter().find(|other| other.method() != how.method()).unwrap();
            let again = CompressOptions::default().with_write(other.clone()).with_recompress(true);
            let (plan, again) = compress_with(&small, again);
            assert_eq!(plan.containers()[0].change, Change::Recompressed);
            assert_eq!(method_of(&again), other.method());
            assert!(decompress(&again) == back);
        }
    }
}

#[test]
fn older_offload_binaries_stay_unless_they_may_become_version_3() {
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = [package(version, &[5000, 3000]), plain(&[4000])].concat();
        let count = if version == FormatVersion::V1 { 2 } else { 1 };
        let (plan, out) = compress(&file);
        assert_eq!(plan.notes(), [EditNote::OlderOffloadBinaries { count }]);
        let old = package(version, &[5000, 3000]);
        assert!(out.starts_with(&old) && out.len() < file.len());
        assert!(decompress(&out) == file);

        let upgrade = CompressOptions::default().with_upgrade_offload_binaries(true);
        let (plan, out) = compress_with(&file, upgrade);
        assert_eq!(images(&out), images(&file));
        let notes =
            [EditNote::NotRestored { offset: 0 }, EditNote::UpgradedOffloadBinaries { count }];
        assert_eq!(plan.notes(), notes);
        let mut expected = Vec::new();
        for binary in offload_binary::binaries(&old) {
            let (start, binary) = binary.unwrap();
            let binary = &old[start as usize..][..binary.size() as usize];
            expected.extend(offload_binary::convert(binary, FormatVersion::V3).unwrap());
        }
        assert!(decompress(&out) == [expected, plain(&[4000])].concat());
    }
}

#[test]
fn the_section_decides_whether_offload_binaries_are_compressed() {
    const ALLOC: u64 = 2;
    const EXCLUDE: u64 = 0x8000_0000;
    for mut form in all_elf() {
        for (name, flags, version, is_compressed) in [
            (".llvm.offloading", EXCLUDE, FormatVersion::V3, true),
            (".llvm.offloading", 0, FormatVersion::V3, true),
            (".llvm.offloading", ALLOC | EXCLUDE, FormatVersion::V3, true),
            // As the wrapper makes it for OpenMP.
            (".llvm.offloading", ALLOC, FormatVersion::V3, false),
            (".hip_fatbin", ALLOC, FormatVersion::V3, true),
            (".hip_fatbin", ALLOC, FormatVersion::V2, false),
            (".llvm.offloading", EXCLUDE, FormatVersion::V2, false),
            (".rodata", ALLOC, FormatVersion::V3, false),
        ] {
            let contents = package(version, &[5000, 300]);
            let section = elf::Section { align: 8, flags, ..progbits(name, &contents) };
            form.sections = vec![section, progbits(".data", b"other contents")];
            let file = form.build();
            let (plan, out) = compress(&file);
            let change = if is_compressed { Change::Compressed } else { Change::Kept };
            assert_eq!(plan.containers()[0].change, change, "{name} {flags:#x} {version}");
            assert_eq!(plan.is_unchanged(), !is_compressed);
            assert_eq!(plan.notes().is_empty(), is_compressed, "{:?}", plan.notes());
            assert!(decompress(&out) == file);
            assert_eq!(images(&out), images(&file));
            let thin = edited(&out, &[], |_, edit| edit.remove(0)).unwrap();
            assert!(decompress(&thin) == edited(&file, &[], |_, edit| edit.remove(0)).unwrap());
        }
    }
}

#[test]
fn registered_offload_binaries_of_hip_are_compressed_in_linked_files() {
    for style in [Style::First, Style::Third] {
        let units: Vec<_> = (1..4).map(|n| plain(&[9000 * n, 5000, 77])).collect();
        let file = Linked::new(style, units).build();
        let (plan, small) = compress(&file);
        assert_eq!(plan.notes(), []);
        linked::check_same(&file, &small);
        assert!(small.len() < file.len());
        let loaded = Loaded::new(&small);
        for address in loaded.registered() {
            assert_eq!(address % 4096, 0);
            let memory = loaded.read(address, 4096).unwrap();
            let header = CompressedBinary::parse_prefix(&memory, 1 << 20).unwrap();
            assert_eq!(header.unwrap().entry_count(), 3);
        }
        assert!(decompress(&small) == file);
        let thin = edited(&small, &[], |_, edit| [0, 3, 6].iter().for_each(|&n| edit.remove(n)));
        let expected = edited(&file, &[], |_, edit| [0, 3, 6].iter().for_each(|&n| edit.remove(n)));
        let thin = thin.unwrap();
        linked::check_same(&file, &thin);
        assert_eq!(images(&thin), images(&expected.unwrap()));
    }
}

#[test]
fn sizes_in_headers_count_against_limits() {
    for how in methods() {
        let file = compressed(&[50_000, 3000], &how);
        let decompress = |file: &[u8], max: u64| {
            let options = Options::default().with_max_decompressed(max);
            let contents = survey_closed(&mut Cursor::new(file), &options)?;
            let mut edit = Edit::default();
            edit.decompress();
            let mut out = Vec::new();
            let plan = contents.plan(&mut Cursor::new(file), &edit)?;
            plan.write(&mut Cursor::new(file), &mut out).map(|()| out)
        };
        assert!(decompress(&file, 1 << 20).unwrap() == plain(&[50_000, 3000]));
        let error = decompress(&file, 50_000).unwrap_err();
        assert!(error.to_string().contains("50000"), "{error}");
        // The header's claim is refused before there is memory for it.
        for claimed in [1_u64 << 50, !7, 48, 41] {
            let mut file = file.clone();
            file[32..40].copy_from_slice(&claimed.to_le_bytes());
            assert!(decompress(&file, 1 << 60).is_err(), "{claimed:#x}");
            assert!(edited(&file, &[], |_, edit| edit.remove(0)).is_err(), "{claimed:#x}");
        }
        // A stream that is damaged.
        for at in 40..60 {
            let mut file = file.clone();
            file[at] ^= 0x41;
            let _ = decompress(&file, 1 << 20);
            let _ = edited(&file, &[], |_, edit| edit.remove(0));
        }
    }
}

/// An offload binary whose entries start 8 bytes after its header.
fn with_gap() -> Vec<u8> {
    let plain = plain(&[5000, 300]);
    let mut file = [&plain[..40], &[0; 8], &plain[40..]].concat();
    let mut raise = |at: usize| {
        let old = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        file[at..at + 8].copy_from_slice(&(old + 8).to_le_bytes());
    };
    // Sizes, entries with their strings and images, string entries with their keys and values.
    [8, 16].into_iter().for_each(&mut raise);
    [48, 88].into_iter().flat_map(|entry| [entry + 8, entry + 24]).for_each(&mut raise);
    (0..4).map(|string| 128 + 24 * string).flat_map(|string| [string, string + 8]).for_each(raise);
    file
}

#[test]
fn offload_binaries_with_a_gap_after_the_header_stay_plain() {
    let file = with_gap();
    assert_eq!(images(&file), images(&plain(&[5000, 300])));
    let (plan, out) = compress(&file);
    assert!(plan.is_unchanged() && out == file);
    for how in methods() {
        let small = compress_offload_binary(&file, &how).unwrap();
        assert!(decompress_offload_binary(&small, 1 << 20).unwrap() == plain(&[5000, 300]));
    }
}

#[test]
fn final_padding_may_be_missing() {
    for how in methods() {
        let whole = compressed(&[5000, 300], &how);
        let header = CompressedBinary::parse_prefix(&whole, whole.len() as u64).unwrap().unwrap();
        let file = &whole[..header.size() as usize];
        assert!(decompress(file) == plain(&[5000, 300]));
        let contents = surveyed(file);
        let mut edit = Edit::default();
        edit.remove(0);
        let (_, out) = run(&contents, file, &[], &edit).unwrap();
        let expected = edited(&whole, &[], |_, edit| edit.remove(0)).unwrap();
        assert!(out == expected);
    }
}

#[test]
fn only_plain_offload_binaries_of_version_3_are_compressed() {
    let how = WriteOptions::default();
    let compress = |data: &[u8]| compress_offload_binary(data, &how).unwrap_err();
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = hip_binary(version, &[("amdgcn-amd-amdhsa", "gfx90a", b"code")]);
        let error = compress(&file);
        let error = error.offload_binary().unwrap();
        assert_eq!(error.kind(), offload_binary::ErrorKind::Version, "{error}");
    }
    let error = compress(&compress_offload_binary(&plain(&[4]), &how).unwrap());
    assert!(error.offload_binary().is_some_and(|error| error.compressed().is_some()));
}
