//! Tables of linked files as Intel's toolchain writes them, and damaged ones.

use std::io::Cursor;
use std::ops::Range;

use byte_parts::{Budget, Source};
use fat_object::sycl_table::{Error, ErrorKind, SyclValue, Tables};
use samples::sycl::{File, Form, Sample, file, spirv, strip};

fn samples() -> Vec<Sample> {
    vec![
        Sample::plain("spir64", &spirv(1), &["one", "another"]).aspects(&[6, 5]),
        Sample::plain("spir64", &spirv(2), &[]).compressed(),
        Sample::plain("spir64_gen", b"machine code", &["one"]).compile_target("intel_gpu_pvc"),
    ]
}

/// The section `.tgtimg`, of 16 bytes for each image.
fn list(file: &File) -> Range<u64> {
    file.tgtimg as u64..(file.tgtimg + 16 * file.images.len()) as u64
}

/// Reads bytes in memory, and a reader of them, which lie at the start or somewhere else.
fn read(bytes: &[u8], lists: &[Range<u64>]) -> Tables {
    let mut names = Budget::new(1 << 20);
    let window = 0..bytes.len() as u64;
    let tables = Tables::read(&mut Source::of_bytes(bytes), &window, lists, &mut names).unwrap();
    let later = [&[7; 100], bytes].concat();
    let mut source = Source::new(Cursor::new(later)).unwrap();
    let window = 100..100 + window.end;
    let other = Tables::read(&mut source, &window, lists, &mut names).unwrap();
    let starts =
        |tables: &Tables| tables.images.iter().map(|i| i.range().start).collect::<Vec<_>>();
    assert!(starts(&other).into_iter().eq(starts(&tables).iter().map(|start| start + 100)));
    assert_eq!(texts(&other), texts(&tables));
    tables
}

fn texts(tables: &Tables) -> Vec<String> {
    tables.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn images_are_described() {
    let samples = samples();
    for is_pe in [false, true] {
        for (version, relocated, is_stripped) in
            [(1, false, false), (2, !is_pe, false), (3, !is_pe, !is_pe), (3, false, !is_pe)]
        {
            let form = Form { is_pe, version, relocated, per_table: 2, ..Form::default() };
            let mut file = file(form, &samples);
            let lists = if is_stripped { vec![] } else { vec![list(&file)] };
            if is_stripped {
                strip(&mut file.bytes);
            }
            let tables = read(&file.bytes, &lists);
            assert_eq!(texts(&tables), [""; 0], "{form:?}");
            assert_eq!(tables.images.len(), samples.len());
            for image in &tables.images {
                let start = usize::try_from(image.range().start).unwrap();
                let n = file.images.iter().position(|&at| at == start).unwrap();
                let sample = &samples[n];
                assert_eq!(image.range().end, (start + sample.stored.len()) as u64);
                assert_eq!((image.version(), image.format()), (version, sample.format));
                assert_eq!(image.target(), sample.target);
                assert!(image.kernels().eq(sample.kernels.iter().map(String::as_str)));
                let size = Some(sample.size).filter(|_| !is_stripped);
                assert_eq!(image.uncompressed_size(), size);
                if version > 1 {
                    assert_eq!(image.compile_target(), sample.compile_target.as_deref());
                    assert!(image.aspects().eq(sample.aspects.iter().copied()));
                    let level = image.properties().iter().find(|p| p.name() == "optLevel").unwrap();
                    assert_eq!(level.value(), &SyclValue::Number(2));
                }
            }
        }
    }
}

#[test]
fn errors_name_the_place_of_the_damage() {
    let file = file(Form::default(), &samples());
    let changed = |at: usize, new: &[u8]| {
        let mut bytes = file.bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        let tables = read(&bytes, &[list(&file)]);
        let first: &Error = &tables.faults[0];
        (first.kind(), first.offset(), first.to_string(), tables.images.len())
    };
    let (table, descriptors) = (file.tables[0], &file.descriptors);
    let at = descriptors[0] as u64;
    let (kind, offset, text, images) = changed(descriptors[0], &[4]);
    assert_eq!((kind, offset, images), (ErrorKind::Malformed, Some(at), 0));
    assert!(text.ends_with("expected version 1, 2 or 3, found 4"), "{text}");
    let (kind, offset, text, _) = changed(table + 2, &[0xff, 0xff]);
    assert_eq!((kind, offset), (ErrorKind::Malformed, Some(table as u64)));
    assert!(text.contains("expected 65535 descriptors at address"), "{text}");
    let (kind, offset, text, images) = changed(descriptors[0] + 45, &[1]);
    assert_eq!((kind, offset, images), (ErrorKind::Malformed, Some(at), 2));
    assert!(text.contains("which the file does not hold"), "{text}");
    let (kind, offset, text, images) = changed(table, &[2]);
    assert_eq!((kind, offset, images), (ErrorKind::Undescribed, None, 0));
    assert!(text.starts_with("section .tgtimg lists 3 SYCL images"), "{text}");
    // A big-endian file, and one of 32 bits.
    for (place, host) in [(5, "a big-endian ELF file"), (4, "a 32-bit ELF file")] {
        let mut bytes = file.bytes.clone();
        bytes[place] = 3 - bytes[place];
        let ty = if place == 5 { [0, 3] } else { [3, 0] };
        bytes[16..18].copy_from_slice(&ty);
        let tables = read(&bytes, &[list(&file)]);
        assert_eq!(tables.faults[0].kind(), ErrorKind::Unsupported);
        assert!(texts(&tables)[0].ends_with(host));
        assert!(read(&bytes, &[]).faults.is_empty());
    }
}

#[test]
fn names_are_bounded() {
    let file = file(Form::default(), &samples());
    let window = 0..file.bytes.len() as u64;
    let mut source = Source::of_bytes(&file.bytes);
    let tables = Tables::read(&mut source, &window, &[], &mut Budget::new(40)).unwrap();
    assert!(tables.images.is_empty());
    assert_eq!(tables.faults[0].kind(), ErrorKind::Limit);
}

#[test]
fn truncated_files_are_read_up_to_their_end() {
    for is_pe in [false, true] {
        let file = file(Form { is_pe, ..Form::default() }, &samples());
        for len in (0..file.bytes.len()).step_by(7) {
            let tables = read(&file.bytes[..len], &[list(&file)]);
            assert!(tables.images.iter().all(|image| image.range().end <= len as u64));
        }
    }
}

#[test]
fn data_at_the_last_addresses_holds_no_table() {
    let form = Form { version: 3, per_table: 2, ..Form::default() };
    let mut bytes = file(form, &samples()).bytes;
    let start = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    for header in bytes[start..].chunks_exact_mut(64) {
        // Address and size: too few bytes for a table, and none of them is aligned.
        header[16..24].copy_from_slice(&(u64::MAX - 2).to_le_bytes());
        header[32..40].copy_from_slice(&2_u64.to_le_bytes());
    }
    assert!(read(&bytes, &[]).images.is_empty());
}
