//! Heterogeneous device archives: those of LLVM 22's tools, unbundled by `clang-offload-bundler` and by us to the
//! same bytes, and linked.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Random, llvm, new_command, tool};
use bundle_format::{EntryId, Request};
use byte_parts::ReadSeek;
use hda_archive::{Error, Member, Options, Unbundling, conflicts, create, write_archive};

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX906: &str = "openmp-amdgcn-amd-amdhsa--gfx906";
const GFX908: &str = "openmp-amdgcn-amd-amdhsa--gfx908:xnack+";
const SM70: &str = "openmp-nvptx64-nvidia-cuda--sm_70";

/// A directory with code for the host and for devices.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for name in ["one", "two"] {
            let source = format!(
                "int {name}_variable; static int hidden; int {name}(int x) {{ return x + hidden++; }}\n\
                 __attribute__((weak)) int weak_{name}(void) {{ return {name}(1); }}\n"
            );
            place.put(&format!("{name}.c"), source.as_bytes());
            let compile = |output: &str, flags: &[&str]| {
                let source = format!("{name}.c");
                let common = ["-nogpulib", "-O1", "-c", &source, "-o", output];
                place.ok("clang", &[&common[..], flags].concat());
            };
            let amd = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906"];
            compile(&format!("{name}.host"), &["--target=x86_64-unknown-linux-gnu"]);
            compile(&format!("{name}.coff"), &["--target=x86_64-pc-windows-msvc"]);
            compile(&format!("{name}.amd"), &amd);
            compile(&format!("{name}.bc"), &[&amd[..], &["-emit-llvm"]].concat());
            let ptx = ["-Xclang", "-target-feature", "-Xclang", "+ptx60", "-emit-llvm"];
            let nvidia = ["--target=nvptx64-nvidia-cuda", "-march=sm_70"];
            compile(&format!("{name}.nv"), &[&nvidia[..], &ptx].concat());
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    fn run(&self, tool: &str, args: &[&str]) -> Output {
        new_command(llvm(tool)).args(args).current_dir(&self.0).output().unwrap()
    }

    fn ok(&self, tool: &str, args: &[&str]) -> Vec<u8> {
        let output = self.run(tool, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {args:?}: {error}");
        output.stdout
    }

    /// Has LLVM bundle files.
    fn bundle(&self, output: &str, file_type: &str, entries: &[(&str, &str)], flags: &[&str]) {
        let targets: Vec<_> = entries.iter().map(|(id, _)| *id).collect();
        let mut args = vec![
            format!("-type={file_type}"),
            format!("-targets={}", targets.join(",")),
            format!("-output={output}"),
        ];
        args.extend(entries.iter().map(|(_, file)| format!("-input={file}")));
        args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.ok("clang-offload-bundler", &args.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Returns the output of LLVM for an archive, target by target.
    fn theirs(
        &self,
        library: &str,
        targets: &[&str],
        flags: &[&str],
    ) -> Result<Vec<Vec<u8>>, String> {
        self.tool(&llvm("clang-offload-bundler"), library, targets, flags)
    }

    /// Returns the output of a tool, or its complaint.
    fn tool(
        &self,
        tool: &Path,
        library: &str,
        targets: &[&str],
        flags: &[&str],
    ) -> Result<Vec<Vec<u8>>, String> {
        let outputs: Vec<_> = (0..targets.len()).map(|index| format!("out{index}.a")).collect();
        let output = new_command(tool)
            .args(["-type=a", "-unbundle"])
            .arg(format!("-targets={}", targets.join(",")))
            .arg(format!("-input={library}"))
            .args(outputs.iter().map(|output| format!("-output={output}")))
            .args(flags)
            .current_dir(&self.0)
            .output()
            .unwrap();
        if output.status.success() {
            Ok(outputs.iter().map(|output| self.get(output)).collect())
        } else {
            let text = String::from_utf8(output.stderr).unwrap();
            Err(text.split_once("error: ").unwrap().1.trim().to_owned())
        }
    }

    /// Returns the output of our library.
    fn ours(&self, library: &str, targets: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let targets = targets.iter().map(|id| Request::new(&EntryId::parse(id).unwrap()));
        let mut input = File::open(self.at(library)).unwrap();
        let mut open = |name: &[u8]| self.open_thin(library, name);
        let plan = Unbundling::plan(&mut input, targets, &Options::default(), &mut open)?;
        let plan = plan.with_allow_missing(true);
        assert!(plan.warnings().is_empty(), "{:?}", plan.warnings());
        let mut archives = vec![Vec::new(); plan.archives().len()];
        plan.write(&mut input, &mut archives, &mut open)?;
        for (archive, planned) in archives.iter().zip(plan.archives()) {
            assert_eq!(archive.len() as u64, planned.size());
        }
        Ok(archives)
    }

    fn open_thin(&self, library: &str, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let library = self.at(library);
        let path = library.parent().unwrap().join(str::from_utf8(name).unwrap());
        Ok(Box::new(File::open(path)?))
    }

    /// Unbundles with both tools and compares.
    fn compare(&self, library: &str, targets: &[&str]) -> Vec<Vec<u8>> {
        let flags = ["-allow-missing-bundles"];
        let theirs = self.theirs(library, targets, &flags).unwrap();
        let ours =
            self.tool(tool("clang-offload-bundler").as_ref(), library, targets, &flags).unwrap();
        assert!(self.ours(library, targets).unwrap() == ours, "{library}: the library");
        for ((theirs, ours), target) in theirs.iter().zip(&ours).zip(targets) {
            self.put("ours.a", ours);
            self.put("theirs.a", theirs);
            let index = |archive| self.ok("llvm-nm", &["--print-armap", "--quiet", archive]);
            let index = ["ours.a", "theirs.a"].map(|a| String::from_utf8(index(a)).unwrap());
            assert_eq!(index[0], index[1], "{library} {target}");
            assert!(theirs == ours, "{library} {target}");
        }
        ours
    }
}

/// A library with everything that bundles can be.
fn library(place: &Place, format: &str, name: &str) {
    let members = [
        ("plain.o", "o", "one", "host", &[][..]),
        ("dir/in.two.parts.o", "o", "two", "host", &[]),
        ("windows.obj", "o", "two", "coff", &[]),
        ("noextension", "bc", "one", "host", &[]),
        (".o", "bc", "two", "host", &["-bundle-align=4096"]),
        ("odd:name+1.o", "bc", "one", "host", &["-compress"]),
        ("zlib-like-name-that-is-long.o", "bc", "two", "host", &["-compress"]),
    ];
    place.put("empty", b"");
    let mut files = Vec::new();
    for (member, file_type, code, host, flags) in members {
        // The padding of this format counts as part of the member: LLVM does not decompress with it, and takes it
        // from objects for Windows, which we leave as they are.
        if format == "--format=darwin" && (flags == ["-compress"] || host == "coff") {
            continue;
        }
        place.put(member, b"");
        let [host, amd, bitcode, nvidia] =
            [host, "amd", "bc", "nv"].map(|extension| format!("{code}.{extension}"));
        let entries = [(HOST, &host), (GFX906, &amd), (GFX908, &bitcode), (SM70, &nvidia)];
        let entries = entries.map(|(id, file)| (id, file.as_str()));
        place.bundle(member, file_type, &entries, flags);
        files.push(member);
    }
    // Kinds, an empty entry, data that is not code, and members that are not bundles.
    let hip = [(HOST, "empty"), ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack-", "one.c")];
    place.bundle("hip.o", "bc", &hip, &[]);
    place.bundle("hipcompressed.o", "bc", &hip, &["-compress"]);
    place.bundle("text.o", "s", &[(HOST, "one.c"), (GFX906, "two.c")], &[]);
    if format != "--format=darwin" {
        files.push("hipcompressed.o");
    }
    files.extend(["hip.o", "text.o", "one.c", "one.bc", "one.host", "empty", "plain.o"]);
    let _ = fs::remove_file(place.at(name));
    let format: Vec<_> = format.split(' ').chain(["rcS", name]).chain(files).collect();
    place.ok("llvm-ar", &format);
}

const TARGETS: [&str; 7] = [
    HOST,
    GFX906,
    GFX908,
    "openmp-nvptx64-nvidia-cuda--sm_70",
    "hip-amdgcn-amd-amdhsa--gfx906:xnack-",
    "hip-amdgcn-amd-amdhsa--gfx1100",
    "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+",
];

#[test]
fn archives_of_every_format_give_the_same_bytes() {
    let place = Place::new();
    for format in ["--format=gnu", "--format=bsd", "--format=darwin", "--format=coff", "--thin"] {
        library(&place, format, "library.a");
        let archives = place.compare("library.a", &TARGETS);
        assert!(archives[0].len() > 5000 && archives[3].len() > 5000, "{format}");
        assert_eq!(archives[5], b"!<arch>\n", "{format}");
        // As one target, which must not make a difference.
        for (target, archive) in TARGETS.iter().zip(&archives) {
            assert!(place.compare("library.a", &[target])[0] == *archive, "{format} {target}");
        }
    }
    // Archives that LLVM cannot read.
    place.ok("llvm-ar", &["--format=darwin", "rcS", "darwin.a", "hip.o", "hipcompressed.o"]);
    place.ok("llvm-ar", &["rcS", "gnu.a", "hip.o", "hipcompressed.o"]);
    assert!(place.theirs("darwin.a", &TARGETS[..1], &[]).is_err());
    assert!(place.ours("darwin.a", &TARGETS).unwrap() == place.compare("gnu.a", &TARGETS));
    // Paths beside the archive.
    fs::create_dir(place.at("libs")).unwrap();
    place.ok("llvm-ar", &["--thin", "rc", "libs/thin.a", "plain.o", "dir/in.two.parts.o", ".o"]);
    place.compare("libs/thin.a", &TARGETS);
}

#[test]
fn archives_of_hip_objects_give_the_same_bytes() {
    let place = Place::new();
    place.put(
        "code.hip",
        b"extern \"C\" __attribute__((device)) int helper(int x) { return x + 1; }\n",
    );
    let hip = |output: &str, flags: &[&str]| {
        let common =
            ["-x", "hip", "--no-offload-new-driver", "-fgpu-rdc", "-nogpuinc", "-nogpulib"];
        let archs = ["--offload-arch=gfx906:xnack+", "--offload-arch=gfx908", "code.hip", "-o"];
        place.ok("clang", &[&common[..], &archs, &[output], flags].concat());
    };
    hip("object.o", &["-c"]);
    hip("bitcode.o", &["-c", "-emit-llvm"]);
    hip("compressed.o", &["-c", "-emit-llvm", "--offload-compress"]);
    place.ok("llvm-ar", &["rc", "library.a", "object.o", "bitcode.o", "compressed.o"]);
    let targets = [
        "host-x86_64-pc-linux-gnu-",
        "hip-amdgcn-amd-amdhsa--gfx906:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx908:xnack-",
    ];
    let archives = place.compare("library.a", &targets);
    assert!(archives.iter().all(|archive| archive.len() > 5000));
}

/// LLVM walks the entries of a binary bundle in the order of a hash table, we in the order of the file.
#[test]
fn all_matching_entries_of_a_bundle_are_unbundled() {
    let place = Place::new();
    let entries = [(HOST, "empty"), (GFX906, "one.bc")];
    place.put("empty", b"");
    place.bundle("twice.o", "bc", &entries, &[]);
    // Twice the same kind, under both names.
    let entries = [
        ("hip-amdgcn-amd-amdhsa--gfx906", "one.bc"),
        ("hipv4-amdgcn-amd-amdhsa--gfx906", "two.bc"),
    ];
    place.bundle("kinds.o", "bc", &entries, &[]);
    place.ok("llvm-ar", &["rc", "library.a", "kinds.o"]);
    let target = ["hip-amdgcn-amd-amdhsa--gfx906:xnack-"];
    let members = |archive: &str| {
        let mut names: Vec<_> = String::from_utf8(place.ok("llvm-ar", &["t", archive]))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    place.put("ours.a", &place.ours("library.a", &target).unwrap()[0]);
    place.put("theirs.a", &place.theirs("library.a", &target, &[]).unwrap()[0]);
    assert_eq!(members("ours.a"), members("theirs.a"));
    assert_eq!(members("ours.a").len(), 2);
}

#[test]
fn conflicts_are_those_of_llvm() {
    let place = Place::new();
    let check = |member: &str| {
        let _ = fs::remove_file(place.at("library.a"));
        place.ok("llvm-ar", &["rc", "library.a", member]);
        let mut input = File::open(place.at("library.a")).unwrap();
        let mut open = |name: &[u8]| place.open_thin("library.a", name);
        let ours = conflicts(&mut input, &Options::default(), &mut open).unwrap();
        let target = ["openmp-amdgcn-amd-amdhsa--gfx90a"];
        let flags = ["-check-input-archive", "-allow-missing-bundles"];
        let theirs = place.theirs("library.a", &target, &flags).err();
        let tool =
            place.tool(tool("clang-offload-bundler").as_ref(), "library.a", &target, &flags).err();
        assert_eq!(tool, ours.first().map(|conflict| format!("{conflict} of library.a")));
        (ours, theirs)
    };
    // The bundler refuses to make such bundles: two are put together.
    let id = |features: &str| format!("openmp-amdgcn-amd-amdhsa--gfx906{features}");
    let bundle = |output: &str, ids: &[&str]| {
        let entries: Vec<_> = ids.iter().map(|id| ((*id).to_owned(), 4)).collect();
        let layout = bundle_format::layout(entries, 1).unwrap();
        place.put(output, &layout.to_vec(&vec![&b"code"[..]; ids.len()]).unwrap());
    };
    let (any, on, off) = (id(""), id(":xnack+"), id(":xnack-"));
    bundle("bad.o", &[&any, &on]);
    let (ours, theirs) = check("bad.o");
    assert_eq!(Some(format!("{} of library.a", ours[0])), theirs);
    bundle("good.o", &[&on, &off]);
    let (ours, theirs) = check("good.o");
    assert!(ours.is_empty() && theirs.is_none(), "{ours:?} {theirs:?}");
    // As sections of an object.
    let host = place.get("one.host");
    let entries = [(any.clone(), 1), (on.clone(), 1)];
    let object = fat_edit::object_bundle(&host, &entries).unwrap();
    place.put("fat.o", &object.to_vec(&[&b"1"[..], b"2"]).unwrap());
    let (ours, theirs) = check("fat.o");
    assert_eq!(Some(format!("{} of library.a", ours[0])), theirs);
    // Not seen by LLVM: the other way round, and in compressed bundles.
    let both = id(":sramecc+:xnack+");
    bundle("subset.o", &[&both, &off]);
    assert_eq!(check("subset.o").0.len(), 1);
    let compressed = ccob::compress(&place.get("bad.o"), &ccob::WriteOptions::default());
    place.put("compressed.o", &compressed.unwrap());
    assert_eq!(
        check("compressed.o").0[0].to_string(),
        format!("conflicting TargetIDs [{any}, {on}] found in compressed.o")
    );
}

#[test]
fn complaints_are_those_of_llvm() {
    let place = Place::new();
    library(&place, "--format=gnu", "library.a");
    place.put("short", b"!<arch>");
    let target = ["hip-amdgcn-amd-amdhsa--gfx1100"];
    let both = |input: &str| {
        let theirs = place.theirs(input, &target, &[]).unwrap_err();
        (
            theirs,
            place.tool(tool("clang-offload-bundler").as_ref(), input, &target, &[]).unwrap_err(),
        )
    };
    let (theirs, ours) = both("library.a");
    assert_eq!(theirs, ours);
    // With the name of the file.
    let (theirs, ours) = both("short");
    assert_eq!(format!("{theirs}: 'short'"), ours);
    let (theirs, ours) = both("nowhere.a");
    assert_eq!(theirs, ours);
}

/// Line by line, except the time it took.
#[test]
fn verbose_prints_how_members_are_stored() {
    let place = Place::new();
    place.put("tiny", b"1234567");
    place.put("small", b"12345678");
    for format in ["--format=gnu", "--format=bsd", "--thin"] {
        library(&place, format, "library.a");
        place.ok("llvm-ar", &["q", "library.a", "tiny", "small"]);
        let lines = |tool: &Path, flags: &[&str], verbose: &str| {
            let output = new_command(tool)
                .args(["-type=a", "-unbundle", "-input=library.a", "-output=out.a"])
                .arg(format!("-targets={GFX906}"))
                .args(flags)
                .env("OFFLOAD_BUNDLER_VERBOSE", verbose)
                .current_dir(&place.0)
                .output()
                .unwrap();
            assert!(output.status.success());
            let text = String::from_utf8(output.stderr).unwrap();
            let lines = text.lines().map(|line| match line.split_once("speed: ") {
                Some((start, rest)) => {
                    assert!(rest.ends_with(" MB/s"), "{line}");
                    start.to_owned()
                }
                None => line.to_owned(),
            });
            lines.collect::<Vec<_>>()
        };
        for (flags, verbose) in [
            (&["-verbose"][..], "0"),
            (&["-verbose", "-check-input-archive"], "0"),
            (&[], "1"),
            (&["-verbose=0"], "1"),
            (&[], "0"),
        ] {
            let theirs = lines(&llvm("clang-offload-bundler"), flags, verbose);
            assert_eq!(
                lines(tool("clang-offload-bundler").as_ref(), flags, verbose),
                theirs,
                "{format} {flags:?}"
            );
            let told = verbose == "1" && flags.is_empty() || flags.contains(&"-verbose");
            assert_eq!(theirs.len() > 40, told, "{theirs:?}");
        }
    }
}

#[test]
fn archives_are_those_of_llvm_ar() {
    let place = Place::new();
    library(&place, "--format=gnu", "library.a");
    let mut random = Random::new(7);
    let names = [
        "plain.o",
        "windows.obj",
        "noextension",
        "odd:name+1.o",
        "one.bc",
        "two.bc",
        "one.nv",
        "one.amd",
        "two.coff",
        "one.c",
        "empty",
        "text.o",
        "zlib-like-name-that-is-long.o",
        "exactly15chars.",
        "exactly16chars..",
    ];
    place.put("exactly15chars.", &place.get("one.host"));
    place.put("exactly16chars..", &place.get("two.host"));
    for round in 0..60 {
        let chosen: Vec<_> = (0..random.below(8)).map(|_| *random.pick(&names)).collect();
        let _ = fs::remove_file(place.at("theirs.a"));
        place.ok("llvm-ar", &[&["--format=gnu", "qcD", "theirs.a"], &chosen[..]].concat());
        let theirs = place.get("theirs.a");
        let mut ours = Vec::new();
        write_archive(&mut ours, chosen.iter().map(|name| Member::new(*name, place.get(name))))
            .unwrap();
        assert!(theirs == ours, "{round}: {chosen:?}");
    }
    let fat = ["plain.o", "noextension", "zlib-like-name-that-is-long.o"];
    let _ = fs::remove_file(place.at("theirs.a"));
    place.ok("llvm-ar", &[&["--format=gnu", "qcD", "theirs.a"], &fat[..]].concat());
    let mut ours = Vec::new();
    create(&mut ours, fat.map(|name| Member::new(name, place.get(name)))).unwrap();
    assert!(place.get("theirs.a") == ours);
    let error = create(Vec::new(), [Member::new("one.bc", place.get("one.bc"))]).unwrap_err();
    assert!(error.to_string().contains("one.bc"), "{error}");
}

/// `ld.bfd` finds members by the index only; `ld.lld` links bitcode with objects.
#[test]
fn linkers_find_members_by_their_symbols() {
    let place = Place::new();
    library(&place, "--format=gnu", "library.a");
    let archives = place.compare("library.a", &[HOST, GFX906, GFX908]);
    for (name, archive) in ["libhost.a", "libobjects.a", "libbitcode.a"].iter().zip(archives) {
        place.put(name, &archive);
    }
    place.put(
        "main.c",
        b"int one(int); int two(int); int start(void) { return one(1) + two(2); }\n",
    );
    let amd = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib", "main.c", "-O1"];
    for library in ["libobjects.a", "libbitcode.a"] {
        place.ok("clang", &[&amd[..], &["-o", "linked", library, "-Wl,-u,start"]].concat());
        let symbols = String::from_utf8(place.ok("llvm-nm", &["linked"])).unwrap();
        for name in ["one", "two", "start"] {
            assert!(symbols.lines().any(|line| line.ends_with(&format!(" {name}"))), "{symbols}");
        }
    }
    place.ok("clang", &["--target=x86_64-unknown-linux-gnu", "-c", "main.c", "-o", "main.o"]);
    // Members of Windows are none of this linker's.
    let linked = new_command("ld.bfd")
        .args(["-e", "start", "main.o", "libhost.a", "-o", "linked"])
        .current_dir(&place.0)
        .output();
    if let Ok(linked) = linked {
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    }
}
