//! Split libraries, shown right: the files of the rig are split with `offload split` and run on the stand-in for the HIP
//! runtime, whose wrappers lead to a marker then. A stand-in for ROCm's loader finds for each wrapper and GPU the code that
//! its bundle had, before and after further tools have changed the host file. `offload join` makes the file that was split.
//!
//! Needs what the tests of edited files need.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use crate::edit::edit_rig::broken::Breaker;
use crate::edit::edit_rig::check::{Depth, Edited, edit, of};
use crate::edit::edit_rig::hip::{Bundle, decode};
use crate::edit::edit_rig::memory::{self, Elf, is_wrappers};
use crate::edit::edit_rig::observe::{self, Seen};
use crate::edit::edit_rig::survive::{self, TOOLS};
use crate::edit::edit_rig::zoo::{Builder, Linked};
use crate::edit::edit_rig::{Complaints, each, messages, packs, settle};
use crate::edit::{RIG, may_be_pinned, only};

/// The target that `split` refuses.
const SPIRV: &str = "amdgcnspirv";

/// A directory with a host file and its kernel packs.
pub(crate) struct Split {
    place: tempfile::TempDir,
    name: &'static str,
}

impl Split {
    pub(crate) fn directory(&self) -> PathBuf {
        self.place.path().join("out")
    }

    pub(crate) fn host(&self) -> PathBuf {
        self.directory().join(self.name)
    }

    fn pack(&self, target: &str) -> PathBuf {
        self.directory().join(format!(".kpack/rig_{target}.kpack"))
    }
}

/// Runs `offload split` on a file that is, or came out of, `file`.
pub(crate) fn split(file: &Linked, input: &Path, words: &[&str]) -> Result<Split, String> {
    let split = Split { place: tempfile::tempdir().unwrap(), name: file.name };
    let directory = split.directory();
    let mut arguments: Vec<&OsStr> = vec!["split".as_ref(), input.as_os_str()];
    arguments.extend(["--group", "rig", "-o"].map(OsStr::new));
    arguments.push(directory.as_os_str());
    arguments.extend(words.iter().map(OsStr::new));
    let output = common::offload(&arguments);
    let said = common::stderr(&output);
    match output.status.code() {
        Some(0) if !said.contains("panicked") => Ok(split),
        Some(1) if !directory.exists() => Err(said),
        status => Err(format!("offload split: {status:?}, with an output: {said}")),
    }
}

/// Runs `offload join` on a host file.
pub(crate) fn join(file: &Linked, host: &Path, options: &[&str]) -> Result<Edited, String> {
    let mut words = vec!["join"];
    words.extend(options);
    edit(file, host, &words)
}

/// Returns a file without code that `split` refuses, and its bundles.
fn packable(file: &Linked) -> Result<(Option<Edited>, Vec<Bundle>), String> {
    if !file.targets.contains(&SPIRV) {
        return Ok((None, RIG.before(file).containers.clone()));
    }
    match split(file, &file.path, &[]) {
        Err(said) if said.contains("loaders compile no SPIR-V from kernel packs") => {}
        other => return Err(format!("with SPIR-V: {:?}", other.map(|_| "not refused"))),
    }
    let thinned = edit(file, &file.path, &["thin", "--drop", SPIRV])?;
    let kept: Vec<_> = file.targets.iter().copied().filter(|target| *target != SPIRV).collect();
    Ok((Some(thinned), only(file, &kept)))
}

/// Splits a file, and says what is wrong with what comes out, up to a depth.
fn split_and_check(file: &Linked, depth: Depth) -> Complaints {
    let complaints = packable(file).and_then(|(thinned, bundles)| {
        let input = thinned.as_ref().map_or_else(|| file.path.clone(), Edited::path);
        let split = match split(file, &input, &[]) {
            Err(said) if may_be_pinned(file, &said) => return Ok(vec![]),
            Ok(_) if file.name.ends_with("referred") => return Err("is not refused".into()),
            split => split?,
        };
        let seen = observe::observe(file, &split.host())?;
        let mut complaints = check_host(file, &split, &seen, depth);
        complaints.extend(packs::check(&split.directory(), &seen, &bundles));
        complaints.extend(of("joined", check_joined(file, &split, &input, &bundles)?));
        if depth >= Depth::Survival {
            complaints.extend(check_survival(file, &split, &seen, &bundles));
        }
        Ok(complaints)
    });
    of(file.name, complaints.unwrap_or_else(|error| vec![error]))
}

/// Bytes that host files have more: the name of a section, or where the table of names does not come last, as in lld's files,
/// another table.
const NEW_NAME: u64 = 500;

/// Returns the complaints about the host side of a split file.
fn check_host(file: &Linked, split: &Split, seen: &Seen, depth: Depth) -> Complaints {
    let before = &RIG.before(file).seen;
    let mut complaints = observe::compare_host(before, &packs::as_before(seen));
    let (bytes, host) = (fs::read(&file.path).unwrap(), fs::read(split.host()).unwrap());
    complaints.extend(memory::compare(&bytes, &as_before(&host)));
    let size = host.len() as u64 - NEW_NAME;
    complaints.extend(RIG.check_size(file, &packs::as_before(seen), bytes.len() as u64, size));
    if depth >= Depth::Messages {
        let messages = messages::messages(file, &split.host());
        complaints.extend(messages::compare(RIG.messages_before(file), &messages));
    }
    complaints
}

/// Returns a split file with the magic and the last field that its wrappers had, and the name of the section of its marker.
fn as_before(host: &[u8]) -> Vec<u8> {
    let elf = Elf::new(host);
    let mut bytes = host.to_vec();
    let at = |number: u64| usize::try_from(number).unwrap();
    for section in elf.sections.iter().filter(|section| is_wrappers(&section.name)) {
        for wrapper in bytes[at(section.offset)..][..at(section.size)].chunks_mut(24) {
            wrapper[..4].copy_from_slice(b"FPIH");
            wrapper[16..].fill(0);
        }
    }
    let names = elf.section(".shstrtab").offset;
    let old =
        host[at(names)..].windows(13).position(|name| name == b"\0.hip_fatbin\0").unwrap() + 1;
    let marker = elf.sections.iter().position(|section| section.name == ".rocm_kpack_ref").unwrap();
    let header = at(u64::from_le_bytes(host[40..48].try_into().unwrap())) + marker * 64;
    bytes[header..header + 4].copy_from_slice(&u32::try_from(old).unwrap().to_le_bytes());
    bytes
}

/// Returns the complaints about the file that `join` makes of a split one.
fn check_joined(
    file: &Linked,
    split: &Split,
    input: &Path,
    bundles: &[Bundle],
) -> Result<Complaints, String> {
    if !file.compressed {
        let is_same = join(file, &split.host(), &[])?.bytes() == fs::read(input).unwrap();
        return Ok(if is_same { vec![] } else { vec!["it is not the file that was split".into()] });
    }
    let mut complaints = Complaints::new();
    // Compressed bundles come back compressed; not the same bytes, as clang may have another release of libzstd.
    for options in [&[][..], &["--compress"], &["--grow"]] {
        let joined = join(file, &split.host(), options)?;
        let found = RIG.check(file, &joined.path(), bundles, Depth::Messages);
        complaints.extend(of(&options.join(" "), found));
    }
    Ok(complaints)
}

/// Returns the complaints about a split file after further tools, where they do not ruin the one that was not split.
fn check_survival(file: &Linked, split: &Split, seen: &Seen, bundles: &[Bundle]) -> Complaints {
    let size = |path: &Path| fs::metadata(path).unwrap().len() as i64;
    let change = size(&split.host()) - size(&file.path);
    let before = RIG.survival_before(file);
    let mut survival = survive::survival(file, &split.host());
    let mut complaints = Complaints::new();
    for (tool, outcome) in &mut survival {
        let Ok(outcome) = outcome else { continue };
        let found = packs::check(&split.directory(), &outcome.seen, bundles);
        complaints.extend(of(&format!("after {tool}"), found));
        outcome.seen = packs::as_before(&outcome.seen);
    }
    complaints.extend(survive::compare(file, before, &packs::as_before(seen), &survival, change));
    for tool in TOOLS.into_iter().filter(|tool| survival.get(tool).is_some_and(Result::is_ok)) {
        let found = join_after(file, split, tool, bundles).unwrap_or_else(|error| vec![error]);
        complaints.extend(of(&format!("joined after {tool}"), found));
    }
    complaints
}

/// Joins a host file that a tool has changed: its bundles are made again.
fn join_after(
    file: &Linked,
    split: &Split,
    tool: &str,
    bundles: &[Bundle],
) -> Result<Complaints, String> {
    let host = split.directory().join("changed");
    fs::copy(split.host(), &host).unwrap();
    survive::apply(file, tool, &host);
    // Bundles that were compressed or not aligned need more room, and the tool may have taken some.
    let needs_room = |joined: &Result<Edited, String>| {
        joined.as_ref().is_err_and(|said| said.contains("(--grow, or --compress)"))
    };
    let mut joined = join(file, &host, &[]);
    for options in [&["--compress"][..], &["--grow"]] {
        if needs_room(&joined) {
            joined = join(file, &host, options);
        }
    }
    let joined = joined?;
    let seen = observe::observe(file, &joined.path())?;
    let mut complaints = observe::compare_host(&RIG.before(file).seen, &seen);
    let found: Vec<_> =
        seen.containers.iter().map(|dump| decode(dump)).collect::<Result<_, _>>()?;
    if found.len() != bundles.len() {
        complaints.push(format!("{} bundles, not {}", found.len(), bundles.len()));
    }
    let device = |bundle: &Bundle| {
        let entries = bundle.entries.iter().filter(|(id, _)| !id.starts_with("host-"));
        let mut entries: Vec<_> = entries.cloned().collect();
        entries.sort();
        entries
    };
    for (n, (found, expected)) in found.iter().zip(bundles).enumerate() {
        if device(found) != device(expected) {
            complaints.push(format!(
                "bundle {n}: is {}; not {}",
                found.summary(),
                expected.summary()
            ));
        }
    }
    Ok(complaints)
}

/// Files of each kind, for the gate.
const FEW_FILES: [&str; 9] = [
    "so-bfd-debug",
    "so-mold-one",
    "pie-lld-relr",
    "static-gold",
    "exe-gold-compressed",
    "so-bfd-referred",
    "so-bfd-rdc-new",
    "so-lld-new",
    "aarch64-so-lld",
];

#[test]
fn some_split_files_are_right() {
    let files = FEW_FILES.map(|name| RIG.file(name));
    settle(&each(&files, |file| split_and_check(file, Depth::Survival)));
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn split_files_are_right() {
    settle(&each(&RIG.chosen(), |file| split_and_check(file, Depth::Survival)));
}

/// Two units with unequal targets, the one with fewer first: numbers that are counted for each target would be wrong.
#[test]
fn units_with_unequal_targets_get_their_own_code() {
    let builder = Builder { place: RIG.file("so-bfd-debug").place.clone() };
    let clang = "@CLANG --target=x86_64-unknown-linux-gnu";
    for (unit, targets) in [(0, "gfx906,gfx942"), (1, "gfx942")] {
        let step = format!(
            "{clang} -x hip -nogpuinc -nogpulib -Os -DUNIT={unit} -DWORDS=2500 --no-offload-new-driver -fPIC \
             --offload-arch={targets} -cuid=unequal{unit} -c @UNIT -o unequal{unit}.o"
        );
        settle(&builder.step(&builder.parse(&step)));
    }
    let step = format!(
        "{clang} -shared -Wl,-z,defs unequal1.o unequal0.o host-pic.o runtime/libamdhip64.so -o unequal"
    );
    settle(&builder.step(&builder.parse(&step)));
    let file = Linked {
        name: "unequal",
        path: builder.place.join("unequal"),
        targets: &["gfx906", "gfx942"],
        containers: 2,
        ..RIG.file("so-bfd-debug").clone()
    };
    let before = observe::observe(&file, &file.path).unwrap();
    let bundles: Vec<_> = before.containers.iter().map(|dump| decode(dump).unwrap()).collect();
    let has = |n: usize| ["gfx906", "gfx942"].map(|target| bundles[n].image(target).is_some());
    assert_eq!([has(0), has(1)], [[false, true], [true, true]]);
    let split = split(&file, &file.path, &[]).unwrap();
    let seen = observe::observe(&file, &split.host()).unwrap();
    let mut complaints = observe::compare_host(&before, &packs::as_before(&seen));
    complaints.extend(packs::check(&split.directory(), &seen, &bundles));
    settle(&complaints);
    let joined = join(&file, &split.host(), &[]).unwrap();
    assert!(joined.bytes() == fs::read(&file.path).unwrap(), "joined it is another file");
}

/// Asserts that the check of a split file whose host or packs are broken has a complaint.
#[track_caller]
fn is_seen(complaint: &str, words: &[&str], break_it: impl Fn(&Split, Breaker) -> Breaker) {
    let file = RIG.file("so-bfd-debug");
    let split = split(file, &file.path, words).unwrap();
    let breaker = Breaker::new(&Linked { path: split.host(), ..file.clone() });
    let host = break_it(&split, breaker).finish();
    fs::write(split.host(), host).unwrap();
    let seen = observe::observe(file, &split.host()).unwrap();
    let complaints = packs::check(&split.directory(), &seen, &RIG.before(file).containers);
    let is_seen = complaints.iter().any(|found| found.contains(complaint));
    assert!(is_seen, "{complaint}: {complaints:#?}");
}

#[test]
fn broken_split_files_are_seen() {
    let wrapper = |host: &Breaker, n: usize| host.section(".hipFatBinSegment") + n * 24;
    is_seen("wrapper 1: amdgcn-amd-amdhsa--gfx1100: ", &[], |_, host| {
        // Wrappers 1 and 2 with the index of the other.
        let (one, two) = (wrapper(&host, 1) + 16, wrapper(&host, 2) + 16);
        host.put(one, &[2]).put(two, &[1])
    });
    is_seen("wrapper 2: amdgcn-amd-amdhsa--gfx1100: no code", &[], |_, host| {
        let index = wrapper(&host, 2) + 16;
        host.put(index, &[3])
    });
    is_seen("2 markers", &[], |_, host| {
        let magic = wrapper(&host, 0);
        host.put(magic, b"FPIH")
    });
    is_seen("marker 0: ", &[], |_, host| {
        let marker = host.section(".rocm_kpack_ref");
        host.put(marker, &[0xc0])
    });
    is_seen("wrapper 0: amdgcn-amd-amdhsa--gfx1100: no code", &[], |_, host| {
        let name = host.find(host.section(".rocm_kpack_ref"), b"so-bfd-debug");
        host.flip(name)
    });
    is_seen("wrapper 0: amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-: no code", &[], |_, host| {
        let path = host.find(host.section(".rocm_kpack_ref"), b"@GFXARCH@");
        host.put(path, b"gfx1100xx")
    });
    is_seen("marker 1: ", &[], |_, host| {
        // To what lies after the page of the marker.
        let pointer = host.relocation_of_wrapper(1);
        host.add(pointer, 0x1000)
    });
}

#[test]
fn broken_kernel_packs_are_seen() {
    let change = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    };
    is_seen("; different from byte 936 on", &["--no-compress"], |split, host| {
        change(&split.pack("gfx906"), &|bytes| bytes[1000] ^= 1);
        host
    });
    is_seen("amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-: ", &[], |split, host| {
        change(&split.pack("gfx906"), &|bytes| bytes.truncate(1000));
        host
    });
    is_seen("wrapper 2: amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-: no code", &[], |split, host| {
        fs::remove_file(split.pack("gfx906")).unwrap();
        host
    });
    is_seen("wrapper 0: amdgcn-amd-amdhsa--gfx1100: no code", &[], |split, host| {
        fs::copy(split.pack("gfx906"), split.pack("gfx1100")).unwrap();
        host
    });
    is_seen("gfx942:sramecc+:xnack-: code of another wrapper or GPU", &[], |split, host| {
        fs::copy(split.pack("gfx906"), split.pack("gfx942")).unwrap();
        change(&split.pack("gfx942"), &|bytes| {
            let names: Vec<_> =
                (0..bytes.len() - 6).filter(|&at| &bytes[at..at + 6] == b"gfx906").collect();
            names.into_iter().for_each(|at| bytes[at..at + 6].copy_from_slice(b"gfx942"));
        });
        host
    });
}
