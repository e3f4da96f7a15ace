//! The same files read by LLVM 22's tools and by `offload`: shipped ones, and ones compiled now.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::common::{Row, data, extract, llvm_command as llvm, ls, printed as run};

/// Returns whether a row is an entry of a bundle directly in a section, which readobj lists.
fn is_section_bundle(row: &&Row) -> bool {
    ["bundle", "ccob"].contains(&row.container.as_str())
        && row.path.iter().any(|p| p.starts_with("section:"))
        && !row.path.iter().any(|p| p.starts_with("image:"))
}

/// `llvm-readobj --offloading`: ID, offset (inside compressed bundles: of the decompressed data) and size of every
/// entry of every bundle in a section, in file order.
fn compare_with_readobj(file: &Path, rows: &[Row]) -> usize {
    let printed = run(llvm("llvm-readobj").arg("--offloading").arg(file));
    let theirs: Vec<(String, u64, u64)> = printed
        .lines()
        .filter_map(|line| {
            let (id, place) = line.split_once('\t')?;
            let (_, numbers) = place.rsplit_once("#offset=")?;
            let (offset, size) = numbers.split_once("&size=")?;
            Some((id.to_owned(), offset.parse().unwrap(), size.parse().unwrap()))
        })
        .collect();
    let ours: Vec<(String, u64, u64)> = rows
        .iter()
        .filter(is_section_bundle)
        .map(|row| {
            (row.id.clone().unwrap(), row.offset.unwrap_or(row.offset_in_container), row.size)
        })
        .collect();
    assert_eq!(ours, theirs, "{}", file.display());
    ours.len()
}

/// `llvm-objdump --offloading`: kind, arch, triple and producer of every package entry, in file order.
fn compare_with_objdump(file: &Path, rows: &[Row]) -> usize {
    // It also writes bundle entries into the current directory.
    let place = tempfile::tempdir().unwrap();
    let file = file.canonicalize().unwrap();
    let printed =
        run(llvm("llvm-objdump").arg("--offloading").arg(&file).current_dir(place.path()));
    let mut theirs: Vec<BTreeMap<&str, &str>> = Vec::new();
    for line in printed.lines() {
        if line.starts_with("OFFLOADING IMAGE") {
            theirs.push(BTreeMap::new());
        } else if let (Some(image), Some((key, value))) = (theirs.last_mut(), line.split_once(' '))
        {
            image.insert(key, value.trim());
        }
    }
    let ours: Vec<_> = rows.iter().filter(|row| row.container == "offload-binary").collect();
    assert_eq!(ours.len(), theirs.len(), "{}", file.display());
    for (row, image) in ours.iter().zip(&theirs) {
        assert_eq!(
            row.target.as_deref(),
            image.get("arch").copied().filter(|a| !a.is_empty()),
            "{row:?}"
        );
        assert_eq!(row.triple.as_deref(), image.get("triple").copied(), "{row:?}");
        assert_eq!(
            row.kind.as_deref(),
            image.get("producer").copied().filter(|&k| k != "none"),
            "{row:?}"
        );
        // LLVM prints the recorded kind, we print what the bytes are.
        let format = match image["kind"] {
            "elf" => "elf",
            "llvm ir" => "bitcode",
            "cubin" => "cubin",
            "ptx" => "ptx",
            "<none>" => "spirv",
            other => panic!("{}: unexpected kind {other}", file.display()),
        };
        assert_eq!(row.image_format.as_deref(), Some(format), "{row:?}");
    }
    ours.len()
}

/// `clang-offload-bundler --list` and `--unbundle`: the same IDs (in the order of a hash table) and bytes.
fn compare_with_bundler(file: &Path, kind: &str, rows: &[Row]) -> usize {
    let kind = format!("--type={kind}");
    let input = [OsStr::new("--input="), file.as_os_str()].concat_os();
    let printed = run(llvm("clang-offload-bundler").arg("--list").arg(&kind).arg(&input));
    let theirs: BTreeSet<&str> = printed.lines().collect();
    let ours: BTreeSet<&str> = rows.iter().filter_map(|row| row.id.as_deref()).collect();
    assert_eq!(ours, theirs, "{}", file.display());
    let place = tempfile::tempdir().unwrap();
    let mut command = llvm("clang-offload-bundler");
    command.arg("--unbundle").arg(&kind).arg(&input);
    let ids: Vec<_> = rows.iter().filter_map(|row| row.id.clone()).collect();
    command.arg(format!("--targets={}", ids.join(",")));
    let outputs: Vec<PathBuf> = (0..ids.len()).map(|i| place.path().join(i.to_string())).collect();
    for output in &outputs {
        command.arg([OsStr::new("--output="), output.as_os_str()].concat_os());
    }
    run(&mut command);
    for (row, output) in rows.iter().zip(&outputs) {
        if row.image_format.as_deref() != Some("host-placeholder") {
            assert!(extract(file, row.index) == std::fs::read(output).unwrap(), "{row:?}");
        }
    }
    ids.len()
}

/// `llvm-offload-binary`: the same bytes for the entries that it can tell apart.
fn compare_with_packager(file: &Path, rows: &[Row]) -> usize {
    let place = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for row in rows.iter().filter(|row| row.container == "offload-binary") {
        let key = |row: &Row| (row.kind.clone(), row.triple.clone(), row.target.clone());
        if rows.iter().filter(|other| key(other) == key(row)).count() > 1 {
            continue;
        }
        let output = place.path().join("image");
        let image = format!(
            "--image=file={},kind={},triple={},arch={}",
            output.display(),
            row.kind.as_deref().unwrap_or("none"),
            row.triple.as_deref().unwrap(),
            row.target.as_deref().unwrap(),
        );
        run(llvm("llvm-offload-binary").arg(file).arg(image));
        assert!(extract(file, row.index) == std::fs::read(&output).unwrap(), "{row:?}");
        compared += 1;
    }
    compared
}

/// `llvm-objdump --offloading` writes the entries of plain bundles in sections to files of their own.
fn compare_with_objdump_files(file: &Path, rows: &[Row]) -> usize {
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join("input");
    std::fs::copy(file, &copy).unwrap();
    run(llvm("llvm-objdump").arg("--offloading").arg("input").current_dir(place.path()));
    let mut compared = 0;
    for row in rows.iter().filter(is_section_bundle) {
        let bundle = row.path.iter().find_map(|p| p.strip_prefix("bundle:")).unwrap();
        let name = format!("input.{bundle}.{}", row.id.as_deref().unwrap());
        let theirs =
            std::fs::read(place.path().join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(extract(file, row.index) == theirs, "{row:?}");
        compared += 1;
    }
    compared
}

/// Joins parts of an argument without asking that paths are UTF-8.
trait ConcatOs {
    fn concat_os(&self) -> std::ffi::OsString;
}

impl ConcatOs for [&OsStr; 2] {
    fn concat_os(&self) -> std::ffi::OsString {
        let mut whole = self[0].to_owned();
        whole.push(self[1]);
        whole
    }
}

#[test]
fn shipped_sections_are_listed_as_by_llvm() {
    for (name, entries) in [
        ("hip.o", 5),
        ("hip-ccob-v3.o", 5),
        ("hip-two-units.so", 4),
        ("hip-two-units-ccob.so", 6),
        ("host.o", 0),
    ] {
        let file = data(name);
        assert_eq!(compare_with_readobj(&file, &ls(&file)), entries, "{name}");
    }
    for name in ["hip.o", "hip-two-units.so"] {
        let file = data(name);
        assert!(compare_with_objdump_files(&file, &ls(&file)) > 0, "{name}");
    }
}

#[test]
fn shipped_packages_are_listed_as_by_llvm() {
    for (name, entries) in [
        ("hip-packager.o", 1),
        ("openmp-packager.o", 2),
        ("merged-packager.o", 3),
        ("packages.offload", 5),
    ] {
        let file = data(name);
        let rows = ls(&file);
        assert_eq!(compare_with_objdump(&file, &rows), entries, "{name}");
        assert!(compare_with_packager(&file, &rows) > 0, "{name}");
    }
}

#[test]
fn shipped_bundles_are_listed_as_by_llvm() {
    for (name, kind, entries) in [
        ("hip.hipfb", "o", 2),
        ("hip-ccob-v2.hipfb", "o", 3),
        ("hip-ccob-v3.hipfb", "o", 3),
        ("bundle.bc", "bc", 2),
        ("bundle.o", "o", 2),
        ("bundle.hipi", "hipi", 3),
        ("bundle.ll", "ll", 2),
        ("bundle.s", "s", 2),
    ] {
        let file = data(name);
        assert_eq!(compare_with_bundler(&file, kind, &ls(&file)), entries, "{name}");
    }
}

#[test]
fn archives_are_listed_as_their_members() {
    for name in ["libhip.a", "libbundles.a", "libhip-thin.a"] {
        let file = data(name);
        let place = tempfile::tempdir().unwrap();
        let listed = run(llvm("llvm-ar").arg("t").arg(&file));
        let rows = ls(&file);
        let mut seen = 0;
        for member in listed.lines() {
            let bytes = llvm("llvm-ar")
                .arg("p")
                .arg(&file)
                .arg(Path::new(member).file_name().unwrap())
                .output()
                .unwrap();
            let alone = place.path().join("member");
            std::fs::write(&alone, &bytes.stdout).unwrap();
            // A member holds the same by itself as the archive holds under the member's name.
            let segment =
                format!("member:{}", Path::new(member).file_name().unwrap().to_string_lossy());
            let inside: Vec<_> = rows.iter().filter(|row| row.path[0] == segment).collect();
            let outside = ls(&alone);
            assert_eq!(inside.len(), outside.len(), "{name} {member}");
            for (a, b) in inside.iter().zip(&outside) {
                assert_eq!(
                    (&a.id, &a.kind, &a.target, a.size),
                    (&b.id, &b.kind, &b.target, b.size)
                );
                assert_eq!(a.path[1..], b.path[..]);
                assert!(extract(&file, a.index) == extract(&alone, b.index));
            }
            seen += inside.len();
        }
        assert_eq!(seen, rows.len(), "{name}");
        assert!(seen > 0, "{name}");
    }
}

/// A host module compiled for link-time optimisation: rows as expected, and every image as LLVM extracts it.
fn compare_embedded(file: &Path, archs: &[&str]) {
    let rows = ls(file);
    let ours: Vec<_> = rows.iter().filter_map(|row| row.target.as_deref()).collect();
    assert_eq!(ours, archs, "{}", file.display());
    for row in &rows {
        assert_eq!(row.path[0], "section:.llvm.offloading");
        assert_eq!((row.offset, row.image_format.as_deref()), (None, Some("bitcode")));
    }
    assert_eq!(compare_with_packager(file, &rows), archs.len(), "{}", file.display());
}

#[test]
fn shipped_bitcode_is_listed_as_by_llvm() {
    compare_embedded(&data("hip-embedded.bc"), &["gfx90a"]);
}

#[test]
fn compiled_bitcode_is_listed_as_by_llvm() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let hip = ["-x", "hip", "--offload-new-driver", "-fgpu-rdc"];
    let compile_hip = |name: &str, source: &str, extra: &[&str]| {
        compile(&at(name), &[&hip[..], extra].concat(), source);
        at(name)
    };
    let many = ["--offload-arch=gfx90a,gfx1030,gfx1201", "-flto"];
    let (full, sorted) =
        (compile_hip("full.bc", "scale.hip", &many), ["gfx1030", "gfx1201", "gfx90a"]);
    compare_embedded(&full, &sorted);
    for (name, extra) in [
        ("thin.bc", &["-flto=thin"][..]),
        ("debug.bc", &["-flto", "-O0", "-g"]),
        ("discard.bc", &["-flto", "-fdiscard-value-names"]),
        ("unified.bc", &["-flto", "-funified-lto"]),
    ] {
        let extra = [&["--offload-arch=gfx906:xnack-"], extra].concat();
        compare_embedded(&compile_hip(name, "shift.hip", &extra), &["gfx906:xnack-"]);
    }

    let openmp = at("openmp.bc");
    let remap = format!(
        "{};{}",
        source("target-region.h").display(),
        source("target-region.txt").display()
    );
    let args = ["-fopenmp", "--offload-arch=gfx908,gfx942", "-flto", "-Xclang", "-remap-file"];
    compile(&openmp, &[&args[..], &["-Xclang", &remap]].concat(), "sum.c");
    compare_embedded(&openmp, &["gfx908", "gfx942"]);

    // Outputs of other tools: linked, with less or more in it, in the wrapper, as an archive's member.
    let linked = at("linked.bc");
    run(llvm("llvm-link").args([&full, &openmp]).arg("-o").arg(&linked));
    let all = [&sorted[..], &["gfx908", "gfx942"]].concat();
    compare_embedded(&linked, &all);
    for passes in ["strip", "default<O3>", "globaldce"] {
        let output = at("optimised.bc");
        run(llvm("opt").arg(format!("-passes={passes}")).arg(&linked).arg("-o").arg(&output));
        compare_embedded(&output, &all);
    }
    let text = run(llvm("llvm-dis").arg(&linked).args(["-o", "-"]));
    let darwin = text.replace("x86_64-pc-linux-gnu", "x86_64-apple-macosx13.0");
    std::fs::write(at("darwin.ll"), darwin).unwrap();
    let wrapped = at("darwin.bc");
    run(llvm("llvm-as").arg(at("darwin.ll")).arg("-o").arg(&wrapped));
    assert!(std::fs::read(&wrapped).unwrap().starts_with(b"\xde\xc0\x17\x0b"));
    compare_embedded(&wrapped, &all);
    let archive = at("lib.a");
    run(llvm("llvm-ar").arg("rcs").arg(&archive).args([&full, &openmp]));
    let rows = ls(&archive);
    assert_eq!(compare_with_packager(&archive, &rows), 5);

    // LLVM 22 refuses files of several modules, so the modules are compared one by one.
    let (several, inputs) = (at("several.bc"), [full, at("thin.bc"), openmp]);
    run(llvm("llvm-cat").arg("-b").args(&inputs).arg("-o").arg(&several));
    let rows = ls(&several);
    assert_eq!(rows.len(), 6);
    let apart = inputs.iter().flat_map(|file| ls(file).into_iter().map(move |row| (file, row)));
    for (row, (file, alone)) in rows.iter().zip(apart) {
        assert!(extract(&several, row.index) == extract(file, alone.index));
    }
}

/// `-fsplit-lto-unit` puts what has type metadata (here a vtable) into a second module.
#[test]
fn bitcode_of_two_modules_is_listed() {
    let place = tempfile::tempdir().unwrap();
    let (source, file) = (place.path().join("split.hip"), place.path().join("split.bc"));
    let text = "struct A { virtual int f(); }; int A::f() { return 1; } A *make() { return new A; }\n\
                __attribute__((device)) int g(int x) { return x; }\n";
    std::fs::write(&source, text).unwrap();
    run(llvm("clang")
        .args(["--target=x86_64-pc-linux-gnu", "-nogpuinc", "-nogpulib", "-O2", "-x", "hip"])
        .args(["--offload-new-driver", "-fgpu-rdc", "--offload-arch=gfx90a", "-flto=thin"])
        .args(["-fsplit-lto-unit", "-fvisibility=hidden", "-fwhole-program-vtables", "-c", "-o"])
        .args([&file, &source]));
    let rows = ls(&file);
    assert_eq!(rows.len(), 1);
    let modules: Vec<PathBuf> = (0..2)
        .map(|n| {
            let module = place.path().join(format!("module{n}.bc"));
            run(llvm("llvm-modextract").arg(format!("-n={n}")).arg(&file).arg("-o").arg(&module));
            module
        })
        .collect();
    compare_embedded(&modules[0], &["gfx90a"]);
    compare_embedded(&modules[1], &[]);
    assert!(extract(&file, 0) == extract(&modules[0], 0));
}

fn source(name: &str) -> PathBuf {
    data("src").join(name)
}

fn compile(output: &Path, args: &[&str], source_file: &str) {
    run(llvm("clang")
        .args(["--target=x86_64-pc-linux-gnu", "-nogpuinc", "-nogpulib", "-O2", "-c", "-o"])
        .arg(output)
        .args(args)
        .arg(source(source_file)));
}

/// GPUs that the shipped files do not use.
const ARCHS: [&str; 6] =
    ["gfx803", "gfx908:xnack-", "gfx908:xnack+", "gfx942", "gfx1030", "gfx1201"];

#[test]
fn compiled_hip_is_listed_as_by_llvm() {
    let place = tempfile::tempdir().unwrap();
    let archs: Vec<String> = ARCHS.iter().map(|arch| format!("--offload-arch={arch}")).collect();
    let mut objects = Vec::new();
    for (name, source, extra) in
        [("plain.o", "scale.hip", None), ("compressed.o", "shift.hip", Some("--offload-compress"))]
    {
        let file = place.path().join(name);
        let mut args = vec!["-x", "hip", "--no-offload-new-driver", "-fPIC"];
        args.extend(archs.iter().map(String::as_str));
        args.extend(extra);
        compile(&file, &args, source);
        let rows = ls(&file);
        // the host's entry, too
        assert_eq!(compare_with_readobj(&file, &rows), ARCHS.len() + 1);
        let ours: BTreeSet<_> = rows.iter().filter_map(|row| row.target.as_deref()).collect();
        assert_eq!(ours, BTreeSet::from(ARCHS));
        if extra.is_none() {
            assert_eq!(compare_with_objdump_files(&file, &rows), ARCHS.len() + 1);
        }
        objects.push(file);
    }
    // Both bundles, plain and compressed, one after the other in one section of a shared object.
    let library = place.path().join("lib.so");
    run(llvm("ld.lld").args(["-shared", "-o"]).arg(&library).args(&objects));
    let rows = ls(&library);
    assert_eq!(rows.len(), 2 * (ARCHS.len() + 1));
    let apart: Vec<_> = objects
        .iter()
        .flat_map(|object| ls(object).into_iter().map(|row| (object.clone(), row)))
        .collect();
    for (linked, (object, row)) in rows.iter().zip(&apart) {
        assert_eq!((&linked.id, linked.size), (&row.id, row.size));
        assert!(extract(&library, linked.index) == extract(object, row.index));
    }
}

#[test]
fn compiled_packages_are_listed_as_by_llvm() {
    let place = tempfile::tempdir().unwrap();
    let hip = place.path().join("hip.o");
    let mut args = vec!["-x", "hip", "--offload-new-driver", "-fgpu-rdc"];
    let archs: Vec<String> = ARCHS.iter().map(|arch| format!("--offload-arch={arch}")).collect();
    args.extend(archs.iter().map(String::as_str));
    compile(&hip, &args, "scale.hip");
    let rows = ls(&hip);
    assert_eq!(compare_with_objdump(&hip, &rows), ARCHS.len());
    assert_eq!(compare_with_packager(&hip, &rows), ARCHS.len());

    let openmp = place.path().join("openmp.o");
    let [header, map] = ["target-region.h", "target-region.txt"].map(source);
    let remap = format!("{};{}", header.display(), map.display());
    let args = ["-fopenmp", "--offload-arch=gfx90a,gfx1030,sm_70", "-foffload-lto"];
    let remapped = ["--cuda-feature=+ptx63", "-Xclang", "-remap-file", "-Xclang", &remap];
    compile(&openmp, &[&args[..], &remapped].concat(), "sum.c");
    let rows = ls(&openmp);
    assert_eq!(compare_with_objdump(&openmp, &rows), 3);
    assert_eq!(compare_with_packager(&openmp, &rows), 3);
}
