//! Edited linked files, shown right: files of HIP sources for several GPUs, linked by four linkers in many ways, are
//! edited with `offload`, and loaded or run then on a stand-in for the HIP runtime, which finds exactly the device code
//! that should be there where a runtime looks for it, before and after further tools have changed the file. No tool has
//! more to say against an edited file than against the unedited one.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, and the other linkers, tools and worlds that `.ci/run`
//! installs; fails without them. The files stay in `edit-zoo` in Cargo's directory for temporary files until the next
//! run.

#[path = "../edit_rig/mod.rs"]
pub(crate) mod edit_rig;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::common::{self, llvm};
use edit_rig::broken::Breaker;
use edit_rig::check::{
    Before, Depth, Edited, Rig, comes_back, does_nothing, edit, is_pinned, is_refused, is_smaller,
    narrows, of,
};
use edit_rig::hip::{self, Bundle, ids};
use edit_rig::zoo::{Linked, Shape};
use edit_rig::{Complaints, each, messages, must, observe, run, said, settle, tool};

/// The files, and what they are like before edits.
pub(crate) static RIG: LazyLock<Rig<Bundle>> = LazyLock::new(Rig::new);

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn unedited_files_have_their_intended_shape() {
    settle(&each(&RIG.chosen(), |file| {
        let Before { seen, containers: bundles } = RIG.before(file);
        let mut complaints = Complaints::new();
        let mut expect = |is_right: bool, what: String| {
            if !is_right {
                complaints.push(format!("{}: {what}", file.name));
            }
        };
        expect(bundles.len() == file.containers, format!("{} bundles", bundles.len()));
        let mut targets = ids(file, file.targets);
        targets.sort();
        for bundle in bundles {
            let mut found: Vec<_> = bundle.entries.iter().map(|(id, _)| id.clone()).collect();
            found.sort();
            let host = found.pop().unwrap();
            expect(host == "host-x86_64-unknown-linux-gnu-", host);
            expect(found == targets, format!("{found:?}"));
            expect(bundle.compressed == file.compressed.then_some(3), bundle.summary());
        }
        // Registrations, and that clang-linker-wrapper does not align the bundle, are all that is told.
        let odd: Vec<_> = seen
            .log
            .lines()
            .filter(|line| !line.starts_with("bundle ") || line.contains(" not "))
            .collect();
        expect(
            odd.is_empty() || odd == ["bundle 0 not aligned"] && file.is_new,
            format!("{odd:?}"),
        );
        expect(
            seen.log.matches(": magic FPIH, version 1, unused 0\n").count() == file.containers,
            seen.log.clone(),
        );
        expect(seen.log.matches(": unregistered\n").count() == file.containers, seen.log.clone());
        expect(seen.log.matches("bundle 0: kernel0 launched\n").count() == 2, seen.log.clone());
        expect(seen.log.matches(": function kernel").count() >= file.containers, seen.log.clone());
        complaints.extend(RIG.unedited(file, file.name.ends_with("referred")));
        complaints
    }));
}

/// Tools that ruin unedited files do not count for edited ones; these are all such tools.
#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn tools_that_ruin_unedited_files_are_known() {
    settle(&RIG.unknown_ruins());
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn broken_device_code_is_seen() {
    // The first bundle starts with the section; images are pages further on.
    let image = |file: &Breaker| file.section(".hip_fatbin") + 0x1_0010;
    RIG.is_rejected("so-bfd", Depth::Itself, "amdgcnspirv: ", |file| {
        let at = image(&file);
        file.flip(at)
    });
    RIG.is_rejected("so-lld-compressed", Depth::Itself, "container 0: ", |file| {
        let at = file.section(".hip_fatbin") + 100;
        file.flip(at)
    });
    RIG.is_rejected("so-mold", Depth::Itself, "container 0: is plain: ", |file| {
        let at = file.find(file.section(".hip_fatbin"), b"--gfx1100");
        file.put(at, b"--gfx1101")
    });
}

#[test]
fn broken_pointers_are_seen() {
    RIG.is_rejected("so-bfd", Depth::Itself, "no magic", |file| {
        let at = file.relocation_of_wrapper(1);
        file.add(at, 0x1000)
    });
    RIG.is_rejected("so-lld", Depth::Itself, "container 1: hipv4", |file| {
        // To the next bundle.
        let at = file.relocation_of_wrapper(1);
        let next = file.relocation_of_wrapper(2);
        let bytes = file.bytes()[next..next + 8].to_vec();
        file.put(at, &bytes)
    });
    RIG.is_rejected("exe-lld", Depth::Itself, "bundle 0 not aligned", |file| {
        let at = file.section(".hipFatBinSegment") + 8;
        file.add(at, 8)
    });
    RIG.is_rejected("so-bfd", Depth::Itself, "magic ", |file| {
        let at = file.section(".hipFatBinSegment");
        file.flip(at)
    });
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn broken_host_code_is_seen() {
    RIG.is_rejected("so-gold", Depth::Itself, "host code answers", |file| {
        let at = file.find(0, b"a circle has none");
        file.flip(at)
    });
    RIG.is_rejected("pie-bfd", Depth::Itself, "registers", |file| {
        let at = file.find(0, b"kernel1\0alike1\0");
        file.flip(at)
    });
    RIG.is_rejected("exe-bfd", Depth::Itself, "does not run", |file| {
        let at = file.section(".text");
        file.put(at, &[0xcc; 16])
    });
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn broken_layouts_are_seen() {
    let rejected = |complaint: &str, break_it: fn(Breaker) -> Breaker| {
        RIG.layout_is_rejected("so-bfd", complaint, break_it);
    };
    const LOAD: u32 = 1;
    rejected("the ELF header differs", |file| file.flip(16));
    rejected("the program headers lie elsewhere", Breaker::move_program_headers);
    rejected("program headers run over .note.gnu.build-id", |file| file.add(56, 1));
    rejected("offset 0x", |file| {
        let at = file.program_header(LOAD, ".text");
        file.add(at + 8, 0x10)
    });
    rejected("starts before the one before ends", |file| {
        let at = file.program_header(LOAD, ".hip_fatbin");
        file.add(at + 32, 0x1_0000).add(at + 40, 0x1_0000)
    });
    rejected("segments overlap in the file", |file| {
        let at = file.program_header(LOAD, ".hip_fatbin");
        file.add(at + 32, 0x1_0000).add(at + 40, 0x1_0000)
    });
    rejected("has no sensible size", |file| {
        let at = file.program_header(LOAD, ".hip_fatbin");
        file.add(at + 32, 1)
    });
    rejected("ends beyond the file", |file| {
        let at = file.program_header(LOAD, ".data");
        file.add(at + 32, 0x1000_0000)
    });
    rejected("segments that are not loaded differ", |file| {
        let at = file.program_header(0x6474_e552, ".dynamic");
        file.add(at + 40, 0x1000)
    });
    rejected(".text: other access", |file| {
        let at = file.program_header(LOAD, ".text");
        file.flip(at + 4)
    });
    rejected("segment of type 0x4 lies in none that is loaded", |file| {
        let at = file.program_header(4, ".note.gnu.build-id");
        file.add(at + 8, 0x100)
    });
    rejected(".text: other contents", |file| {
        let at = file.section(".text");
        file.flip(at)
    });
    rejected(".data: other contents", |file| {
        let at = file.section(".data");
        file.flip(at)
    });
    rejected(".comment: other contents", |file| {
        let at = file.section(".comment");
        file.flip(at)
    });
    rejected(".eh_frame: lies in no segment that is loaded", |file| {
        let at = file.section_header(".eh_frame");
        file.add(at + 24, 0x10)
    });
    rejected(".eh_frame: at 0x", |file| {
        let at = file.section_header(".eh_frame");
        file.add(at + 16, 0x10)
    });
    rejected(".rodata: another section header", |file| {
        let at = file.section_header(".rodata");
        file.add(at + 32, 1)
    });
    rejected(".rodata: not aligned", |file| {
        let at = file.section_header(".rodata");
        file.add(at + 16, 1)
    });
    rejected(".symtab: linked to another section", |file| {
        let at = file.section_header(".symtab");
        file.flip(at + 40)
    });
    rejected(".dynsym: a symbol in", |file| {
        let at = file.section(".dynsym");
        file.flip(at + 4 * 24 + 8)
    });
    rejected(".dynamic: tag 0x", |file| {
        let at = file.section(".dynamic");
        file.flip(at + 8)
    });
    rejected(".rela.dyn: the relocation of", |file| {
        let at = file.section(".rela.dyn");
        file.flip(at + 16)
    });
    rejected(".hipFatBinSegment: a wrapper differs in more than its pointer", |file| {
        let at = file.section(".hipFatBinSegment");
        file.flip(at + 16)
    });
    // A section that can be moved, and has been without that the dynamic section says so.
    rejected(".dynamic: tag 0x5 is", |file| {
        let at = file.section_header(".dynstr");
        let device = Breaker::new(RIG.file("so-bfd")).section(".hip_fatbin") as u64;
        let old = file.section(".dynstr") as u64;
        file.add(at + 16, device.wrapping_sub(old)).add(at + 24, device.wrapping_sub(old))
    });
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn a_file_that_stays_as_large_is_seen() {
    let file = RIG.file("so-bfd");
    let mut seen = RIG.before(file).seen.clone();
    assert!(RIG.check_size(file, &seen, 1_000_000, 1_000_000).is_empty());
    seen.containers[0].truncate(100_000);
    assert!(!RIG.check_size(file, &seen, 1_000_000, 1_000_000).is_empty());
    assert!(!RIG.check_size(file, &seen, 1_000_000, 800_000).is_empty());
    assert!(RIG.check_size(file, &seen, 1_000_000, 700_000).is_empty());
}

#[test]
fn new_messages_of_tools_are_seen() {
    let section_size = |name: &'static str| {
        move |file: Breaker| {
            let at = file.section_header(name);
            file.add(at + 32, 0x1000_0000)
        }
    };
    let rejected = |name: &str, tool: &str, break_it: &dyn Fn(Breaker) -> Breaker| {
        let file = RIG.file(name);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(name);
        fs::write(&path, break_it(Breaker::new(file)).finish()).unwrap();
        let complaints =
            messages::compare(RIG.messages_before(file), &messages::messages(file, &path));
        let is_seen = complaints.iter().any(|complaint| complaint.starts_with(tool));
        assert!(is_seen, "{name}: {tool} is not among the complaints:\n{complaints:#?}");
    };
    rejected("so-bfd", "readelf: ", &section_size(".comment"));
    rejected("so-lld", "llvm-readelf: ", &section_size(".symtab"));
    rejected("so-bfd", "objdump: ", &section_size(".dynsym"));
    rejected("so-mold", "eu-elflint: ", &|file| {
        let at = file.section(".symtab") + 5 * 24;
        file.add(at + 8, 0x1000_0000)
    });
    rejected("so-bfd", "gdb does not say: ", &|file| {
        let at = file.find(file.section(".strtab"), b"__device_stub__kernel0\0");
        file.flip(at + 4)
    });
    rejected("so-bfd", "ldd: ", &|file| {
        let at = file.find(file.section(".dynstr"), b"libamdhip64.so\0");
        file.flip(at + 4)
    });
}

#[test]
fn damage_by_later_tools_is_seen() {
    // It loads, and is right except the place of its headers; GNU strip and objcopy put them back over what is there.
    let file = RIG.file("so-bfd");
    let moved = Breaker::new(file).move_program_headers().finish();
    let complaints = RIG.against(file, &moved, Depth::Survival);
    for tool in ["strip", "strip -g", "objcopy", "objcopy --add-section"] {
        assert!(complaints.contains(&format!("after {tool}: ")), "{tool}:\n{complaints}");
    }
    assert!(!complaints.contains("does not run: 1"), "{complaints}");
}

/// The bundles of a file with these targets only.
pub(crate) fn only(file: &Linked, targets: &[&str]) -> Vec<Bundle> {
    let keep = ids(file, targets);
    let bundles = RIG.before(file).containers.iter();
    bundles.map(|bundle| bundle.filtered(|id| keep.iter().any(|kept| kept == id))).collect()
}

#[test]
fn files_thinned_to_one_target_are_right() {
    let files = RIG.chosen();
    // The gate gives every third file to the other tools.
    let step = if samples::faulty::is_thorough() { 1 } else { 3 };
    let deep: Vec<&str> = files.iter().step_by(step).map(|file| file.name).collect();
    settle(&each(&files, |file| {
        let words = ["thin", "--keep", "gfx1100", "--exact"];
        let depth = if deep.contains(&file.name) { Depth::Survival } else { Depth::Messages };
        RIG.edit_and_check(file, &words, &only(file, &["gfx1100"]), depth, |edited| {
            let mut complaints = does_nothing(file, edited, &words)?;
            complaints.extend(is_smaller(file, edited));
            Ok(complaints)
        })
    }));
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn files_thinned_to_several_targets_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        // Everything that could be loaded, generic code and SPIR-V included.
        let kept = ["amdgcnspirv", "gfx90a:xnack+", "gfx90a:xnack-"];
        let mut complaints = RIG.edit_and_check(
            file,
            &["thin", "--keep", "gfx90a"],
            &only(file, &kept),
            Depth::Messages,
            |_| Ok(vec![]),
        );
        let kept: Vec<_> =
            file.targets.iter().copied().filter(|target| *target != "gfx906").collect();
        let most = ["thin", "--drop", "gfx906"];
        complaints.extend(RIG.edit_and_check(
            file,
            &most,
            &only(file, &kept),
            Depth::Survival,
            |edited| {
                // It can be compressed.
                if !file.compressed {
                    edit(file, &edited.path(), &["compress"])?;
                }
                // Numbers that could be addresses keep other bundles where they are, when those lie elsewhere.
                let complaints = narrows(file, edited, &["thin", "--keep", "gfx1100", "--exact"])?;
                let may_differ = file.compressed || file.name == "exe-mold-many";
                Ok(if may_differ { vec![] } else { complaints })
            },
        ));
        complaints
    }));
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn files_thinned_to_each_target_have_what_they_had_for_it() {
    settle(&each(&RIG.chosen(), |file| {
        let mut complaints = Complaints::new();
        for target in file.targets {
            let words = ["thin", "--keep", target, "--exact"];
            let found = edit(file, &file.path, &words).and_then(|edited| {
                let seen = observe::observe(file, &edited.path())?;
                let bundles: Result<Vec<_>, _> =
                    seen.containers.iter().map(|dump| hip::decode(dump)).collect();
                // The same by our commands; the one extracts what the other lists.
                let extracted: Vec<_> = common::ls(&edited.path())
                    .iter()
                    .filter(|row| row.kind.as_deref() != Some("host"))
                    .map(|row| {
                        (row.id.clone().unwrap(), common::extract(&edited.path(), row.index))
                    })
                    .collect();
                Ok((bundles?, extracted))
            });
            let expected = only(file, &[target]);
            complaints.extend(match found {
                Err(error) => vec![format!("{}: {}: {error}", file.name, words.join(" "))],
                Ok((bundles, extracted)) => {
                    let device = |bundle: &Bundle| bundle.filtered(|_| true).entries.split_off(1);
                    let is_same = bundles == expected
                        && extracted == expected.iter().flat_map(device).collect::<Vec<_>>();
                    if is_same {
                        vec![]
                    } else {
                        vec![format!("{}: {target}: other images", file.name)]
                    }
                }
            });
        }
        complaints
    }));
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn compressed_files_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        let words = ["compress"];
        // Version 2, which every runtime reads that reads version 3; what the compiler has compressed stays.
        let version = if file.compressed { 3 } else { 2 };
        let expected: Vec<_> = RIG
            .before(file)
            .containers
            .iter()
            .map(|bundle| bundle.compressed_as(Some(version)))
            .collect();
        RIG.edit_and_check(file, &words, &expected, Depth::Survival, |edited| {
            let mut complaints = does_nothing(file, edited, &words)?;
            if file.compressed {
                return Ok(complaints);
            }
            complaints.extend(comes_back(file, edited)?);
            // The other way round.
            let narrower = ["thin", "--keep", "gfx1100", "--exact"];
            let thinned = edit(file, &edited.path(), &narrower)?;
            let expected: Vec<_> = only(file, &["gfx1100"])
                .iter()
                .map(|bundle| bundle.compressed_as(Some(version)))
                .collect();
            complaints.extend(of(
                "thinned then",
                RIG.check(file, &thinned.path(), &expected, Depth::Itself),
            ));
            Ok(complaints)
        })
    }));
}

#[test]
fn files_compressed_by_the_compiler_grow_when_decompressed() {
    let files: Vec<_> = RIG.chosen().into_iter().filter(|file| file.compressed).collect();
    settle(&each(&files, |file| {
        let plain: Vec<_> =
            RIG.before(file).containers.iter().map(|bundle| bundle.compressed_as(None)).collect();
        let mut complaints = Complaints::new();
        match edit(file, &file.path, &["decompress"]) {
            Err(error) if error.contains("--grow") => {}
            other => complaints.push(format!(
                "{}: without --grow: {:?}",
                file.name,
                other.map(|edited| edited.said)
            )),
        }
        let words = ["decompress", "--grow"];
        complaints.extend(RIG.edit_and_check(file, &words, &plain, Depth::Survival, |edited| {
            does_nothing(file, edited, &words)
        }));
        complaints
    }));
}

/// The image of a file for a target, in its bundle of this number.
fn image(file: &Linked, bundle: usize, target: &str) -> Vec<u8> {
    let id = &ids(file, &[target])[0];
    let entries = &RIG.before(file).containers[bundle].entries;
    entries.iter().find(|(found, _)| found == id).unwrap().1.clone()
}

/// Returns the number of an image in `offload ls`, as `ID=IMAGE` needs it.
fn number(path: &Path, id: &str, bundle: usize) -> String {
    let rows = common::ls(path);
    let row = rows.iter().filter(|row| row.id.as_deref() == Some(id)).nth(bundle).unwrap();
    row.index.to_string()
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn files_with_replaced_images_are_right() {
    // For the same GPU, from other files.
    let small = image(RIG.file("so-bfd-many"), 7, "gfx1100");
    let large = image(RIG.file("so-bfd-rdc"), 0, "gfx1100");
    let place = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (small_path, large_path) = (put("small", &small), put("large", &large));
    settle(&each(&RIG.chosen(), |file| {
        let last = file.containers - 1;
        let id = &ids(file, &["gfx1100"])[0];
        let replaced = |bundles: &[Bundle], image: &[u8]| {
            let mut bundles = bundles.to_vec();
            let entry = bundles[last].entries.iter_mut().find(|(found, _)| found == id).unwrap();
            entry.1 = image.to_vec();
            bundles
        };
        let all = &RIG.before(file).containers;
        let number_before = number(&file.path, id, last);
        let words = ["replace", &format!("{number_before}={small_path}")];
        let nothing = |_: &Edited| Ok(vec![]);
        let depth = if file.name.ends_with("many") { Depth::Itself } else { Depth::Messages };
        let mut complaints =
            RIG.edit_and_check(file, &words, &replaced(all, &small), depth, nothing);
        let words = ["replace", &format!("{number_before}={large_path}"), "--grow"];
        if file.shape == Shape::Static && !file.compressed {
            // There is no room for a program header.
            let refused = edit(file, &file.path, &words).err();
            let is_told =
                |said: &String| said.contains("program header") || may_be_pinned(file, said);
            if !refused.as_ref().is_some_and(is_told) {
                complaints.push(format!("{}: {words:?}: {refused:?}", file.name));
            }
        } else if file.name.ends_with("referred") {
            let refused = edit(file, &file.path, &words).err();
            if !refused.as_ref().is_some_and(|said| may_be_pinned(file, said)) {
                complaints.push(format!("{}: {words:?}: {refused:?}", file.name));
            }
        } else {
            complaints.extend(RIG.edit_and_check(
                file,
                &words,
                &replaced(all, &large),
                Depth::Survival,
                nothing,
            ));
        }
        complaints.extend(replace_by_one_as_large(file, replaced));
        // Where much has gone, there is room.
        if file.targets.len() > 4 {
            let thin = ["thin", "--keep", "gfx1100,gfx906", "--exact"];
            let kept = only(file, &["gfx1100", "gfx906"]);
            let found = edit(file, &file.path, &thin).and_then(|thinned| {
                let number = number(&thinned.path(), id, last);
                let words = ["replace", &format!("{number}={large_path}")];
                let edited = edit(file, &thinned.path(), &words)?;
                Ok(RIG.check(file, &edited.path(), &replaced(&kept, &large), Depth::Messages))
            });
            complaints.extend(of(
                &format!("{}: replaced in the thinned one", file.name),
                found.unwrap_or_else(|error| vec![error]),
            ));
        }
        complaints
    }));
}

/// Puts an image as large in the place of one, in a file that is not compressed: no other byte changes.
fn replace_by_one_as_large(
    file: &Linked,
    replaced: impl Fn(&[Bundle], &[u8]) -> Vec<Bundle>,
) -> Complaints {
    // Bundles that the linker wrapper of the new driver packs closely get a new layout.
    if file.compressed || file.is_new {
        return Complaints::new();
    }
    let last = file.containers - 1;
    let old = image(file, last, "gfx1100");
    let mut new = old.clone();
    let middle = new.len() / 2;
    new[middle..middle + 100].reverse();
    new[middle] ^= 1;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("image");
    fs::write(&path, &new).unwrap();
    let number = number(&file.path, &ids(file, &["gfx1100"])[0], last);
    let words = ["replace", &format!("{number}={}", path.display())];
    let expected = replaced(&RIG.before(file).containers, &new);
    RIG.edit_and_check(file, &words, &expected, Depth::Itself, |edited| {
        let bytes = fs::read(&file.path).unwrap();
        let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
        let mut patched = bytes;
        patched[at..at + new.len()].copy_from_slice(&new);
        let is_same = edited.bytes() == patched;
        Ok(if is_same { vec![] } else { vec!["more than the image is different".into()] })
    })
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn files_with_removed_and_added_images_are_right() {
    settle(&each(&RIG.chosen(), |file| {
        let target = *file.targets.last().unwrap();
        let id = &ids(file, &[target])[0];
        let kept = &file.targets[..file.targets.len() - 1];
        let image = image(file, 0, target);
        RIG.edit_and_check(
            file,
            &["remove", "--id", id],
            &only(file, kept),
            Depth::Itself,
            |edited| {
                let place = tempfile::tempdir().unwrap();
                let path = place.path().join("image");
                fs::write(&path, &image).unwrap();
                let mut expected = only(file, kept);
                expected[0].entries.push((id.clone(), image.clone()));
                let form = if file.compressed { "ccob:0" } else { "bundle:0" };
                let mut words = vec![
                    "add".to_owned(),
                    format!("{id}={}", path.display()),
                    "--in".into(),
                    form.into(),
                ];
                if file.is_new {
                    // With its images at pages it is larger than it was.
                    words.push("--grow".into());
                }
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                if file.name.ends_with("referred") {
                    // Bundles of two sections have the same name now.
                    let refused = edit(file, &edited.path(), &words).err();
                    let is_told = refused.as_ref().is_some_and(|said| said.contains("2 places"));
                    return Ok(if is_told {
                        vec![]
                    } else {
                        vec![format!("added to one of two: {refused:?}")]
                    });
                }
                let added = match edit(file, &edited.path(), &words) {
                    Err(said) if may_be_pinned(file, &said) => return Ok(vec![]),
                    added => added?,
                };
                let mut complaints =
                    of("added again", RIG.check(file, &added.path(), &expected, Depth::Messages));
                // The entry that was the last one is so again.
                let was_last = RIG.before(file).containers[0].entries.last().unwrap().0 == *id;
                let is_whole =
                    file.containers == 1 && was_last && !file.compressed && !file.has_odd_layout();
                if is_whole && added.bytes() != fs::read(&file.path).unwrap() {
                    complaints.push("with the image added again it is not what it was".into());
                }
                Ok(complaints)
            },
        )
    }));
}

/// Returns whether a bundle cannot move because something may refer to it: a real reference, or a number in the code of
/// a program at fixed addresses that happens to be an address.
pub(crate) fn may_be_pinned(file: &Linked, said: &str) -> bool {
    let files = ["exe-mold-many", "static-mold", "pie-lld-rdc-new"];
    let may = file.name.ends_with("referred") || files.contains(&file.name);
    may && is_pinned(said)
}

/// Debuggers find functions and lines of an edited file in the debug file that was split off the unedited one.
#[test]
fn debug_files_fit_edited_files() {
    for name in ["so-bfd-debug", "pie-lld-debug", "so-mold-debug"] {
        let file = RIG.file(name);
        let place = tempfile::tempdir().unwrap();
        let (unedited, debug) = (place.path().join(name), place.path().join("rig.debug"));
        fs::copy(&file.path, &unedited).unwrap();
        must(&tool("eu-strip"), [unedited.as_os_str(), "-f".as_ref(), debug.as_os_str()]);
        let ask = |path: &Path| {
            // gdb takes the debug file that lies beside it.
            let beside = path.with_file_name("rig.debug");
            if beside != debug {
                fs::copy(&debug, beside).unwrap();
            }
            let commands =
                ["-nx", "-batch", "-ex", "info line answers", "-ex", "info scope answers"];
            let commands = commands
                .iter()
                .map(AsRef::<OsStr>::as_ref)
                .chain(["-ex", "info functions"].map(AsRef::as_ref));
            let output = run(&tool("gdb"), commands.chain([path.as_os_str()]));
            said(&output).replace(path.parent().unwrap().to_str().unwrap(), "PLACE")
        };
        let before = ask(&unedited);
        assert!(before.contains("host.cc\" starts at address"), "{name}: {before}");
        for words in [&["thin", "--keep", "gfx1100", "--exact"][..], &["compress"]] {
            let edited = edit(file, &unedited, words).unwrap();
            assert_eq!(before, ask(&edited.path()), "{name}: {words:?}");
        }
    }
}

/// Files that cannot be edited are refused with a reason, and nothing is written.
#[test]
fn files_that_cannot_be_edited_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut complaints = Complaints::new();
    let mut refuse = |bytes: Vec<u8>, words: &[&str], reason: &str| {
        complaints.extend(is_refused(&bytes, words, reason));
    };
    let thin = ["thin", "--keep", "gfx1100", "--exact"];
    let through = |name: &str, tool: &Path, words: &[&str]| {
        let copy = place.path().join("copy");
        fs::copy(&RIG.file(name).path, &copy).unwrap();
        must(tool, words.iter().map(AsRef::<OsStr>::as_ref).chain([copy.as_os_str()]));
        fs::read(copy).unwrap()
    };
    let so = || Breaker::new(RIG.file("so-bfd"));
    refuse(
        fs::read(RIG.file("so-bfd").place.join("runtime/libamdhip64.so")).unwrap(),
        &thin,
        "no device code found",
    );
    refuse(so().finish(), &["thin", "--keep", "gfx1030", "--exact"], "gfx1030");
    refuse(so().finish(), &["thin", "--drop", &RIG.file("so-bfd").targets.join(",")], "no image");
    // As in files for debuggers only.
    refuse(
        through("so-bfd", &tool("objcopy"), &["--only-keep-debug"]),
        &thin,
        "device code was moved out",
    );
    refuse(
        through("so-bfd", &llvm("llvm-strip"), &["--strip-sections"]),
        &thin,
        "only a scan finds",
    );
    let broken = so();
    let at = broken.relocation_of_wrapper(1);
    refuse(broken.add(at, 0x1000).finish(), &thin, "where no bundle starts");
    let broken = so();
    let at = broken.section(".hipFatBinSegment");
    refuse(broken.put(at, b"HIPK").finish(), &thin, "HIPK");
    let broken = so();
    let at = broken.section(".hipFatBinSegment");
    refuse(broken.put(at, b"KPIH").finish(), &thin, "expected 0x48495046");
    let broken = so();
    let at = broken.program_header(1, ".text");
    refuse(broken.add(at + 8, 0x10).finish(), &thin, "inconsistent program headers");
    let broken = so();
    let at = broken.section(".hip_fatbin") + 24;
    refuse(broken.put(at, &[0xff; 8]).finish(), &thin, "");
    let broken = Breaker::new(RIG.file("so-bfd-compressed"));
    let at = broken.section(".hip_fatbin") + 500;
    refuse(broken.flip(at).finish(), &thin, "");
    let mut cut = so().finish();
    cut.truncate(1_000_000);
    refuse(cut, &thin, "");
    settle(&complaints);
}
