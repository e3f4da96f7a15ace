//! Kernels of images that compilers made, whose numbers `llvm-readobj`, `cuobjdump`, `llvm-dis` and `spirv-dis` print, and of images
//! that are made here to be malformed.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

use std::path::Path;

use device_code::{Fault, FileFormat, Kernel, Kernels, Stored, Version, kernels, places_of_target};
use samples::device::*;
use samples::elf::{NOTE, PROGBITS, section, with_many_sections};

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(path).unwrap()
}

fn read(image: &[u8]) -> Kernels<'_> {
    kernels(image).unwrap()
}

/// Returns the kernels of an image without faults.
fn sound(image: &[u8]) -> Vec<Kernel<'_>> {
    let found = read(image);
    assert_eq!(found.faults, []);
    found.kernels.unwrap()
}

/// Returns the kernels of an image with one fault, and the fault.
fn with_fault(image: &[u8]) -> (Vec<Kernel<'_>>, Fault) {
    let found = read(image);
    assert_eq!(found.faults.len(), 1, "{:?}", found.faults);
    (found.kernels.unwrap(), found.faults[0])
}

fn names<'a>(kernels: &[Kernel<'a>]) -> Vec<&'a str> {
    kernels.iter().map(|kernel| std::str::from_utf8(kernel.name).unwrap()).collect()
}

/// A kernel with a known name alone.
fn named(name: &[u8]) -> Kernel<'_> {
    let mut kernel = Kernel::default();
    kernel.name = name;
    kernel
}

/// A code object with this metadata.
fn described(metadata: &[u8], kernels: &[&str]) -> Vec<u8> {
    code_object(AMD, &[section(".note", NOTE, note(metadata))], kernels)
}

/// Returns the offset of a value of one byte after a key of the metadata of an image.
fn place(image: &[u8], text: &[u8]) -> u64 {
    let at = image.windows(text.len()).position(|window| window == text).unwrap();
    (at + text.len()) as u64
}

#[test]
fn code_objects_are_as_llvm_readobj_prints_them() {
    for (file, version) in [("v4.co", 4), ("v6.co", 6)] {
        let image = data(file);
        assert_eq!(read(&image).version, Some(Version::CodeObject(version)));
        let found = sound(&image);
        let [one, two] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.name, two.name), (&b"one"[..], &b"two"[..]));
        assert_eq!((one.code_size, two.code_size), (Some(120), Some(48)));
        assert_eq!((one.group_memory, two.group_memory), (Some(1024), Some(0)));
        assert_eq!((one.arguments_size, two.arguments_size), (Some(12), Some(8)));
        assert_eq!((one.scalars, two.scalars), (Some(37), Some(10)));
        assert_eq!((one.max_group_size, two.max_group_size), (Some(128), Some(256)));
        assert_eq!((one.required_group_size, two.required_group_size), (Some([64, 2, 1]), None));
        for kernel in [one, two] {
            assert_eq!((kernel.registers, kernel.registers_allocated), (Some(2), Some(8)));
            assert_eq!((kernel.accumulators, kernel.wave_size), (Some(0), Some(64)));
            assert_eq!((kernel.vector_spills, kernel.scalar_spills), (Some(0), Some(0)));
            assert_eq!(kernel.private_memory, Stored::Known(0));
            assert_eq!(kernel.frame, None);
        }
        // As `llvm-readelf -s` prints the symbols; addresses are offsets here.
        let descriptors = if version == 4 { [0x740, 0x780] } else { [0x780, 0x7c0] };
        let descriptors = descriptors.map(|start| Some(start..start + 64));
        assert_eq!([&one.descriptor_range, &two.descriptor_range], descriptors.each_ref());
        assert_eq!(one.code_range, Some(0x900..0x900 + 120));
        assert_eq!(two.code_range, Some(0xb00..0xb00 + 48));
        let arguments = one.arguments.as_deref().unwrap();
        let places =
            arguments.iter().map(|argument| (argument.kind, argument.offset, argument.size));
        let [pointer, value] = [&b"global_buffer"[..], b"by_value"];
        assert!(places.eq([(Some(pointer), 0, 8), (Some(value), 8, 1)]));
    }
}

#[test]
fn cubins_are_as_cuobjdump_prints_them() {
    for (file, abi) in [("abi-7.cubin", 7), ("abi-8.cubin", 8)] {
        let image = data(file);
        assert_eq!(read(&image).version, Some(Version::CubinAbi(abi)));
        let found = sound(&image);
        assert_eq!(names(&found), ["two", "one"]);
        let [two, one] = &found[..] else { panic!("{found:?}") };
        // SHARED is 2048, with 1024 that the compiler reserves.
        assert_eq!((one.group_memory, one.group_memory_reserved), (Some(1024), Some(1024)));
        assert_eq!((two.group_memory, two.group_memory_reserved), (Some(0), Some(0)));
        assert_eq!((one.arguments_size, two.arguments_size), (Some(9), Some(8)));
        // As `llvm-readelf -S` prints the sections.
        let start = if abi == 7 { 0x980 } else { 0xb00 };
        assert_eq!(two.code_range, Some(start..start + 384));
        assert_eq!(one.code_range, Some(start + 384..start + 384 + 640));
        assert_eq!((&one.descriptor_range, &two.descriptor_range), (&None, &None));
        let bank = if abi == 7 { [537, 536] } else { [905, 904] };
        assert_eq!([&one.constants[..], &two.constants], bank.map(|size| [(0, size)]));
        for kernel in [one, two] {
            assert_eq!((kernel.registers, kernel.barriers), (Some(10), Some(0)));
            assert_eq!((kernel.frame, kernel.private_memory), (Some(0), Stored::Known(0)));
            assert_eq!((kernel.vector_spills, kernel.scalars), (None, None));
        }
    }
}

/// A code object of one kernel, and the place of its descriptor; the code is 64 bytes later.
fn one_kernel() -> (Vec<u8>, usize) {
    let image = described(&metadata(&[kernel("one", &[])]), &["one"]);
    let found = sound(&image).remove(0);
    let descriptor = found.descriptor_range.unwrap();
    assert_eq!(descriptor.len(), 64);
    assert_eq!(found.code_range, Some(descriptor.end..descriptor.end + 100));
    (image, descriptor.start)
}

/// An instrumenter may have the hardware start its own code, and return to the function.
#[test]
fn code_that_the_descriptor_does_not_start_has_no_place() {
    let (mut image, descriptor) = one_kernel();
    image[descriptor + 16] += 4;
    let found = sound(&image).remove(0);
    assert_eq!((found.code_range, found.code_size), (None, Some(100)));
    assert_eq!(found.descriptor_range, Some(descriptor..descriptor + 64));
    // A linker has yet to write the distance.
    let head = Head { kind: 1, ..AMD };
    let metadata = metadata(&[kernel("one", &[])]);
    let object = code_object(head, &[section(".note", NOTE, note(&metadata))], &["one"]);
    let known = sound(&object).remove(0);
    let at = known.descriptor_range.clone().unwrap().start;
    let mut unlinked = object.clone();
    unlinked[at + 16..at + 24].fill(0);
    assert_eq!(sound(&unlinked)[0], known);
    assert_eq!(known.code_range.unwrap().len(), 100);
}

/// Loaders read segments, not the table of sections.
#[test]
fn places_are_those_of_segments() {
    let (image, descriptor) = one_kernel();
    for (offset, len, is_known) in
        [(0, 1 << 20, [true; 2]), (0, descriptor + 64, [true, false]), (64, 1 << 20, [false; 2])]
    {
        let mut image = image.clone();
        // The one segment, at address 0, lies after the rest.
        let at = image.len() as u64;
        let numbers = [offset, 0, 0, len as u64, len as u64, 64];
        image.extend([1_u32, 5].map(u32::to_le_bytes).concat());
        image.extend(numbers.map(u64::to_le_bytes).concat());
        image[32..40].copy_from_slice(&at.to_le_bytes());
        image[54..58].copy_from_slice(&[56, 0, 1, 0]);
        let found = sound(&image).remove(0);
        assert_eq!([found.descriptor_range.is_some(), found.code_range.is_some()], is_known);
        assert_eq!(found.group_memory, Some(1024));
    }
}

/// `amd_kernel_code_t`, and the code after it.
#[test]
fn kernels_of_version_2_have_header_and_code_in_one_symbol() {
    let mut code = vec![0; 320];
    code[0] = 1;
    code[8] = 1;
    code[16..24].copy_from_slice(&256_u64.to_le_bytes());
    let image = |code: &[u8], size| {
        let text = section(".hsatext", PROGBITS, code);
        elf(Head { abi: 0, ..AMD }, &[text], &[("one", 10, 0, 1, 0, size)])
    };
    let made = image(&code, 320);
    let found = sound(&made).remove(0);
    let header = found.descriptor_range.unwrap();
    assert_eq!(made[header.clone()], code[..256]);
    assert_eq!(found.code_range, Some(header.end..header.end + 64));
    assert_eq!((found.name, found.code_size), (&b"one"[..], Some(64)));
    for (at, value, size) in
        [(0, 2, 320), (8, 2, 320), (17, 0, 320), (17, 2, 320), (23, 0x80, 320), (0, 1, 255)]
    {
        let mut code = code.clone();
        code[at] = value;
        let image = image(&code, size);
        let found = sound(&image).remove(0);
        assert_eq!((found.code_range, found.code_size), (None, None), "{at}");
        // The header of another version, or not in the symbol.
        assert_eq!(found.descriptor_range.is_some(), at >= 17, "{at}");
    }
}

#[test]
fn bitcode_has_the_kernels_of_llvm_dis() {
    for file in ["amdgcn.bc", "nvptx64.bc", "spir64.bc"] {
        let image = data(file);
        let found = sound(&image);
        assert_eq!(names(&found), ["one", "two"], "{file}");
        assert_eq!(found[0], named(b"one"));
        let len = u32::try_from(image.len()).unwrap();
        let header = [0x0b17_c0de, 0, 20, len, 7].map(u32::to_le_bytes).concat();
        let wrapped = [header, image.clone(), vec![0; 12]].concat();
        assert_eq!(names(&sound(&wrapped)), ["one", "two"]);
        assert!(read(&image[..image.len() - 200]).faults.len() == 1);
    }
    assert_eq!(names(&sound(&data("several.bc"))), ["one", "two", "one", "two"]);
}

/// LLVM named kernels of NVIDIA's GPUs in metadata before release 21.
#[test]
fn kernels_of_old_bitcode_are_not_known() {
    let image = data("annotations.bc");
    let found = read(&image);
    assert_eq!((found.format, found.kernels), (FileFormat::Bitcode, None));
    assert_eq!(found.faults, []);
}

#[test]
fn spirv_is_as_spirv_dis_prints_it() {
    let image = data("kernels.spv");
    assert_eq!(read(&image).version, Some(Version::SpirV(1, 4)));
    let found = sound(&image);
    assert_eq!(names(&found), ["one", "two"]);
    assert_eq!(found[0].required_group_size, Some([64, 2, 1]));
    assert_eq!((found[1].required_group_size, found[1].wave_size), (None, None));
}

#[test]
fn modes_of_spirv_hold_for_every_entry_of_their_function() {
    let name = u32::from_le_bytes(*b"k\0\0\0");
    let image = spirv(&[
        (15, &[6, 7, name]),
        (15, &[5, 7, name]),
        (15, &[6, 8, name]),
        (16, &[7, 35, 16]),
        (16, &[7, 5618, 4096]),
        (16, &[7, 5893, 8, 8, 4]),
        (16, &[7, 6417, 2]),
        (16, &[9, 35, 32]),
        (54, &[1, 7, 0, 2]),
        (16, &[8, 35, 8]),
    ]);
    let found = sound(&image);
    for kernel in &found[..2] {
        assert_eq!((kernel.wave_size, kernel.group_memory), (Some(16), Some(4096)));
        assert_eq!((kernel.max_group_size, kernel.barriers), (Some(256), Some(2)));
    }
    assert_eq!(found[2].wave_size, None);
    let mut cut = image.clone();
    cut[20..24].copy_from_slice(&15_u32.to_le_bytes());
    assert_eq!(with_fault(&cut).1.offset, 20);
}

const ZE_INFO: &str = "---
version:         '1.53'
kernels:
  - name:            first
    user_attributes:
      reqd_work_group_size: [ 8, 4, 1 ]
    execution_env:
      barrier_count:   1
      grf_count:       256
      private_size:    512
      simd_size:       32
      slm_size:        2048
      spill_size:      64
    payload_arguments:
      - arg_type:        arg_bypointer
        offset:          32
        size:            8
    per_thread_memory_buffers:
      - type:            scratch
        slm_size:        1
  - name:            'second'
    execution_env:
      grf_count:       128
      has_stack_calls: true
      private_size:    100
      required_work_group_size: [ 0, 0, 0 ]
      simd_size:       16
kernels_misc_info:
  - name:            first
...
";

#[test]
fn zebins_are_as_their_yaml_says() {
    let image = zebin(ZE_INFO, &["first", "second"]);
    let found = read(&image);
    assert_eq!(found.version, Some(Version::ZeInfo(1, 53)));
    let found = sound(&image);
    assert_eq!(names(&found), ["first", "second"]);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_eq!((first.registers_allocated, second.registers_allocated), (Some(256), Some(128)));
    assert_eq!((first.wave_size, second.wave_size), (Some(32), Some(16)));
    assert_eq!((first.barriers, second.barriers), (Some(1), Some(0)));
    assert_eq!((first.group_memory, second.group_memory), (Some(2048), Some(0)));
    assert_eq!((first.spill_memory, second.spill_memory), (Some(64), Some(0)));
    // Bytes of a thread are those of 32 and of 16 work-items.
    assert_eq!(first.private_memory, Stored::Known(16));
    assert_eq!(second.private_memory, Stored::Unknown(7));
    assert_eq!((first.required_group_size, second.required_group_size), (Some([8, 4, 1]), None));
    assert_eq!((first.code_size, first.is_code_size_estimated), (Some(200), true));
    assert_eq!((first.registers, first.vector_spills), (None, None));
}

#[test]
fn malformed_yaml_of_zebins_is_a_fault_at_its_line() {
    let text = ZE_INFO.replace("slm_size:        2048", "slm_size:        many");
    let image = zebin(&text, &["first"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((found[0].group_memory, found.len()), (Some(0), 2));
    assert!(image[fault.offset as usize..].starts_with(b"      slm_size"));
    let twice = ZE_INFO.replace("simd_size:       32", "simd_size: 32\n      simd_size: 8");
    let image = zebin(&twice, &[]);
    let (found, fault) = with_fault(&image);
    assert_eq!((found[0].wave_size, fault.expected), (Some(32), "a key once"));
    assert_eq!(found[0].code_size, None);
    // Without a description the kernels are not known.
    let image = elf(ZEBIN, &[section(".text.k", PROGBITS, [0])], &[]);
    assert_eq!((read(&image).kernels, read(&image).version), (None, None));
}

/// The size of the function is 0 in code that was written by hand.
#[test]
fn a_size_that_is_not_stated_reaches_to_the_next_function() {
    let notes = section(".note", NOTE, note(&metadata(&[kernel("a", &[]), kernel("b", &[])])));
    let sections = [
        section(".rodata", PROGBITS, descriptor()),
        section(".text", PROGBITS, vec![0; 300]),
        notes,
    ];
    let symbols = [("a", FUNCTION, 3, 2, 0, 0), ("b", FUNCTION, 3, 2, 100, 0)];
    let image = elf(AMD, &sections, &symbols);
    let found = sound(&image);
    assert_eq!((found[0].code_size, found[0].is_code_size_estimated), (Some(100), true));
    assert_eq!((found[1].code_size, found[1].is_code_size_estimated), (Some(200), true));
    assert_eq!((found[0].vector_spills, found[0].registers_allocated), (None, None));
}

/// The version is the one of the header: `amdhsa.version` is [1, 0] in most code that was written by hand.
#[test]
fn the_version_is_that_of_the_header() {
    let text = map(&[
        ("amdhsa.kernels", array(&[kernel("k", &[])])),
        ("amdhsa.version", array(&[number(1), number(0)])),
    ]);
    for abi in 1..=4 {
        let note = section(".note", NOTE, note(&text));
        let image = code_object(Head { abi, ..AMD }, &[note], &["k"]);
        assert_eq!(read(&image).version, Some(Version::CodeObject(abi + 2)));
        assert_eq!(sound(&image)[0].registers_allocated, Some(64));
    }
}

#[test]
fn a_newer_abi_is_read_with_a_fault() {
    let note = section(".note", NOTE, note(&metadata(&[kernel("k", &[])])));
    let image = code_object(Head { abi: 9, ..AMD }, &[note], &["k"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((fault.offset, fault.found), (8, 9));
    assert_eq!((names(&found), found[0].registers), (vec!["k"], Some(47)));
    let text = section(".text.k", PROGBITS, [0; 64]);
    let image = elf(Head { abi: 9, ..CUBIN }, &[text], &[("k", FUNCTION, 0x10, 1, 0, 64)]);
    let (found, fault) = with_fault(&image);
    assert_eq!((names(&found), fault.found), (vec!["k"], 9));
}

/// Numbers of the ABI that leave no number for the version, and program headers that are not there.
#[test]
fn a_header_of_any_bytes_is_read_with_faults() {
    let note = section(".note", NOTE, note(&metadata(&[kernel("k", &[])])));
    let mut image = code_object(Head { abi: 255, ..AMD }, &[note], &["k"]);
    let found = read(&image);
    assert_eq!((found.version, found.faults.len()), (None, 1));
    // Without sections.
    image[8] = 4;
    image[0x28..0x30].fill(0);
    (image[0x36], image[0x38]) = (56, 1);
    image[0x3c..0x40].fill(0);
    image[0x20..0x28].fill(0xff);
    let (found, fault) = with_fault(&image);
    assert_eq!((found.len(), fault.offset, fault.found), (0, 0x20, u64::MAX));
    assert_eq!(fault.expected, "the offset of the program headers");
}

#[test]
fn kernels_of_version_2_are_its_symbols() {
    let text = section(".hsatext", PROGBITS, [0; 512]);
    let symbols = [("k", 10, 0, 1, 0, 300), ("f", FUNCTION, 0, 1, 300, 10)];
    let image = elf(Head { abi: 0, ..AMD }, &[text], &symbols);
    assert_eq!(read(&image).version, Some(Version::CodeObject(2)));
    assert_eq!(sound(&image), [named(b"k")]);
}

#[test]
fn shaders_of_amd_have_kernels_that_are_not_known() {
    let image = code_object(Head { os_abi: 65, ..AMD }, &[], &["k"]);
    assert_eq!((read(&image).kernels, read(&image).version), (None, None));
}

#[test]
fn nested_metadata_is_passed_over() {
    let mut nested = vec![0x91; 200_000];
    nested.push(0);
    let image = described(&metadata(&[kernel("k", &[(".unknown", nested)])]), &["k"]);
    assert_eq!(names(&sound(&image)), ["k"]);
}

#[test]
fn values_of_other_kinds_are_passed_over() {
    let odd = [
        (".a", vec![0xc0]),
        (".b", vec![0xc4, 1, 7]),
        (".c", vec![0xca, 0, 0, 0, 0]),
        (".d", vec![0xd4, 9, 7]),
        (".gfx1250_revision", text("B0")),
        (".workgroup_processor_mode", vec![0xff]),
    ];
    let image = described(&metadata(&[kernel("k", &odd)]), &["k"]);
    assert_eq!(sound(&image)[0].registers, Some(47));
}

/// A count of four thousand millions reserves nothing.
#[test]
fn an_array_past_the_note_leaves_the_kernels_of_the_symbols() {
    let cut = [&[0x81][..], &text("amdhsa.kernels"), &[0xdd, 0xff, 0xff, 0xff, 0xff]].concat();
    let image = described(&cut, &["k", "l"]);
    let (found, fault) = with_fault(&image);
    assert_eq!(names(&found), ["k", "l"]);
    assert_eq!((fault.offset, fault.found), (place(&image, b"amdhsa.kernels"), 0xffff_ffff));
    for kernel in &found {
        assert_eq!((kernel.registers_allocated, kernel.registers), (Some(64), None));
        assert_eq!((kernel.group_memory, kernel.private_memory), (Some(512), Stored::Known(32)));
        assert_eq!((kernel.code_size, kernel.wave_size), (Some(100), Some(64)));
    }
}

#[test]
fn metadata_that_is_cut_short_is_completed_from_symbols() {
    let whole = metadata(&[kernel("k", &[]), kernel("l", &[])]);
    let image = described(&whole[..whole.len() - 90], &["k", "l"]);
    let found = read(&image);
    assert_eq!(found.faults.len(), 1);
    let found = found.kernels.unwrap();
    assert_eq!(names(&found), ["k", "l"]);
    assert_eq!((found[0].registers, found[1].registers), (Some(47), None));
    assert_eq!((found[0].group_memory, found[1].group_memory), (Some(1024), Some(512)));
}

#[test]
fn an_image_without_notes_has_the_kernels_of_its_symbols() {
    let image = code_object(AMD, &[], &["k"]);
    assert_eq!(names(&sound(&image)), ["k"]);
}

#[test]
fn bytes_after_the_metadata_are_a_fault() {
    let whole = metadata(&[kernel("k", &[])]);
    let image = described(&[&whole[..], &[0; 4]].concat(), &["k"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((names(&found), fault.found), (vec!["k"], 4));
}

#[test]
fn the_first_of_two_keys_counts() {
    for (key, value) in [
        (".vgpr_count", number(1)),
        (".name", text("other")),
        (".symbol", text("other.kd")),
        (".wavefront_size", number(32)),
    ] {
        let image = described(&metadata(&[kernel("k", &[(key, value)])]), &["k"]);
        let (found, fault) = with_fault(&image);
        assert_eq!(fault.expected, "a key once", "{key}");
        assert_eq!((names(&found), found[0].registers), (vec!["k"], Some(47)));
        assert_eq!((found[0].wave_size, found[0].registers_allocated), (Some(64), Some(64)));
    }
    let twice = map(&[
        ("amdhsa.kernels", array(&[kernel("k", &[])])),
        ("amdhsa.kernels", array(&[kernel("l", &[])])),
    ]);
    let image = described(&twice, &["k"]);
    assert_eq!((names(&with_fault(&image).0), with_fault(&image).1.found), (vec!["k"], 2));
}

/// A file may have two kernels of one name.
#[test]
fn two_kernels_of_one_name_are_kept() {
    let image = described(&metadata(&[kernel("k", &[]), kernel("k", &[])]), &["k"]);
    assert_eq!(names(&sound(&image)), ["k", "k"]);
}

#[test]
fn the_first_note_that_is_not_empty_counts() {
    let [k, l] = ["k", "l"].map(|name| note(&metadata(&[kernel(name, &[])])));
    let notes = [note(&[]), k, l].concat();
    let image = code_object(AMD, &[section(".note", NOTE, notes)], &["k"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((names(&found), fault.expected), (vec!["k"], "one note of metadata"));
}

#[test]
fn a_value_of_another_kind_is_a_fault_and_absent() {
    let mut members = kernel("k", &[]);
    let at = members.len() - 5;
    members.splice(at.., text("many"));
    let image = described(&metadata(&[members]), &["k"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((found[0].registers, fault.expected), (None, "a number"));
    assert_eq!(fault.offset, place(&image, b".vgpr_count"));
}

#[test]
fn files_with_many_sections_have_their_number_elsewhere() {
    let image = with_many_sections(described(&metadata(&[kernel("k", &[])]), &["k"]));
    assert_eq!(sound(&image)[0].registers_allocated, Some(64));
}

fn cubin(attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut info = section(".nv.info", 0x7000_0000, attributes.concat());
    info.info = 0;
    let sections = [section(".text.k", PROGBITS, [0; 64]), info];
    elf(CUBIN, &sections, &[("k", FUNCTION, 0x10, 1, 0, 64)])
}

#[test]
fn attributes_that_are_not_known_are_passed_over() {
    let image = cubin(&[
        attribute(0xf0, &[1, 2, 3]),
        vec![1, 0xf1, 0, 0, 2, 0xf2, 7, 0, 3, 0xf3, 7, 7],
        // No symbol has this number.
        attribute(0x2f, &[99, 5]),
        attribute(0x2f, &[1, 40]),
        attribute(0x12, &[1, u32::MAX]),
        attribute(0x11, &[1, 16]),
    ]);
    let found = sound(&image);
    assert_eq!((found[0].registers, found[0].frame), (Some(40), Some(16)));
    assert_eq!(found[0].private_memory, Stored::Unknown(16));
}

#[test]
fn the_first_of_two_attributes_counts() {
    let twice = [attribute(0x2f, &[1, 40]), attribute(0x2f, &[1, 41]), attribute(0x11, &[1, 8])];
    let image = cubin(&twice);
    let (found, fault) = with_fault(&image);
    assert_eq!((found[0].registers, found[0].frame), (Some(40), Some(8)));
    assert_eq!(image[fault.offset as usize..][..12], twice[1]);
}

/// Linkers repeat attributes.
#[test]
fn attributes_that_repeat_a_value_are_sound() {
    for (kind, value) in [(0x2f, 40), (0x11, 8), (0x12, 80), (0x12, u32::MAX), (0x12, 0)] {
        let [one, other] = [value, value ^ 3].map(|value| attribute(kind, &[1, value]));
        let frame = attribute(0x11, &[1, 8]);
        let once = cubin(&[one.clone(), frame.clone()]);
        let again = cubin(&[one.clone(), frame, one.clone(), one.clone()]);
        assert_eq!(sound(&again), sound(&once));
        let image = cubin(&[one.clone(), one, other.clone()]);
        let (_, fault) = with_fault(&image);
        assert_eq!(fault.expected, "the value of an earlier attribute");
        assert_eq!(fault.found, u64::from(value ^ 3));
        assert_eq!(image[fault.offset as usize..][..12], other);
    }
}

#[test]
fn a_malformed_attribute_ends_its_section() {
    for (bad, expected) in [
        (vec![9, 0, 0, 0], "an attribute of form 1 to 4"),
        (vec![4, 0, 99, 0], "an attribute that ends in its section"),
        (vec![4, 0], "four bytes of an attribute"),
    ] {
        let image = cubin(&[attribute(0x2f, &[1, 40]), bad.clone()]);
        let (found, fault) = with_fault(&image);
        assert_eq!((found[0].registers, fault.expected), (Some(40), expected));
        assert_eq!(image[fault.offset as usize..][..bad.len()], bad);
    }
}

/// Fails if reading takes far more than a time that grows with the image.
fn quickly<T>(read: impl FnOnce() -> T) -> T {
    samples::faulty::within(20, read)
}

/// Each symbol has a name of a megabyte: the same text, from another byte on.
#[test]
fn names_that_share_bytes_take_no_more_time_than_the_image_is_long() {
    let name = "n".repeat(1 << 20);
    let count = 50_000_u32;
    for (head, kind, other) in [(AMD, OBJECT, 0), (CUBIN, FUNCTION, 0x10)] {
        let text = section(".text", PROGBITS, [0; 64]);
        let mut symbols = vec![("", kind, other, 1, 0, 64); count as usize];
        symbols[0].0 = &name;
        let mut image = elf(head, &[text], &symbols);
        // The first name follows the name of the table of names.
        let table = image.windows(24).position(|symbol| symbol[..5] == [9, 0, 0, 0, 0x10 | kind]);
        let table = table.unwrap();
        for n in 0..count {
            let at = table + n as usize * 24;
            image[at..at + 4].copy_from_slice(&(n + 9).to_le_bytes());
        }
        let found = quickly(|| read(&image));
        assert!(found.kernels.unwrap().len() <= count as usize);
    }
}

#[test]
fn notes_that_share_bytes_take_no_more_time_than_the_image_is_long() {
    let empty = [1, 0, 0].map(u32::to_le_bytes).concat();
    let notes = [empty, vec![0; 4]].concat().repeat(1 << 16);
    let mut sections = vec![section(".note", NOTE, notes)];
    let mut same = section("", NOTE, []);
    same.same_as = Some(1);
    sections.resize(60_000, same);
    let image = elf(AMD, &sections, &[]);
    assert_eq!(quickly(|| sound(&image)), []);
    sections.iter_mut().for_each(|section| section.kind = 0x7000_0000);
    sections[0].contents = [1, 0xf0, 0, 0].repeat(1 << 18);
    let image = elf(CUBIN, &sections, &[]);
    assert_eq!(quickly(|| sound(&image)), []);
}

#[test]
fn modes_of_spirv_take_no_more_time_than_the_module_is_long() {
    let mut instructions: Vec<(u16, &[u32])> = vec![(15, &[6, 7, 0]); 100_000];
    instructions.resize(200_000, (16, &[7, 35, 16]));
    let image = spirv(&instructions);
    assert_eq!(quickly(|| sound(&image)).len(), 100_000);
}

#[test]
fn empty_maps_are_not_kernels_without_end() {
    let count = 4_u32 << 20;
    let head = [&[0x81][..], &text("amdhsa.kernels"), &[0xdd], &count.to_be_bytes()].concat();
    let image = described(&[head, vec![0x80; count as usize]].concat(), &["k"]);
    let (found, fault) = with_fault(&image);
    assert_eq!((names(&found), fault.found), (vec!["k"], count.into()));
}

#[test]
fn faults_are_counted_up_to_a_limit() {
    let odd = vec![(".name", number(1)); 5000];
    let image = described(&metadata(&[kernel("k", &odd)]), &["k"]);
    assert_eq!(read(&image).faults.len(), 1024);
}

/// An image is read where it lies: what stands before and after it has no influence.
#[test]
fn only_the_image_is_read() {
    for file in ["v6.co", "abi-7.cubin", "abi-8.cubin", "kernels.spv", "amdgcn.bc"] {
        let image = data(file);
        let within = [&b"abc"[..], &image, b"kernel_after"].concat();
        let part = &within[3..][..image.len()];
        assert_eq!(sound(part), sound(&image), "{file}");
    }
}

#[test]
fn images_without_their_target_are_equal() {
    let one = data("v6.co");
    let mut two = one.clone();
    two[48] = 0x3f ^ 0x0f;
    let at = place(&two, b"amdhsa--gfx90") as usize;
    two[at] = b'6';
    assert_ne!(one, two);
    let places = places_of_target(&one).unwrap();
    assert_eq!(places_of_target(&two).unwrap(), places);
    let [flags, name] = &places[..] else { panic!("{places:?}") };
    assert_eq!((flags, &one[name.clone()]), (&(48..52), &b"amdgcn-amd-amdhsa--gfx90a"[..]));
    let other = (0..one.len()).filter(|at| one[*at] != two[*at]);
    assert!(other.clone().count() > 1);
    assert!(other.into_iter().all(|at| places.iter().any(|place| place.contains(&at))));
    assert_eq!(places_of_target(&data("abi-7.cubin")), None);
}
