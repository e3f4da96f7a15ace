//! Objects and archives that clang 22 compiled from HIP sources, edited, and what linkers and other tools make of them.
//!
//! Needs LLVM 22 with clang and lld in `/usr/lib/llvm-22`, or where `LLVM` points, and GNU binutils, on x86-64 Linux;
//! fails without them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use object_edit::{ErrorKind, Renames, rename};

use crate::common::{self, data, extract, llvm, ls, new_command, stderr, tool};

const ARCHS: [&str; 2] = ["--offload-arch=gfx906", "--offload-arch=gfx1100"];
const UNITS: [&str; 2] = ["scale", "shift"];

/// Writes what is registered into files named after their order. A compressed bundle tells its size in its header, a
/// plain one by its last entry.
const RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct wrapper { uint32_t magic, version; const char *bundle; void *unused; };
static int count;
void **__hipRegisterFatBinary(const struct wrapper *w) {
  const char *p = w->bundle;
  uint64_t size = 0, n;
  if (w->magic != 0x48495046 || w->version != 1) return 0;
  if (memcmp(p, "CCOB", 4) == 0) {
    memcpy(&size, p + 8, p[4] == 3 ? 8 : 4);
  } else if (memcmp(p, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
    memcpy(&n, p + 24, 8);
    const char *entry = p + 32;
    while (n-- > 0) {
      uint64_t words[3];
      memcpy(words, entry, 24);
      if (words[0] + words[1] > size) size = words[0] + words[1];
      entry += 24 + words[2];
    }
  }
  char name[32];
  sprintf(name, "registered.%d", count++);
  FILE *f = fopen(name, "wb");
  fwrite(p, 1, size, f);
  fclose(f);
  return (void **)w;
}
void __hipUnregisterFatBinary(void **p) {}
int __hipRegisterFunction() { return 0; }
int __hipPopCallConfiguration() { return 0; }
int __hipPushCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; }
"#;

struct Place(tempfile::TempDir);

impl Place {
    /// A directory with the sources, the two units compiled for two GPUs, and the runtime with a `main`.
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for name in ["scale.hip", "shift.hip", "hip-minimal.h"] {
            fs::copy(data("src").join(name), place.path(name)).unwrap();
        }
        fs::write(place.path("runtime.c"), RUNTIME).unwrap();
        fs::write(place.path("main.c"), "int main(void) { return 0; }\n").unwrap();
        place.llvm("clang", &["-w", "-c", "runtime.c", "main.c"]);
        for unit in UNITS {
            place.hip(
                unit,
                "x86_64-pc-linux-gnu",
                &["--no-offload-new-driver"],
                &format!("{unit}.o"),
            );
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, tool: &Path, args: &[&str]) -> Output {
        let output = new_command(tool).args(args).current_dir(self.0.path()).output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
        assert!(output.status.success(), "{} {args:?}: {}", tool.display(), stderr(&output));
        output
    }

    /// Returns the output of the tool.
    fn llvm(&self, tool: &str, args: &[&str]) -> String {
        common::stdout(&self.run(&llvm(tool), args))
    }

    fn gnu(&self, tool: &str, args: &[&str]) -> String {
        common::stdout(&self.run(Path::new(tool), args))
    }

    fn hip(&self, unit: &str, target: &str, flags: &[&str], out: &str) {
        let (target, source) = (format!("--target={target}"), format!("{unit}.hip"));
        let cuid = format!("-cuid={unit}");
        let args = ["-x", "hip", "-nogpuinc", "-nogpulib", "-Os", &target, &cuid, "-w"];
        self.llvm("clang", &[&args[..], &ARCHS, flags, &["-c", &source, "-o", out]].concat());
    }

    /// Runs `offload`, which must work.
    fn offload(&self, args: &[&str]) {
        let output =
            new_command(tool("offload")).args(args).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    }

    /// Runs a command that edits. Images are replaced in each bundle of the file.
    fn edit(&self, args: &[&str], input: &str, output: &str) {
        let (command, rest) = args.split_first().unwrap();
        if *command != "replace" {
            return self.offload(&[&[*command, input][..], rest, &["-o", output]].concat());
        }
        fs::copy(self.path(input), self.path(output)).unwrap();
        let paths = ls(&self.path(input)).into_iter().map(|row| row.path.last().unwrap().clone());
        for bundle in paths.collect::<BTreeSet<_>>() {
            self.offload(&[&[command, output, "--in-place", "--in", &bundle], rest].concat());
        }
    }

    /// IDs and contents of the device images in a file.
    fn images(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let path = self.path(name);
        let rows = ls(&path).into_iter().filter(|row| row.kind.as_deref() != Some("host"));
        let id = |row: &common::Row| match &row.id {
            Some(id) => id.clone(),
            None => row.target.clone().unwrap_or_default(),
        };
        rows.map(|row| (id(&row), extract(&path, row.index))).collect()
    }

    /// Links a program, runs it, and returns the images that it registers, bundle by bundle.
    fn registered(&self, linker: &str, inputs: &[&str]) -> Vec<Vec<(String, Vec<u8>)>> {
        for number in 0.. {
            if fs::remove_file(self.path(&format!("registered.{number}"))).is_err() {
                break;
            }
        }
        let args = ["main.o", "-o", "program", linker, "-Wl,--whole-archive"];
        let rest = ["-Wl,--no-whole-archive", "runtime.o"];
        self.llvm("clang", &[&args[..], inputs, &rest].concat());
        self.run(&self.path("program"), &[]);
        (0..)
            .map_while(|number| {
                let name = format!("registered.{number}");
                self.path(&name).exists().then(|| self.images(&name))
            })
            .collect()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Returns the complaints of `readelf` and `llvm-readelf` about a file, without its name.
    fn complaints(&self, name: &str) -> BTreeSet<String> {
        let mut complaints = BTreeSet::new();
        let llvm_readelf = llvm("llvm-readelf");
        for tool in [Path::new("readelf"), &llvm_readelf] {
            let output = new_command(tool).arg("-aW").arg(self.path(name)).output().unwrap();
            let text = stderr(&output).replace(self.path(name).to_str().unwrap(), "FILE");
            complaints.extend(text.lines().map(str::to_owned));
        }
        complaints
    }
}

/// Two units, linked to one object by either linker or not at all.
fn objects(place: &Place) -> [(&'static str, &'static [&'static str]); 3] {
    place.gnu("ld.bfd", &["-r", "scale.o", "shift.o", "-o", "bfd.o"]);
    place.llvm("ld.lld", &["-r", "scale.o", "shift.o", "-o", "lld.o"]);
    [("units", &["scale.o", "shift.o"]), ("bfd", &["bfd.o"]), ("lld", &["lld.o"])]
}

/// The edits, each with what it says of an object and what it leaves.
const EDITS: [(&str, &[&str], &[&str]); 5] = [
    ("thin", &["thin", "--keep", "gfx906"], &["gfx906"]),
    ("drop", &["thin", "--drop", "gfx906"], &["gfx1100"]),
    ("compress", &["compress"], &["gfx906", "gfx1100"]),
    ("larger", &["replace", "--any-image", "gfx906=large"], &["gfx906", "gfx1100"]),
    ("smaller", &["replace", "--any-image", "gfx906=small"], &["gfx906", "gfx1100"]),
];

#[test]
fn programs_find_the_images_that_are_left() {
    let place = Place::new();
    let (small, large) = ([7; 10], vec![9; 30_000]);
    fs::write(place.path("small"), small).unwrap();
    fs::write(place.path("large"), &large).unwrap();
    for (form, inputs) in objects(&place) {
        let before = place.registered("-fuse-ld=bfd", inputs);
        assert_eq!(before.len(), 2, "{form}");
        for (edit, args, left) in EDITS {
            let outputs: Vec<_> = inputs.iter().map(|input| format!("{edit}-{input}")).collect();
            for (input, output) in inputs.iter().zip(&outputs) {
                place.edit(args, input, output);
                assert_eq!(place.complaints(output), place.complaints(input), "{edit} {output}");
            }
            let is_left = |id: &str| left.iter().any(|target| id.ends_with(target));
            let mut expected = before.clone();
            for bundle in &mut expected {
                bundle.retain(|(id, _)| is_left(id));
                for (id, image) in bundle.iter_mut().filter(|(id, _)| id.ends_with("gfx906")) {
                    match edit {
                        "larger" => image.clone_from(&large),
                        "smaller" => *image = small.to_vec(),
                        _ => assert!(id.starts_with("hipv4-")),
                    }
                }
            }
            let outputs: Vec<_> = outputs.iter().map(String::as_str).collect();
            let archive = format!("lib{edit}-{form}.a");
            place.llvm("llvm-ar", &[&["rcs", &archive][..], &outputs].concat());
            for linker in ["-fuse-ld=bfd", "-fuse-ld=lld"] {
                assert!(place.registered(linker, &outputs) == expected, "{form} {edit} {linker}");
                assert!(
                    place.registered(linker, &[&archive]) == expected,
                    "{form} {edit} {linker}"
                );
            }
            if edit == "compress" {
                for (input, output) in inputs.iter().zip(&outputs) {
                    place.offload(&["decompress", output, "-o", "back.o"]);
                    assert!(place.bytes("back.o") == place.bytes(input), "{form} {input}");
                }
            }
        }
    }
}

/// A relocatable link of edited objects makes the same file as an edit of the linked one.
#[test]
fn edits_and_relocatable_links_can_change_places() {
    let place = Place::new();
    objects(&place);
    for (edit, args, _) in &EDITS[..3] {
        for unit in UNITS {
            place.edit(args, &format!("{unit}.o"), &format!("{edit}-{unit}.o"));
        }
        let [scale, shift] = UNITS.map(|unit| format!("{edit}-{unit}.o"));
        place.gnu("ld.bfd", &["-r", &scale, &shift, "-o", "edited-bfd.o"]);
        place.llvm("ld.lld", &["-r", &scale, &shift, "-o", "edited-lld.o"]);
        for linker in ["bfd", "lld"] {
            place.edit(args, &format!("{linker}.o"), "linked.o");
            let edited = place.bytes(&format!("edited-{linker}.o"));
            assert!(place.bytes("linked.o") == edited, "{edit} {linker}");
        }
    }
}

#[test]
fn every_kind_of_archive_is_as_other_tools_write_it() {
    let place = Place::new();
    fs::write(place.path("function.c"), "int function(void) { return 1; }\nint data = 3;\n")
        .unwrap();
    place.llvm("clang", &["-c", "function.c"]);
    let long = "a_name_that_is_too_long_for_its_field.o";
    fs::copy(place.path("shift.o"), place.path(long)).unwrap();
    fs::write(place.path("odd"), "odd").unwrap();
    let members = ["odd", "scale.o", "shift.o", long, "function.o"];
    for (format, symbols) in [
        ("gnu", "rcs"),
        ("bsd", "rcs"),
        ("darwin", "rcs"),
        ("coff", "rcs"),
        ("gnu", "rcS"),
        ("sym64", "rcs"),
        ("binutils", "rcs"),
        ("binutils", "rcsU"),
    ] {
        let archive = format!("{format}-{symbols}.a");
        let make = |tool: &Path, args: &[&str], env: Option<&str>| {
            let mut command = new_command(tool);
            command.current_dir(place.0.path()).args(args);
            if let Some(threshold) = env {
                // The offset from which on LLVM writes an index of 64 bits, as a power of two.
                command.env("SYM64_THRESHOLD", threshold);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        };
        let ar = |args: &[&str]| match format {
            "binutils" => make(Path::new("ar"), args, None),
            "sym64" => {
                make(&llvm("llvm-ar"), &[&["--format=gnu"], args].concat(), Some("1"));
            }
            _ => {
                let format = format!("--format={format}");
                make(&llvm("llvm-ar"), &[&[&*format], args].concat(), None);
            }
        };
        ar(&[&[symbols, &archive][..], &members].concat());
        // The same name twice.
        ar(&[if symbols == "rcS" { "qcS" } else { "qcs" }, &archive, "scale.o"]);
        for (edit, args) in
            [("thin", &["thin", "--keep", "gfx906"][..]), ("compress", &["compress"])]
        {
            let out = format!("{edit}-{archive}");
            place.edit(args, &archive, &out);
            for listing in [&["t"][..], &["tv"]] {
                let names = |archive: &str| place.llvm("llvm-ar", &[listing, &[archive]].concat());
                let without_sizes = |text: String| -> Vec<String> {
                    let words =
                        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
                    words
                        .map(|words| [&words[..1], &words[words.len() - 1..]].concat().join(" "))
                        .collect()
                };
                assert_eq!(
                    without_sizes(names(&out)),
                    without_sizes(names(&archive)),
                    "{edit} {archive}"
                );
            }
            // Which symbol is in which member.
            let index = |archive: &str| {
                let text = place.llvm("llvm-nm", &["--print-armap", "--quiet", archive]);
                let map = text.split("\n\n").next().unwrap_or_default().replace(archive, "");
                map.lines().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(index(&out), index(&archive), "{edit} {archive}");
            let armap = |archive: &str| {
                let text = place.gnu("nm", &["-s", archive]);
                text.lines().take_while(|line| !line.ends_with(".o:")).map(str::to_owned).collect()
            };
            if !["bsd", "darwin"].contains(&format) {
                let (old, new): (Vec<_>, Vec<_>) = (armap(&archive), armap(&out));
                assert_eq!(new, old, "{edit} {archive}");
            }
            // The writer has nothing to add.
            if symbols == "rcs" {
                fs::copy(place.path(&out), place.path("again.a")).unwrap();
                match format {
                    "binutils" => make(Path::new("ranlib"), &["-D", "again.a"], None),
                    _ => ar(&["s", "again.a"]),
                }
                assert!(place.bytes("again.a") == place.bytes(&out), "{edit} {archive}");
            }
        }
        let (compressed, back) = (format!("compress-{archive}"), format!("back-{archive}"));
        place.offload(&["decompress", &compressed, "-o", &back]);
        assert!(place.bytes(&back) == place.bytes(&archive), "{archive}");
        let thin = format!("thin-{archive}");
        // Members are extracted as if each had been edited alone.
        place.offload(&["thin", "shift.o", "--keep", "gfx906", "-o", "alone.o"]);
        place.llvm("llvm-ar", &["x", &thin, long]);
        let extracted = place.bytes(long);
        let alone = place.bytes("alone.o");
        // With what fills it up to a multiple of 8.
        assert!(extracted.starts_with(&alone), "{archive}");
        assert!(extracted[alone.len()..].iter().all(|&byte| byte == b'\n'), "{archive}");
        fs::copy(place.path("shift.o"), place.path(long)).unwrap();
    }
}

#[test]
fn sections_of_bundles_go_as_objcopy_removes_them() {
    let place = Place::new();
    for (target, out) in [("x86_64-pc-linux-gnu", "rdc.o"), ("x86_64-pc-windows-msvc", "rdc.obj")] {
        for debug in ["-g0", "-g"] {
            place.hip("scale", target, &["--no-offload-new-driver", "-fgpu-rdc", debug], out);
            for (keep, gone) in [("gfx906", "gfx1100"), ("gfx1100", "gfx906")] {
                place.offload(&["thin", out, "--keep", keep, "-o", "thin"]);
                let section = format!("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--{gone}");
                let remove = format!("--remove-section={section}");
                place.llvm("llvm-objcopy", &[&remove, out, "theirs"]);
                assert!(place.bytes("thin") == place.bytes("theirs"), "{out} {debug} {keep}");
                let left = place.images("thin");
                assert!(left.iter().all(|(id, _)| id.ends_with(keep)) && left.len() == 1, "{out}");
            }
        }
    }
}

#[test]
fn names_change_as_objcopy_changes_them() {
    let place = Place::new();
    let names = Renames::new()
        .with_section("llvm_offload_entries", "llvm_offload_entries_of_a_crate")
        .with_section(".text", ".text.kernels")
        .with_symbol("__start_llvm_offload_entries", "__start_llvm_offload_entries_of_a_crate")
        .with_symbol("hipLaunchKernel", "launch");
    let all = names.clone().without_section(".llvm.offloading");
    let words = [
        "--remove-section=.llvm.offloading",
        "--rename-section=llvm_offload_entries=llvm_offload_entries_of_a_crate",
        "--rename-section=.text=.text.kernels",
        "--redefine-sym=__start_llvm_offload_entries=__start_llvm_offload_entries_of_a_crate",
        "--redefine-sym=hipLaunchKernel=launch",
    ];
    let is_same = |file: &str, renames: &Renames, words: &[&str], what: &str| {
        place.llvm("llvm-objcopy", &[words, &[file, "theirs"]].concat());
        let object = place.bytes(file);
        let ours = rename(&object, renames).unwrap();
        assert!(*ours == *place.bytes("theirs"), "{what}: {file}");
        assert!(matches!(rename(&ours, renames), Ok(Cow::Borrowed(_))), "{what}: {file}");
    };
    for target in ["x86_64-pc-linux-gnu", "aarch64-linux-gnu", "i686-pc-linux-gnu"] {
        for flags in ["-g0", "-g", "-O2 -ffunction-sections", "-g -gz"] {
            let split: Vec<_> = "--offload-new-driver -fgpu-rdc".split(' ').collect();
            let flags = [&split[..], &flags.split(' ').collect::<Vec<_>>()].concat();
            let what = format!("{target} {flags:?}");
            place.hip("scale", target, &flags, "host.o");
            place.llvm("ld.lld", &["-r", "host.o", "-o", "linked.o"]);
            for file in ["host.o", "linked.o"] {
                is_same(file, &names, &words[1..], &what);
            }
            let object = place.bytes("host.o");
            let retained = Renames::new().with_retained_section("llvm_offload_entries");
            fs::write(place.path("ours.o"), rename(&object, &retained).unwrap()).unwrap();
            let shown = place.llvm("llvm-readelf", &["-hSW", "ours.o"]);
            let entries = shown.lines().find(|line| line.contains(" llvm_offload_entries "));
            assert!(entries.is_some_and(|line| line.contains(" WAR ")), "{what}: {shown}");
            assert!(shown.contains("UNIX - GNU"), "{what}: {shown}");
            // Elsewhere the section has a symbol: llvm-objcopy removes it, and we keep its place.
            if target.starts_with("x86_64") {
                is_same("host.o", &all, &words, &what);
            } else {
                let object = place.bytes("host.o");
                fs::write(place.path("ours.o"), rename(&object, &all).unwrap()).unwrap();
                place.llvm("ld.lld", &["-r", "ours.o", "-o", "linked.o"]);
                let sections = place.llvm("llvm-readelf", &["-SW", "linked.o"]);
                assert!(!sections.contains(".llvm.offloading"), "{what}: {sections}");
                assert!(sections.contains("llvm_offload_entries_of_a_crate"), "{what}: {sections}");
            }
        }
    }
}

#[test]
fn symbols_in_the_index_of_an_archive_keep_their_names() {
    let place = Place::new();
    place.hip("scale", "x86_64-pc-linux-gnu", &["--offload-new-driver", "-fgpu-rdc"], "scale.o");
    place.hip("shift", "x86_64-pc-linux-gnu", &["--offload-new-driver", "-fgpu-rdc"], "shift.o");
    for format in ["gnu", "bsd", "darwin", "coff"] {
        let (archive, format) = (format!("{format}.a"), format!("--format={format}"));
        place.llvm("llvm-ar", &[&format, "rcs", &archive, "scale.o", "shift.o"]);
        let text = place.llvm("llvm-nm", &["--print-armap", "--quiet", &archive]);
        let map = text.split("\n\n").next().unwrap();
        let names: Vec<_> = map.lines().filter_map(|line| line.split_once(" in ")).collect();
        assert!(names.len() > 3, "{archive}: {text}");
        let bytes = place.bytes(&archive);
        for (name, _) in &names {
            let error = rename(&bytes, &Renames::new().with_symbol(*name, "other")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{archive}: {name}");
            assert!(error.to_string().contains(&format!("symbol {name},")), "{archive}: {error}");
        }
        // The end of a name is another name, and so is `.rel` with `a.` after it.
        let others = Renames::new().with_symbol(&names[0].0[1..], "other");
        let others = others.with_section("a.llvm_offload_entries", "other");
        assert!(matches!(rename(&bytes, &others), Ok(Cow::Borrowed(_))), "{archive}");
        let section = Renames::new().with_section("llvm_offload_entries", "other");
        fs::write(place.path("renamed.a"), rename(&bytes, &section).unwrap()).unwrap();
        let sections = place.llvm("llvm-readelf", &["-SW", "renamed.a"]);
        assert_eq!(sections.matches(" .relaother ").count(), 2, "{archive}: {sections}");
    }
}

#[test]
fn linked_programs_with_a_bundle_run_on() {
    let place = Place::new();
    fs::write(place.path("five.c"), "int main(void) { return 5; }\n").unwrap();
    for flags in [&["-fuse-ld=bfd"][..], &["-fuse-ld=lld", "-g"], &["-no-pie", "-fuse-ld=bfd"]] {
        place.llvm("clang", &[&["five.c", "-o", "five"], flags].concat());
        let ids = ["hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx1100"];
        fs::write(place.path("first"), [1; 500]).unwrap();
        fs::write(place.path("second"), [2; 50]).unwrap();
        let targets = format!("--targets=host-x86_64-unknown-linux-gnu-,{},{}", ids[0], ids[1]);
        let inputs = ["--input=five", "--input=first", "--input=second", "--output=fat"];
        let args = [&["--type=o", &*targets][..], &inputs].concat();
        place.llvm("clang-offload-bundler", &args);
        fs::set_permissions(
            place.path("fat"),
            fs::metadata(place.path("five")).unwrap().permissions(),
        )
        .unwrap();
        place.offload(&["thin", "fat", "--keep", "gfx1100", "-o", "thin"]);
        let remove = format!("--remove-section=__CLANG_OFFLOAD_BUNDLE__{}", ids[0]);
        place.llvm("llvm-objcopy", &[&remove, "fat", "theirs"]);
        assert!(place.bytes("thin") == place.bytes("theirs"), "{flags:?}");
        place.offload(&["replace", "thin", "gfx1100=first", "--any-image", "-o", "replaced"]);
        assert!(place.images("replaced") == [(ids[1].to_owned(), vec![1; 500])]);
        for file in ["thin", "replaced"] {
            assert_eq!(place.complaints(file), place.complaints("five"), "{flags:?} {file}");
            assert_eq!(new_command(place.path(file)).status().unwrap().code(), Some(5));
        }
    }
}

#[test]
fn relocatable_device_code_is_linked_for_what_is_left() {
    let place = Place::new();
    for unit in UNITS {
        let (out, thin) = (format!("rdc-{unit}.o"), format!("thin-{unit}.o"));
        place.hip(unit, "x86_64-pc-linux-gnu", &["--no-offload-new-driver", "-fgpu-rdc"], &out);
        place.offload(&["thin", &out, "--keep", "gfx906", "-o", &thin]);
    }
    let link = |arch: &str, objects: [&str; 2]| {
        let arch = format!("--offload-arch={arch}");
        let args =
            ["--hip-link", "-fgpu-rdc", "--no-offload-new-driver", "-nogpulib", "-fuse-ld=lld"];
        let more = [&arch, "--target=x86_64-pc-linux-gnu", "-nostdlib++", "-no-hip-rt"];
        let files = [objects[0], objects[1], "main.o", "runtime.o", "-o", "program"];
        let args = [&args[..], &more, &files].concat();
        new_command(llvm("clang")).args(args).current_dir(place.0.path()).output().unwrap()
    };
    let registered = || {
        place.run(&place.path("program"), &[]);
        let images = place.images("registered.0");
        fs::remove_file(place.path("registered.0")).unwrap();
        let _ = fs::remove_file(place.path("registered.1"));
        images
    };
    let output = link("gfx906", ["rdc-scale.o", "rdc-shift.o"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let all = registered();
    let output = link("gfx906", ["thin-scale.o", "thin-shift.o"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(registered() == all);
    assert!(all.iter().all(|(id, _)| id.ends_with("gfx906")));
}

#[test]
fn packages_are_linked_for_what_is_left() {
    let place = Place::new();
    for unit in UNITS {
        let flags = ["--offload-new-driver", "-fgpu-rdc"];
        place.hip(unit, "x86_64-pc-linux-gnu", &flags, &format!("new-{unit}.o"));
    }
    place.llvm("ld.lld", &["-r", "new-scale.o", "new-shift.o", "-o", "new-both.o"]);
    place.llvm("llvm-ar", &["rcs", "new.a", "new-scale.o", "new-shift.o"]);
    let linker = format!("--linker-path={}", llvm("ld.lld").display());
    let planned = |inputs: &[&str]| {
        let args = ["--dry-run", "--host-triple=x86_64-unknown-linux-gnu", &linker, "--"];
        let rest = ["--whole-archive", "-o", "out"];
        let tool = llvm("clang-linker-wrapper");
        let output = place.run(&tool, &[&args[..], &rest, inputs].concat());
        let text = stderr(&output);
        ["-mcpu=gfx906", "-mcpu=gfx1100"].map(|word| text.matches(word).count())
    };
    for inputs in [&["new-scale.o", "new-shift.o"][..], &["new-both.o"], &["new.a"]] {
        assert_eq!(planned(inputs), [1, 1], "{inputs:?}");
        let thin: Vec<_> = inputs.iter().map(|input| format!("thin-{input}")).collect();
        for (input, thin) in inputs.iter().zip(&thin) {
            place.offload(&["thin", input, "--keep", "gfx906", "-o", thin]);
            let expected: Vec<_> =
                place.images(input).into_iter().filter(|(id, _)| id == "gfx906").collect();
            assert!(place.images(thin) == expected, "{input}");
            if input.ends_with(".o") {
                assert_eq!(place.complaints(thin), place.complaints(input), "{input}");
            }
        }
        let thin: Vec<_> = thin.iter().map(String::as_str).collect();
        assert_eq!(planned(&thin), [1, 0], "{inputs:?}");
    }
    // And really.
    let args = ["--host-triple=x86_64-unknown-linux-gnu", &linker, "-shared", "-o", "linked.so"];
    place.run(&llvm("clang-linker-wrapper"), &[&args[..], &["thin-new-both.o"]].concat());
    let targets: Vec<_> = place.images("linked.so").into_iter().map(|(id, _)| id).collect();
    assert!(targets.len() == 1 && targets[0].ends_with("gfx906"), "{targets:?}");
}

#[test]
fn coff_objects_are_linked_with_what_is_left() {
    let place = Place::new();
    let windows = ["--target=x86_64-pc-windows-msvc", "-w", "-c", "-fno-builtin"];
    fs::write(place.path("stub.c"), RUNTIME_FOR_WINDOWS).unwrap();
    place.llvm("clang", &[&windows[..], &["stub.c", "-o", "stub.obj"]].concat());
    for unit in UNITS {
        let flags = ["--no-offload-new-driver", "-fno-exceptions"];
        place.hip(unit, "x86_64-pc-windows-msvc", &flags, &format!("{unit}.obj"));
    }
    let link = |objects: [&str; 2], out: &str| {
        let out = format!("/out:{out}");
        let args = ["/dll", "/noentry", "/nodefaultlib", "/timestamp:0", &out, "stub.obj"];
        place.llvm("lld-link", &[&args[..], &objects].concat());
    };
    link(["scale.obj", "shift.obj"], "all.dll");
    let all = place.images("all.dll");
    assert_eq!(all.len(), 4);
    for (edit, args, left) in &EDITS[..3] {
        let outputs = UNITS.map(|unit| format!("{edit}-{unit}.obj"));
        for (unit, output) in UNITS.iter().zip(&outputs) {
            let input = format!("{unit}.obj");
            place.edit(args, &input, output);
            place.llvm("llvm-readobj", &["-S", "-s", "-r", output]);
        }
        link([&outputs[0], &outputs[1]], "edited.dll");
        let expected = all.iter().filter(|(id, _)| left.iter().any(|target| id.ends_with(target)));
        let images = place.images("edited.dll");
        assert!(images.iter().eq(expected), "{edit}");
        // Each wrapper points to a bundle.
        let starts = bundle_addresses(&place, "edited.dll");
        let wrappers = section(&place, "edited.dll", ".hipFatB");
        let pointers = wrappers
            .1
            .chunks_exact(24)
            .map(|wrapper| u64::from_le_bytes(wrapper[8..16].try_into().unwrap()));
        let pointers: Vec<_> = pointers.filter(|&pointer| pointer != 0).collect();
        assert_eq!(pointers, starts, "{edit}");
    }
}

const RUNTIME_FOR_WINDOWS: &str = "
int atexit(void (*f)(void)) { return 0; }
int _fltused;
void *__hipRegisterFatBinary(void *p) { return p; }
void __hipUnregisterFatBinary(void **p) {}
int __hipRegisterFunction() { return 0; }
int __hipPopCallConfiguration() { return 0; }
int hipLaunchKernel() { return 0; }
";

/// Address and contents of a section of a PE file.
fn section(place: &Place, file: &str, name: &str) -> (u64, Vec<u8>) {
    let headers = place.llvm("llvm-objdump", &["-h", file]);
    let line = headers.lines().find(|line| line.split_whitespace().nth(1) == Some(name)).unwrap();
    let address = line.split_whitespace().nth(3).unwrap();
    let only = format!("--dump-section={name}=section");
    place.llvm("llvm-objcopy", &[&only, file, "copy"]);
    (u64::from_str_radix(address, 16).unwrap(), place.bytes("section"))
}

/// Returns the addresses of bundles in memory.
fn bundle_addresses(place: &Place, file: &str) -> Vec<u64> {
    let (address, contents) = section(place, file, ".hip_fat");
    let starts = (0..contents.len()).step_by(4096).filter(|&start| {
        let rest = &contents[start..];
        rest.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || rest.starts_with(b"CCOB")
    });
    starts.map(|start| address + start as u64).collect()
}

#[test]
fn an_archive_of_a_thousand_members_is_edited() {
    let place = Place::new();
    let names: Vec<_> = (0..1000).map(|number| format!("member_{number}.o")).collect();
    for name in &names {
        fs::hard_link(place.path("shift.o"), place.path(name)).unwrap();
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    place.llvm("llvm-ar", &[&["rcs", "many.a"][..], &names].concat());
    place.offload(&["thin", "many.a", "--keep", "gfx906", "-o", "thin.a"]);
    let rows = ls(&place.path("thin.a"));
    let targets: Vec<_> = rows.iter().filter_map(|row| row.target.as_deref()).collect();
    assert_eq!(targets, ["gfx906"; 1000]);
    assert_eq!(place.llvm("llvm-ar", &["t", "thin.a"]), place.llvm("llvm-ar", &["t", "many.a"]));
}
