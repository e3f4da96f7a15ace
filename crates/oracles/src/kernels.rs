//! The kernels of images, made from the fuzzer's bytes, and of any bytes.

use arbitrary::{Result, Unstructured};
use device_code::{
    Kernel, KernelRule, Kernels, Measure, RegisterLimits, Stored, Version, demangled, kernels,
    places_of_target,
};
use samples::device::{
    AMD, CUBIN, FUNCTION, Head, array, attribute, code_object, elf, kernel, map, metadata, note,
    number, spirv, text, zebin,
};
use samples::elf::{NOBITS, NOTE, PROGBITS, section, with_many_sections};

use crate::assert_message;

/// Reads any bytes as an image, and any text as a rule. Then makes images of the bytes, checks that their kernels are read as they
/// were written, and that no change of the fuzzer is read outside of the image.
pub fn check(data: &[u8]) {
    read(data);
    rule(data);
    let u = &mut Unstructured::new(data);
    let Ok((mut image, expected)) = made(u) else { return };
    let found = read(&image).expect("it is an image");
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    let facts: Vec<_> = found.kernels.iter().flatten().map(facts).collect();
    assert_eq!(facts, expected);
    let version = found.version;
    if image.starts_with(b"\x7fELF") && u.arbitrary().unwrap_or(false) {
        let many = with_many_sections(image.clone());
        let found = read(&many).expect("it is an image");
        assert!(found.kernels.iter().flatten().map(self::facts).eq(expected), "many sections");
        assert_eq!(found.version, version);
    }
    for _ in 0..u.int_in_range(1..=6).unwrap_or(1) {
        let Ok(at) = u.choose_index(image.len()) else { break };
        image[at] = u.arbitrary().unwrap_or(0xff);
    }
    if u.ratio(1, 4).unwrap_or(false) {
        image.truncate(u.int_in_range(0..=image.len()).unwrap_or(0));
    }
    read(&image);
}

/// Reads any bytes: all that is found lies in them, is bounded by their length, and is the same wherever they lie.
pub fn read(image: &[u8]) -> Option<Kernels<'_>> {
    let found = kernels(image)?;
    assert!(found.faults.len() <= 1024, "{} faults", found.faults.len());
    found.faults.iter().for_each(assert_message);
    let place = image.as_ptr_range();
    let lies_within = |part: &[u8]| {
        let part_of = part.as_ptr_range();
        part.is_empty() || place.start <= part_of.start && part_of.end <= place.end
    };
    let of_image = found.kernels.as_deref().unwrap_or_default();
    assert!(of_image.len() <= image.len() / 8, "{} kernels", of_image.len());
    let mut arguments = 0;
    for kernel in of_image {
        assert!(lies_within(kernel.name));
        for argument in kernel.arguments.iter().flatten() {
            arguments += 1;
            assert!(lies_within(argument.name.unwrap_or_default()));
            assert!(lies_within(argument.kind.unwrap_or_default()));
        }
        numbers(kernel);
        places(kernel, image);
    }
    assert!(arguments <= image.len() / 4, "{arguments} arguments");
    // The longest are too slow for a fuzzer.
    for kernel in of_image.iter().filter(|kernel| kernel.name.len() < 1024).take(64) {
        drop(demangled(kernel.name));
    }
    let within = [&b"\x7fELF"[..], image, &[0xff; 64], image].concat();
    same(&found, within.get(4..4 + image.len()).unwrap_or_default());
    target_places(&found, image);
    Some(found)
}

/// Checks that an image has these kernels as well.
fn same(found: &Kernels<'_>, image: &[u8]) {
    let again = kernels(image).expect("it is an image");
    assert_eq!(again.kernels, found.kernels);
    assert_eq!((again.version, &again.faults), (found.version, &found.faults));
}

/// Checks that code and descriptor lie in the image, with the sizes that are told.
fn places(kernel: &Kernel<'_>, image: &[u8]) {
    if let Some(range) = &kernel.code_range {
        let code = image.get(range.clone()).expect("it lies in the image");
        assert!(!code.is_empty() && Some(code.len() as u64) == kernel.code_size);
    }
    if let Some(range) = &kernel.descriptor_range {
        let descriptor = image.get(range.clone()).expect("it lies in the image");
        assert!([64, 256].contains(&descriptor.len()));
    }
    let without = kernel.without_names();
    assert_eq!(without.code_range, kernel.code_range);
    assert_eq!(without.descriptor_range, kernel.descriptor_range);
}

/// Checks numbers that follow from others.
fn numbers(kernel: &Kernel<'_>) {
    let without = kernel.without_names();
    for measure in Measure::all() {
        assert_eq!(measure.of(&without), measure.of(kernel), "{measure}");
    }
    assert!(kernel.code_size.is_some() || !kernel.is_code_size_estimated);
    for processor in ["gfx90a:xnack+", "gfx906", "gfx1030", "gfx1100", "sm_80", "sm_60"] {
        let Some(bound) = kernel.occupancy(processor) else { continue };
        let size = kernel.wave_size.expect("the bound follows from it");
        assert_eq!(Some(bound.limits), RegisterLimits::of(processor, size));
        assert!(0 < bound.waves && bound.waves <= bound.limits.max_waves, "{bound:?}");
        let parts = bound.waves / bound.limits.parts;
        assert!(parts * bound.registers <= bound.limits.total, "{bound:?}");
    }
}

/// The places of the target are the flags and at most one text, in this order; without them no fault is new.
fn target_places(found: &Kernels<'_>, image: &[u8]) {
    let Some(places) = places_of_target(image) else { return };
    assert!(places.len() <= 2 && places.is_sorted_by_key(|place| place.start), "{places:?}");
    let mut erased = image.to_vec();
    for place in places.clone() {
        assert!(place == (48..52) || place.start >= 52, "{place:?}");
        erased[place].fill(0);
    }
    let again = places_of_target(&erased).expect("it is still a code object");
    assert!(again == places || !found.faults.is_empty(), "{again:?} {places:?}");
}

/// Reads any text as a rule. A rule is written as it was read.
fn rule(data: &[u8]) {
    let text = String::from_utf8_lossy(data.get(..256).unwrap_or(data));
    match text.parse::<KernelRule>() {
        Ok(rule) => {
            let again: KernelRule = rule.to_string().parse().expect("it was written");
            assert_eq!(again, rule);
            let kernel = Kernel::default();
            assert_eq!(rule.hits(&kernel), None);
            for (old, new) in [(0, 0), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
                let _ = rule.hits_change(old, new);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The facts of a kernel that a made image states.
#[derive(Debug, PartialEq)]
struct Facts {
    name: String,
    code_size: Option<u64>,
    /// `true` if the places of the code and of the descriptor are known.
    has_places: [bool; 2],
    registers: Option<u32>,
    registers_allocated: Option<u32>,
    wave_size: Option<u32>,
    group_memory: Option<u64>,
    private_memory: Stored,
    frame: Option<u64>,
    barriers: Option<u32>,
    arguments: Option<Vec<(u64, u64)>>,
}

fn facts(kernel: &Kernel<'_>) -> Facts {
    let arguments = kernel.arguments.as_ref().map(|arguments| {
        arguments.iter().map(|argument| (argument.offset, argument.size)).collect()
    });
    Facts {
        name: String::from_utf8_lossy(kernel.name).into_owned(),
        code_size: kernel.code_size,
        has_places: [kernel.code_range.is_some(), kernel.descriptor_range.is_some()],
        registers: kernel.registers,
        registers_allocated: kernel.registers_allocated,
        wave_size: kernel.wave_size,
        group_memory: kernel.group_memory,
        private_memory: kernel.private_memory,
        frame: kernel.frame,
        barriers: kernel.barriers,
        arguments,
    }
}

fn made(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, Vec<Facts>)> {
    let names: Vec<_> = (0..u.int_in_range(1..=4)?).map(|n| format!("_Z{n}kernel")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    match u.int_in_range(0..=4)? {
        0 => code_objects(u, &names),
        1 => cubins(u, &names),
        2 => zebins(u, &names),
        3 => modules(u, &names),
        _ => texts(u, &names),
    }
}

fn code_objects(u: &mut Unstructured<'_>, names: &[&str]) -> Result<(Vec<u8>, Vec<Facts>)> {
    let (mut kernels, mut expected) = (Vec::new(), Vec::new());
    for name in names {
        let sizes: Vec<u16> = u.arbitrary()?;
        let arguments = sizes.iter().take(4).map(|size| {
            let hidden = size % 3 == 0;
            let kind = if hidden { "hidden_none" } else { "by_value" };
            map(&[
                (".offset", number(8)),
                (".value_kind", text(kind)),
                (".size", number((*size).into())),
            ])
        });
        let arguments = arguments.collect::<Vec<_>>();
        let visible = sizes.iter().take(4).filter(|size| *size % 3 != 0);
        let mut more = vec![(".args", array(&arguments)), (".unknown", array(&arguments))];
        let is_dynamic: bool = u.arbitrary()?;
        if is_dynamic {
            more.push((".uses_dynamic_stack", vec![0xc3]));
        }
        kernels.push(kernel(name, &more));
        expected.push(Facts {
            name: (*name).to_owned(),
            code_size: Some(100),
            has_places: [true, true],
            registers: Some(47),
            registers_allocated: Some(64),
            wave_size: Some(64),
            group_memory: Some(1024),
            private_memory: if is_dynamic { Stored::Unknown(16) } else { Stored::Known(16) },
            frame: None,
            barriers: None,
            arguments: Some(visible.map(|size| (8, (*size).into())).collect()),
        });
    }
    let note = note(&metadata(&kernels));
    let abi = u.int_in_range(1..=4)?;
    let image = code_object(Head { abi, ..AMD }, &[section(".note", NOTE, note)], names);
    let found = device_code::kernels(&image).expect("it is an image");
    assert_eq!(found.version, Some(Version::CodeObject(abi + 2)));
    // Code is not read.
    let mut other = image.clone();
    let code = other.windows(100).position(|bytes| bytes.iter().all(|byte| *byte == 0));
    if let Some(at) = code.filter(|at| *at > 64) {
        other[at..at + 100].fill(0xff);
        same(&found, &other);
    }
    Ok((image, expected))
}

fn cubins(u: &mut Unstructured<'_>, names: &[&str]) -> Result<(Vec<u8>, Vec<Facts>)> {
    let (mut sections, mut symbols, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let mut attributes = Vec::new();
    let texts: Vec<_> = names.iter().map(|name| format!(".text.{name}")).collect();
    for (n, (name, section_name)) in names.iter().zip(&texts).enumerate() {
        let number = u16::try_from(n).expect("few") + 1;
        let (registers, frame): (u8, u16) = (u.arbitrary()?, u.arbitrary()?);
        let (shared, stack): (u16, Option<u16>) = (u.arbitrary()?, u.arbitrary()?);
        let barriers = u.int_in_range(0..=16)?;
        let mut code = section(section_name, PROGBITS, vec![0; 64]);
        code.flags = u64::from(barriers) << 20 | 6;
        sections.push(code);
        symbols.push((*name, FUNCTION, 0x10, number, 0, 64));
        let symbol = u32::from(number);
        attributes.extend(attribute(0x2f, &[symbol, registers.into()]));
        attributes.extend(attribute(0x11, &[symbol, frame.into()]));
        attributes.extend(attribute(0x12, &[symbol, stack.map_or(u32::MAX, u32::from)]));
        let mut memory = section(&format!(".nv.shared.{name}"), NOBITS, []);
        (memory.size, memory.info) = (Some(shared.into()), symbol);
        // Sections of code come first, so that they have the numbers of their kernels.
        sections.push(memory);
        expected.push(Facts {
            name: (*name).to_owned(),
            code_size: Some(64),
            has_places: [true, false],
            registers: Some(registers.into()),
            registers_allocated: None,
            wave_size: Some(32),
            group_memory: Some(shared.into()),
            private_memory: match stack {
                Some(stack) => Stored::Known(stack.into()),
                None => Stored::Unknown(frame.into()),
            },
            frame: Some(frame.into()),
            barriers: Some(barriers),
            arguments: None,
        });
    }
    sections.sort_by_key(|section| section.kind == NOBITS);
    sections.push(section(".nv.info", 0x7000_0000, attributes));
    Ok((elf(CUBIN, &sections, &symbols), expected))
}

fn zebins(u: &mut Unstructured<'_>, names: &[&str]) -> Result<(Vec<u8>, Vec<Facts>)> {
    let mut info = "---\nversion: '1.53'\nkernels:\n".to_owned();
    let mut expected = Vec::new();
    for name in names {
        let quote = if u.arbitrary()? { "'" } else { "" };
        let (registers, memory): (u8, u16) = (u.arbitrary()?, u.arbitrary()?);
        let private = u32::from(u.arbitrary::<u16>()?);
        let simd = *u.choose(&[1, 8, 16, 32])?;
        info += &format!("  - name:            {quote}{name}{quote}\n    execution_env:\n");
        info += &format!("      grf_count: {registers}\n      simd_size: {simd}\n");
        info += &format!("      slm_size: {memory}\n      private_size: {private}\n");
        info += "    payload_arguments:\n      - arg_type: arg_byvalue\n        slm_size: 1\n";
        expected.push(Facts {
            name: (*name).to_owned(),
            code_size: Some(200),
            has_places: [true, false],
            registers: None,
            registers_allocated: Some(registers.into()),
            wave_size: Some(simd),
            group_memory: Some(memory.into()),
            private_memory: Stored::Known(private.div_ceil(simd).into()),
            frame: None,
            barriers: Some(0),
            arguments: None,
        });
    }
    Ok((zebin(&info, names), expected))
}

fn modules(u: &mut Unstructured<'_>, names: &[&str]) -> Result<(Vec<u8>, Vec<Facts>)> {
    let (mut words, mut expected) = (Vec::new(), Vec::new());
    for (name, id) in names.iter().zip(1_u32..) {
        let mut operands = vec![6, id];
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(bytes.len() / 4 * 4 + 4, 0);
        let chunks = bytes.chunks_exact(4);
        operands.extend(chunks.map(|chunk| u32::from_le_bytes(chunk.try_into().expect("four"))));
        let (size, memory): (Option<u8>, Option<u16>) = (u.arbitrary()?, u.arbitrary()?);
        words.push((15, operands));
        words.extend(size.map(|size| (16, vec![id, 35, size.into()])));
        words.extend(memory.map(|memory| (16, vec![id, 5618, memory.into()])));
        expected.push(Facts {
            name: (*name).to_owned(),
            code_size: None,
            has_places: [false, false],
            registers: None,
            registers_allocated: None,
            wave_size: size.map(u32::from),
            group_memory: memory.map(u64::from),
            private_memory: Stored::Absent,
            frame: None,
            barriers: None,
            arguments: None,
        });
    }
    // Entry points come before the modes of all.
    words.sort_by_key(|(opcode, _)| *opcode);
    let instructions: Vec<_> =
        words.iter().map(|(opcode, operands)| (*opcode, &operands[..])).collect();
    Ok((spirv(&instructions), expected))
}

fn texts(u: &mut Unstructured<'_>, names: &[&str]) -> Result<(Vec<u8>, Vec<Facts>)> {
    let mut ptx = ".version 8.0\n.target sm_90\n.address_size 64\n".to_owned();
    let mut expected = Vec::new();
    for name in names {
        let noise =
            *u.choose(&["", "// .entry no(\n", "/* .entry { */", ".pragma \".entry x\";\n"])?;
        let count = u64::from(u.int_in_range(1..=99_u8)?);
        ptx += &format!(
            "{noise}.visible .entry {name}(\n.param .u8 a,\n.param .align 8 .b8 b[{count}]\n)"
        );
        ptx += " .maxntid 64, 2\n{ .reg .b32 %r<4>; { ret; } }\n";
        expected.push(Facts {
            name: (*name).to_owned(),
            code_size: None,
            has_places: [false, false],
            registers: None,
            registers_allocated: None,
            wave_size: Some(32),
            group_memory: None,
            private_memory: Stored::Absent,
            frame: None,
            barriers: None,
            arguments: Some(vec![(0, 1), (8, count)]),
        });
    }
    Ok((ptx.into_bytes(), expected))
}
