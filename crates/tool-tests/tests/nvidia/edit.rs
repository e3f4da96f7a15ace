//! Edited CUDA programs and libraries, shown right: files of CUDA sources for several GPUs, linked in many ways, are edited
//! with `offload`, and loaded or run then on a stand-in for the CUDA runtime, which finds exactly the images that should
//! be there where a runtime looks for them. NVIDIA's `cuobjdump` finds the same ones in each file, byte for byte.
//!
//! Needs NVIDIA's tools in `target/nvidia`, or where `CUDA` points, and what the `edit` tests of the target `llvm` need;
//! fails without them. The files stay in `edit-zoo-cuda` in Cargo's directory for temporary files until the next run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use nv_fatbin::Codec;

use crate::common;
use crate::edit_rig::broken::Breaker;
use crate::edit_rig::check::{
    Before, Container as _, Depth, Edited, Rig, comes_back, containers, does_nothing, edit,
    is_pinned, is_refused, is_smaller, narrows, of,
};
use crate::edit_rig::cuda::{CUBINS, FEW, FULL, Fatbinary, Image, Units};
use crate::edit_rig::observe::observe;
use crate::edit_rig::zoo::{Linked, Shape, Units as _, World};
use crate::edit_rig::{Complaints, command, each, must, said, settle, tool};

/// The files, and what they are like before edits.
pub(crate) static RIG: LazyLock<Rig<Fatbinary>> = LazyLock::new(Rig::new);

/// The units of a file.
fn units(file: &Linked) -> Units {
    Units::links().iter().find(|link| link.name == file.name).unwrap().units
}

/// The fatbinaries of a file with some of their images.
pub(crate) fn only(file: &Linked, keep: impl Fn(&str) -> bool) -> Vec<Fatbinary> {
    let fatbinaries = RIG.before(file).containers.iter();
    fatbinaries.map(|fatbinary| fatbinary.filtered(&keep)).collect()
}

/// The fatbinaries of a file with their images stored in another way.
fn stored_as(file: &Linked, codec: impl Fn(&Image) -> Option<Codec>) -> Vec<Fatbinary> {
    let fatbinaries = RIG.before(file).containers.iter();
    fatbinaries.map(|fatbinary| fatbinary.stored_as(&codec)).collect()
}

/// Further edits that are not looked at.
const NOTHING: fn(&Edited) -> Result<Complaints, String> = |_| Ok(Complaints::new());

#[test]
fn unedited_files_have_their_intended_shape() {
    settle(&each(&RIG.chosen(), |file| {
        let Before { seen, containers } = RIG.before(file);
        let mut complaints = Complaints::new();
        let mut expect = |is_right: bool, what: String| {
            if !is_right {
                complaints.push(format!("{}: {what}", file.name));
            }
        };
        let units = units(file);
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let expected = units.images().into_iter();
        let expected: Vec<_> = expected
            .map(|images| sorted(images.iter().map(|&image| image.to_owned()).collect()))
            .collect();
        let found = containers.iter().map(|fatbinary| &fatbinary.images);
        let found: Vec<_> = found
            .map(|images| sorted(images.iter().map(|image| image.target.clone()).collect()))
            .collect();
        expect(found == expected, format!("{found:?}"));
        let images = || containers.iter().flat_map(|fatbinary| &fatbinary.images);
        let codecs: BTreeSet<_> =
            images().map(|image| image.codec.map_or("none", Codec::name)).collect();
        expect(codecs == units.codecs(), format!("{codecs:?}"));
        // Images of all targets and units differ, so that each change is seen.
        let codes: BTreeSet<_> = images().map(|image| &image.code).collect();
        // The linked code of units is as much alike as theirs.
        let is_relocatable = matches!(units, Units::Rdc);
        expect(codes.len() == images().count() || is_relocatable, "images are alike".into());
        let is_odd = |line: &&str| !line.starts_with("fatbinary ") || line.contains(" not ");
        expect(!seen.log.lines().any(|line| is_odd(&line)), seen.log.clone());
        let (linked, prelinked, variables) = match units {
            Units::Rdc => (1, 2, 6),
            Units::RdcNew => (0, 0, 4),
            _ => (0, 0, 2 * file.containers),
        };
        for (line, count) in [
            (": magic 466243b1, version 1, last field 0\n", file.containers - linked - prelinked),
            (": magic 466243b1, version 2, last field 1\n", linked),
            (": prelinked\n", prelinked),
            (": registered\n", file.containers - prelinked),
            (": unregistered\n", file.containers - prelinked),
            (": function kernel", variables / 2),
            (": variable ", variables),
            ("fatbinary 0: kernel0 launched\n", 2),
        ] {
            let found = seen.log.matches(line).count();
            expect(found == count, format!("{line:?} {found} times in\n{}", seen.log));
        }
        complaints.extend(RIG.unedited(file, units == Units::Referred));
        complaints
    }));
}

/// Tools that ruin unedited files do not count for edited ones; these are all such tools.
#[test]
fn tools_that_ruin_unedited_files_are_known() {
    settle(&RIG.unknown_ruins());
}

#[test]
fn broken_device_code_is_seen() {
    let section = ".nv_fatbin";
    // The first entry has a header of 64 bytes or more; its code follows.
    RIG.is_rejected("so-lld-plain", Depth::Itself, "container 0: sm_75: ", |file| {
        let at = file.section(section) + 16 + 0x1010;
        file.flip(at)
    });
    // A byte of its header that says nothing of the code.
    RIG.is_rejected("so-lld-plain", Depth::Itself, "container 0: sm_75 as stored: ", |file| {
        let at = file.section(section) + 16 + 2;
        file.flip(at)
    });
    RIG.is_rejected("so-lld-compressed", Depth::Itself, "container 0: ", |file| {
        let at = file.section(section) + 16 + 0x200;
        file.flip(at)
    });
    // 75 becomes 74.
    RIG.is_rejected("so-lld-plain", Depth::Itself, " sm_74 (", |file| {
        let at = file.section(section) + 16 + 28;
        file.flip(at)
    });
    RIG.is_rejected("so-bfd-rdc", Depth::Itself, "cuobjdump finds ", |file| {
        // A fatbinary that is registered, as a part of the linked one, is in another section.
        let at = file.section("__nv_relfatbin") + 16 + 28;
        file.flip(at)
    });
}

#[test]
fn broken_fatbinaries_are_seen() {
    let rejected = |complaint: &str, break_it: fn(Breaker, usize) -> Breaker| {
        RIG.is_rejected("so-lld-plain", Depth::Itself, complaint, |file| {
            let at = file.section(".nv_fatbin");
            break_it(file, at)
        });
    };
    rejected("no magic", |file, at| file.flip(at));
    rejected("another header", |file, at| file.flip(at + 4));
    rejected("another header", |file, at| file.flip(at + 6));
    rejected("container 0: is ; not ", |file, at| file.put(at + 8, &[0; 8]));
    rejected("entry 3 does not lie in its fatbinary", |file, at| {
        file.add(at + 8, 0_u64.wrapping_sub(8))
    });
    rejected("entry 0 does not lie in its fatbinary", |file, at| file.flip(at + 16 + 8));
    rejected("entry 0 does not lie in its fatbinary", |file, at| file.put(at + 16 + 4, &[0; 4]));
}

#[test]
fn broken_pointers_are_seen() {
    RIG.is_rejected("so-bfd", Depth::Itself, "no magic", |file| {
        let at = file.relocation_of_wrapper(1);
        file.add(at, 0x1000)
    });
    RIG.is_rejected("so-lld", Depth::Itself, "container 1: ", |file| {
        // To the next fatbinary.
        let at = file.relocation_of_wrapper(1);
        let next = file.relocation_of_wrapper(2);
        let bytes = file.bytes()[next..next + 8].to_vec();
        file.put(at, &bytes)
    });
    // The wrapper of relocatable code: the linked one leads to it.
    RIG.is_rejected("so-bfd-rdc", Depth::Itself, "no magic", |file| {
        let at = file.relocation_of_wrapper(0);
        file.add(at, 8)
    });
    RIG.is_rejected("exe-gold-plain", Depth::Itself, "fatbinary 0 not aligned", |file| {
        let at = file.section(".nvFatBinSegment") + 8;
        file.add(at, 4)
    });
    RIG.is_rejected("so-bfd", Depth::Itself, "magic ", |file| {
        let at = file.section(".nvFatBinSegment");
        file.flip(at)
    });
    RIG.is_rejected("so-bfd", Depth::Itself, "version 0", |file| {
        let at = file.section(".nvFatBinSegment") + 4;
        file.flip(at)
    });
}

#[test]
fn broken_layouts_are_seen() {
    let rejected = |name: &str, complaint: &str, break_it: fn(Breaker) -> Breaker| {
        RIG.layout_is_rejected(name, complaint, break_it);
    };
    let wrapper = ".nvFatBinSegment: a wrapper differs in more than its pointer";
    rejected("so-bfd", wrapper, |file| {
        let at = file.section(".nvFatBinSegment");
        file.flip(at + 16)
    });
    rejected("so-bfd-rdc", "__nv_module_id: other contents", |file| {
        let at = file.section("__nv_module_id");
        file.flip(at)
    });
    rejected("so-bfd-rdc", ".rela.dyn: the relocation of", |file| {
        // The list of fatbinaries of relocatable code does not move.
        let at = file.relocation_of_wrapper_field(3, 16);
        file.flip(at)
    });
    rejected("so-bfd-rdc", "__nv_module_id: at 0x", |file| {
        let at = file.section_header("__nv_module_id");
        file.add(at + 16, 0x20)
    });
}

#[test]
fn files_thinned_to_one_target_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["thin", "--keep", "sm_80", "--exact"];
        let expected = only(file, |target| ["sm_80", "compute_80"].contains(&target));
        RIG.edit_and_check(file, &words, &expected, Depth::Survival, |edited| {
            let mut complaints = does_nothing(file, edited, &words)?;
            complaints.extend(is_smaller(file, edited));
            Ok(complaints)
        })
    }));
}

/// Each image is kept alone, and with others of its architecture.
#[test]
fn files_thinned_to_each_target_have_what_they_had_for_it() {
    settle(&each(&RIG.chosen(), |file| {
        let mut complaints = Complaints::new();
        let all: BTreeSet<_> = units(file).images().into_iter().flatten().collect();
        for &target in all {
            let words = ["thin", "--keep", target, "--exact", "--allow-empty", "--allow-unserved"];
            // The name of an architecture is the name of PTX for it, too.
            let ptx = target.replace("sm_", "compute_");
            let expected = only(file, |found| found == target || found == ptx);
            complaints.extend(RIG.edit_and_check(file, &words, &expected, Depth::Itself, NOTHING));
        }
        complaints
    }));
}

/// GPUs, and what their driver takes of fatbinaries with these images: the cubin with the highest compute capability that
/// it runs, else the latest PTX that it can compile.
const GPUS: [(&str, &[&str], &str); 14] = [
    ("sm_75", &FULL, "sm_75"),
    ("sm_80", &FULL, "sm_80"),
    ("sm_89", &FULL, "sm_80"),
    ("sm_90", &FULL, "sm_90a"),
    // Neither code nor PTX with the suffix is for later GPUs.
    ("sm_100", &FULL, "compute_80"),
    ("sm_120", &FULL, "sm_120"),
    ("sm_121", &FULL, "sm_120"),
    ("sm_75", &FEW, "sm_75"),
    ("sm_86", &FEW, "sm_80"),
    ("sm_90", &FEW, "sm_90"),
    ("sm_100", &FEW, "compute_90"),
    ("sm_121", &FEW, "compute_90"),
    ("sm_86", &CUBINS, "sm_80"),
    ("sm_90", &CUBINS, "sm_90"),
];

#[test]
fn files_thinned_for_a_gpu_have_what_its_driver_takes() {
    settle(&each(&RIG.chosen(), |file| {
        let mut complaints = Complaints::new();
        let images = units(file).images();
        for (gpu, of, kept) in GPUS {
            if images.iter().all(|images| *images == of) {
                let expected = only(file, |target| target == kept);
                let words = ["thin", "--keep", gpu];
                complaints.extend(RIG.edit_and_check(
                    file,
                    &words,
                    &expected,
                    Depth::Itself,
                    NOTHING,
                ));
            }
        }
        complaints
    }));
}

#[test]
fn files_thinned_without_ptx_have_none() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["thin", "--keep", "sm_75,sm_80", "--exact", "--drop-ptx"];
        let expected = only(file, |target| ["sm_75", "sm_80"].contains(&target));
        let mut complaints = RIG.edit_and_check(file, &words, &expected, Depth::Itself, NOTHING);
        // No cubin runs on it: without PTX it is not served.
        let words = ["thin", "--keep", "sm_100", "--drop-ptx"];
        let refused = edit(file, &file.path, &words).err().unwrap_or_default();
        if !refused.contains("--allow-") {
            complaints.push(format!("{}: {words:?}: {refused:?}", file.name));
        }
        let words =
            [&words[..], &["--allow-unserved", "--allow-empty", "--allow-missing"]].concat();
        // The wrapper leads to an empty fatbinary.
        let expected = only(file, |_| false);
        complaints.extend(RIG.edit_and_check(file, &words, &expected, Depth::Itself, |edited| {
            let is_told = edited.said.contains("empty now: no GPU runs ");
            Ok(if is_told { vec![] } else { vec![format!("says {:?}", edited.said)] })
        }));
        complaints
    }));
}

/// The wrappers lead into a section of another name, where nothing may move.
#[test]
fn files_are_thinned_in_place() {
    let place = tempfile::tempdir().unwrap();
    // Relocatable code has a section of its own.
    let is_simple = |file: &&Linked| {
        let is_relocatable = matches!(units(file), Units::Rdc | Units::RdcNew);
        file.shape == Shape::Shared && file.world == World::Glibc && !is_relocatable
    };
    let files: Vec<_> = RIG.chosen().into_iter().filter(is_simple).collect();
    settle(&each(&files, |file| {
        let renamed = place.path().join(file.name);
        let rename = "--rename-section=.nv_fatbin=.cask_resource".as_ref();
        must(&tool("objcopy"), [rename, file.path.as_os_str(), renamed.as_os_str()]);
        let before = fs::read(&renamed).unwrap();
        let mut complaints = Complaints::new();
        for target in ["sm_80", "sm_120"] {
            let words = ["thin", "--keep", target, "--exact", "--drop-ptx", "--allow-empty"];
            let words = [&words[..], &["--allow-unserved", "--allow-missing"]].concat();
            let edited = match edit(file, &renamed, &words) {
                Ok(edited) => edited,
                Err(error) => {
                    complaints.push(error);
                    continue;
                }
            };
            if edited.bytes().len() != before.len() {
                complaints.push(format!("{}: {words:?}: another size", file.name));
            }
            let seen = match observe(file, &edited.path()) {
                Ok(seen) => seen,
                Err(error) => {
                    complaints.push(format!("{}: {error}", file.name));
                    continue;
                }
            };
            match containers::<Fatbinary>(&seen) {
                Ok(found) => {
                    let expected = only(file, |image| image == target);
                    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        let name = format!("{} in place: container {index}", file.name);
                        complaints.extend(of(&name, found.compare(expected)));
                    }
                }
                Err(error) => complaints.push(format!("{}: {error}", file.name)),
            }
        }
        complaints
    }));
}

#[test]
fn files_with_dropped_targets_keep_the_others() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["thin", "--drop", "sm_75"];
        let expected = only(file, |target| !["sm_75", "compute_75"].contains(&target));
        RIG.edit_and_check(file, &words, &expected, Depth::Messages, |edited| {
            narrows(file, edited, &["thin", "--keep", "sm_80", "--exact"])
        })
    }));
}

#[test]
fn compressed_files_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["compress"];
        let expected = stored_as(file, |image| image.codec.or(Some(Codec::Zstd)));
        if expected == RIG.before(file).containers {
            let mut complaints = Complaints::new();
            match edit(file, &file.path, &words) {
                Ok(edited) if edited.bytes() == fs::read(&file.path).unwrap() => {}
                Ok(_) => complaints.push(format!("{}: compress changes it", file.name)),
                Err(error) => complaints.push(error),
            }
            return complaints;
        }
        RIG.edit_and_check(file, &words, &expected, Depth::Survival, |edited| {
            let mut complaints = does_nothing(file, edited, &words)?;
            if !units(file).codecs().iter().eq(&["none"]) {
                return Ok(complaints);
            }
            complaints.extend(comes_back(file, edited)?);
            Ok(complaints)
        })
    }));
}

#[test]
fn recompressed_files_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["compress", "--recompress"];
        let expected = stored_as(file, |_| Some(Codec::Zstd));
        // The bytes of a zstd frame may be others then.
        let expected: Vec<_> = expected.iter().map(Fatbinary::with_unknown_storage).collect();
        RIG.edit_and_check(file, &words, &expected, Depth::Itself, NOTHING)
    }));
}

#[test]
fn files_compressed_by_the_compiler_grow_when_decompressed() {
    let files: Vec<_> = RIG.chosen();
    let files: Vec<_> =
        files.into_iter().filter(|file| !units(file).codecs().iter().eq(&["none"])).collect();
    settle(&each(&files, |file| {
        let plain = stored_as(file, |_| None);
        let words = ["decompress", "--grow"];
        if file.shape == Shape::Static {
            // There is no room for a program header.
            let refused = edit(file, &file.path, &words).err().unwrap_or_default();
            let is_told = refused.contains("program header");
            return if is_told { vec![] } else { vec![format!("{}: {refused:?}", file.name)] };
        }
        if may_be_pinned(file) {
            let refused = edit(file, &file.path, &words).err().unwrap_or_default();
            let is_told = is_pinned(&refused);
            return if is_told { vec![] } else { vec![format!("{}: {refused:?}", file.name)] };
        }
        RIG.edit_and_check(file, &words, &plain, Depth::Survival, |edited| {
            does_nothing(file, edited, &words)
        })
    }));
}

/// Returns whether a fatbinary cannot move because something may refer to it: a real reference, or an instruction of
/// AArch64 that has the address of its page, with other data in it.
fn may_be_pinned(file: &Linked) -> bool {
    units(file) == Units::Referred || ["aarch64-so-bfd", "aarch64-pie-lld"].contains(&file.name)
}

/// Returns the number of an image in `offload ls`, as edits need it, of those of a fatbinary in a section.
fn number(file: &Linked, target: &str) -> String {
    let is_ptx = target.starts_with("compute_");
    let name = target.replace("compute_", "sm_");
    let rows = common::ls(&file.path);
    let row = rows.iter().find(|row| {
        row.target.as_deref() == Some(&name)
            && (row.image_format.as_deref() == Some("ptx")) == is_ptx
            && row.path.contains(&"section:.nv_fatbin".to_owned())
    });
    row.unwrap().index.to_string()
}

/// The first fatbinary of `.nv_fatbin`, by its number among registered ones.
fn first(file: &Linked) -> usize {
    let rows = common::ls(&file.path);
    let first = rows.iter().find(|row| row.path.contains(&"section:.nv_fatbin".to_owned()));
    let first = first.unwrap();
    let image = common::extract(&file.path, first.index);
    let holds = |fatbinary: &Fatbinary| fatbinary.images[0].is(&image);
    RIG.before(file).containers.iter().position(holds).unwrap()
}

/// A directory with files of images.
struct Images(tempfile::TempDir);

impl Images {
    fn new() -> Self {
        Images(tempfile::tempdir().unwrap())
    }

    /// Writes the image for a target in a fatbinary of a file, and returns its path and code.
    fn put(&self, file: &Linked, fatbinary: usize, target: &str) -> (String, Vec<u8>) {
        let images = &RIG.before(file).containers[fatbinary].images;
        let code = images.iter().find(|image| image.target == target).unwrap().code.clone();
        let path = self.0.path().join(format!("{}-{fatbinary}-{target}", file.name));
        fs::write(&path, &code).unwrap();
        (path.into_os_string().into_string().unwrap(), code)
    }
}

#[test]
fn files_with_replaced_images_are_right() {
    let images = Images::new();
    // For the same GPU, from other files.
    let small = images.put(RIG.file("so-bfd-many"), 7, "sm_80");
    let large = images.put(RIG.file("so-bfd-debug"), 1, "sm_80");
    settle(&each(&RIG.chosen(), |file| {
        let number = number(file, "sm_80");
        let mut complaints = Complaints::new();
        for ((path, code), is_larger) in [(&small, false), (&large, true)] {
            let mut words = vec!["replace".to_owned(), format!("{number}={path}")];
            if is_larger {
                words.push("--grow".into());
            }
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let refusal = match units(file) {
                Units::Concatenated => Some("compressed as one"),
                // There is no room for a program header, or code refers to what would move.
                _ if file.shape == Shape::Static && is_larger => Some("program header"),
                _ if may_be_pinned(file) && is_larger => Some("may refer to it"),
                _ => None,
            };
            if let Some(reason) = refusal {
                let refused = edit(file, &file.path, &words).err().unwrap_or_default();
                if !refused.contains(reason) {
                    complaints.push(format!("{}: {words:?}: {refused:?}", file.name));
                }
                continue;
            }
            let first = first(file);
            let mut expected = RIG.before(file).containers.clone();
            expected[first] = expected[first].with("sm_80", code);
            let depth = if is_larger { Depth::Survival } else { Depth::Itself };
            complaints.extend(RIG.edit_and_check(file, &words, &expected, depth, NOTHING));
        }
        complaints
    }));
}

#[test]
fn files_with_removed_and_added_images_are_right() {
    let images = Images::new();
    settle(&each(&RIG.chosen(), |file| {
        let (target, first) = ("sm_80", first(file));
        let mut expected = RIG.before(file).containers.clone();
        expected[first] = expected[first].filtered(|found| found != target);
        let (path, code) = images.put(file, first, target);
        let words = ["remove", "--index", &number(file, target)];
        RIG.edit_and_check(file, &words, &expected, Depth::Itself, |edited| {
            let image = format!("cuda-nvptx64-nvidia-cuda--{target}={path}");
            let words =
                ["add", &image, "--in", "section:.nv_fatbin", "--in", "nv-fatbin:0", "--grow"];
            if units(file) == Units::Referred {
                // Fatbinaries of two sections have the same name now.
                let refused = edit(file, &edited.path(), &words).err().unwrap_or_default();
                let is_told = refused.contains("2 places");
                return Ok(if is_told { vec![] } else { vec![format!("added: {refused:?}")] });
            }
            let added = edit(file, &edited.path(), &words)?;
            // It is the last one now.
            let mut expected = expected.clone();
            expected[first].add(target, &code);
            Ok(of("added again", RIG.check(file, &added.path(), &expected, Depth::Messages)))
        })
    }));
}

/// Links the relocatable code of objects or archives for a GPU, and returns the cubin.
fn device_link(place: &Path, target: &str, files: &[&str]) -> Vec<u8> {
    let arch = format!("--arch={target}");
    let output = command(&common::nvidia("nvlink"))
        .args([&arch, "-o", "out.cubin"])
        .args(files)
        .current_dir(place)
        .output()
        .unwrap();
    // It only warns where an object has no code for the GPU.
    assert!(output.status.success() && output.stderr.is_empty(), "{files:?}: {}", said(&output));
    fs::read(place.join("out.cubin")).unwrap()
}

fn edit_in_place(file: &Path, edits: &[&[&str]]) {
    for edit in edits {
        let mut words = vec![edit[0], file.to_str().unwrap()];
        words.extend(&edit[1..]);
        words.push("--in-place");
        let output = common::offload(&words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
}

#[test]
fn edited_objects_give_the_same_linked_code() {
    let file = RIG.file("so-bfd-rdc");
    let objects = ["rdc0.o", "rdc1.o"];
    for (target, edits) in [
        ("sm_80", &[&["thin", "--keep", "sm_80", "--exact"][..]][..]),
        ("sm_90", &[&["thin", "--keep", "sm_90"]]),
        ("sm_75", &[&["decompress"], &["thin", "--drop", "sm_80"], &["compress"]]),
    ] {
        let expected = fs::read(file.place.join(format!("{target}.cubin"))).unwrap();
        let place = tempfile::tempdir().unwrap();
        for object in objects {
            let copy = place.path().join(object);
            fs::copy(file.place.join(object), &copy).unwrap();
            edit_in_place(&copy, edits);
            let size = |path: &Path| fs::metadata(path).unwrap().len();
            assert_ne!(size(&copy), size(&file.place.join(object)), "{edits:?} {object}");
        }
        assert!(device_link(place.path(), target, &objects) == expected, "{edits:?}");
        // The same in an archive.
        let archive = place.path().join("librdc.a");
        let members = objects.map(|object| file.place.join(object));
        must(&tool("ar"), [Path::new("rc"), &archive, &members[0], &members[1]]);
        edit_in_place(&archive, edits);
        assert!(device_link(place.path(), target, &["librdc.a"]) == expected, "{edits:?}");
    }
}

/// Files that cannot be edited are refused with a reason, and nothing is written.
#[test]
fn files_that_cannot_be_edited_are_refused() {
    let mut complaints = Complaints::new();
    let mut refuse = |words: &[&str], reason: &str, break_it: fn(Breaker, usize) -> Breaker| {
        let file = Breaker::new(RIG.file("so-lld-plain"));
        let at = file.section(".nv_fatbin");
        complaints.extend(is_refused(&break_it(file, at).finish(), words, reason));
    };
    let thin = ["thin", "--keep", "sm_80", "--exact"];
    refuse(&["thin", "--keep", "sm_50", "--exact"], "sm_50", |file, _| file);
    refuse(&["thin", "--drop", "sm_75,sm_80,sm_90"], "no image", |file, _| file);
    refuse(&["remove", "--index", "0", "--index", "100"], "100", |file, _| file);
    refuse(&thin, "where no bundle starts", |file, _| {
        let at = file.relocation_of_wrapper(1);
        file.add(at, 8)
    });
    refuse(&thin, "wrapper", |file, _| {
        let at = file.section(".nvFatBinSegment");
        file.flip(at)
    });
    refuse(&thin, "version", |file, _| {
        let at = file.section(".nvFatBinSegment");
        file.put(at + 4, &[9])
    });
    refuse(&thin, "fatbinary", |file, at| file.flip(at));
    refuse(&thin, "fatbinary", |file, at| file.put(at + 8, &[0xff; 8]));
    refuse(&thin, "fatbinary entry 0", |file, at| file.put(at + 16 + 4, &[0; 4]));
    settle(&complaints);
}
