//! Entries of host objects, compared with entries that clang 22 emits, read by LLVM's tools, and registered: by the
//! stub of `wrapper/runtime.c`, and by LLVM's own runtime of OpenMP.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, with `libomp-22-dev` and `liboffload-22-dev`, and
//! `ld.bfd`; fails without them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::llvm;
use crate::common::place::Place;
use wrapper_ir::{
    Abi, Entries, EntryFlags, Image, Module, OffloadEntry, OffloadKind, Target, Wrapper,
};

const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-msvc";

/// As many bytes as the stub looks at.
const IMAGE: &[u8] = b"a fatbinary that nobody runs";

/// Puts the module there as text, bitcode and object, where there is one: "ours.ll", "ours.bc", "ours.o".
fn put_module(place: &Place, module: &Module) {
    place.put("ours.ll", module.ir_to_string(&[]).unwrap());
    place.put("ours.bc", module.bitcode().unwrap().to_vec(&[]).unwrap());
    if let Ok(object) = module.object() {
        place.put("ours.o", object.to_vec(&[]).unwrap());
    }
}

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper").join(name);
    path.to_str().unwrap().to_owned()
}

fn entries<'a>(
    kind: OffloadKind,
    triple: &str,
    list: impl IntoIterator<Item = OffloadEntry<'a>>,
) -> Entries<'a> {
    Entries::new(kind, Abi::Current, Target::new(triple).unwrap()).with_entries(list)
}

/// The lines of IR that define entries and their names.
fn entry_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("@.offloading.entry")).collect()
}

/// Clang's output for the host.
fn clang_text(place: &Place, triple: &str, options: &[&str], name: &str) -> String {
    let target = format!("--target={triple}");
    let (fixed, source) = (["-S", "-emit-llvm", "-w", "-o", "theirs.ll"], source(name));
    place.run(llvm("clang"), &[&[&target[..], &source], &fixed[..], options].concat());
    fs::read_to_string(place.path("theirs.ll")).unwrap()
}

#[test]
fn clang_emits_the_same_for_hip() {
    let options = [
        "-xhip",
        "--offload-arch=gfx90a",
        "-nogpulib",
        "-nogpuinc",
        "-fgpu-rdc",
        "--offload-new-driver",
        "--cuda-host-only",
    ];
    for (triple, symbols) in [
        (LINUX, ["_Z5scalePff", "variable", "table", "pool.managed", "pool", "screen", "picture"]),
        (
            WINDOWS,
            [
                "?scale@@YAXPEAMM@Z",
                "?variable@@3HA",
                "?table@@3PAHA",
                "?pool@@3_JA.managed",
                "?pool@@3_JA",
                "?screen@@3U?$surface@X$01@@A",
                "?picture@@3U?$texture@M$01$00@@A",
            ],
        ),
    ] {
        let [scale, variable, table, initial, pool, screen, picture] = symbols;
        let list = [
            OffloadEntry::kernel("_Z5scalePff", scale),
            OffloadEntry::variable("variable", variable, 4),
            OffloadEntry::variable("table", table, 16).with_flags(EntryFlags::CONSTANT),
            OffloadEntry::managed("pool", initial, pool, 8, 8),
            OffloadEntry::variable("screen", screen, 4)
                .with_flags(EntryFlags::SURFACE)
                .with_data(2),
            OffloadEntry::variable("picture", picture, 4)
                .with_flags(EntryFlags::TEXTURE | EntryFlags::NORMALIZED)
                .with_data(2),
        ];
        let ours = entries(OffloadKind::HIP, triple, list).module().unwrap();
        let ours = ours.ir_to_string(&[]).unwrap();
        let theirs = clang_text(&Place::new(), triple, &options, "kernels.hip");
        assert_eq!(entry_lines(&ours), entry_lines(&theirs), "{triple}");
    }
}

#[test]
fn clang_emits_the_same_for_openmp() {
    let options = ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", "--offload-host-only"];
    for triple in [LINUX, WINDOWS] {
        let theirs = clang_text(&Place::new(), triple, &options, "target.c");
        // The names have numbers of the file.
        let name = |end: &str| {
            let starts = theirs.match_indices("c\"__omp_offloading_").map(|(at, _)| at + 2);
            let mut names = starts.filter_map(|at| theirs[at..].split("\\00").next());
            names.find(|name| name.contains(end)).unwrap().to_owned()
        };
        let (region, indirect) = (name("_sum_"), name("_indirect_"));
        let [pointer, shared] = ["linked_decl_tgt_ref_ptr", "variable_decl_tgt_ref_ptr"];
        let list = [
            OffloadEntry::variable(shared, shared, 8),
            OffloadEntry::variable(pointer, pointer, 8).with_flags(EntryFlags::OPENMP_LINK),
            OffloadEntry::variable(&*indirect, "indirect", 8)
                .with_flags(EntryFlags::OPENMP_INDIRECT),
            OffloadEntry::kernel(&*region, format!(".{region}.region_id")),
            OffloadEntry::requires(8),
        ];
        // In clang's order.
        let mut list = list.map(|entry| {
            let module = entries(OffloadKind::OPENMP, triple, [entry.clone()]).module().unwrap();
            let text = module.ir_to_string(&[]).unwrap();
            let symbol = entry_lines(&text)[1].split_inclusive(" = ").next().unwrap().to_owned();
            (theirs.find(&symbol).unwrap(), entry)
        });
        list.sort_by_key(|(at, _)| *at);
        let module = entries(OffloadKind::OPENMP, triple, list.into_iter().map(|(_, entry)| entry));
        let ours = module.module().unwrap().ir_to_string(&[]).unwrap();
        assert_eq!(entry_lines(&ours), entry_lines(&theirs), "{triple}");
    }
}

/// Entries at addresses of the host that hold their names, for `wrapper/runtime.c`.
fn registered(kind: OffloadKind, abi: Abi) -> Vec<OffloadEntry<'static>> {
    let constant =
        if kind == OffloadKind::OPENMP { EntryFlags::OPENMP_LINK } else { EntryFlags::CONSTANT };
    let mut list = vec![
        OffloadEntry::kernel("kernel", "kernel_host"),
        OffloadEntry::variable("variable", "variable_host", 4),
    ];
    let is_new = matches!(abi, Abi::Llvm22 | Abi::Current | Abi::Llvm24);
    if abi != Abi::Aomp {
        list.push(OffloadEntry::variable("table", "table_host", 16).with_flags(constant));
    }
    if is_new && kind != OffloadKind::OPENMP {
        list.push(OffloadEntry::managed("pool", "pool_host", "pool_pointer", 8, 16));
    }
    if kind == OffloadKind::HIP {
        let flags = EntryFlags::TEXTURE | EntryFlags::NORMALIZED;
        list.push(
            OffloadEntry::variable("picture", "picture_host", 4).with_flags(flags).with_data(2),
        );
    }
    list
}

const HOST: &str = "
char kernel_host[] = \"kernel_host\", variable_host[] = \"variable_host\", table_host[] = \"table_host\";
char pool_host[] = \"pool_host\", pool_pointer[] = \"pool_pointer\", picture_host[] = \"picture_host\";
";

/// Text, bitcode and object are registered alike, whatever links them and drops what is not used.
#[test]
fn runtimes_get_the_entries() {
    for kind in [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP] {
        for abi in Abi::ALL {
            let target = || Target::new(LINUX).unwrap();
            let wrapper = Wrapper::new(kind, abi, target()).with_image(Image::from_bytes(IMAGE));
            let Ok(wrapper) = wrapper.module() else { continue };
            let place = Place::new();
            place.put("wrapper.o", wrapper.object().unwrap().to_vec(&[IMAGE]).unwrap());
            let list = registered(kind, abi);
            let module =
                Entries::new(kind, abi, target()).with_entries(list.clone()).module().unwrap();
            put_module(&place, &module);
            place.put("host.c", HOST);
            let clang = llvm("clang");
            let is_new = matches!(abi, Abi::Llvm22 | Abi::Current | Abi::Llvm24);
            let old = if is_new { "-DNEW" } else { "-DOLD_ENTRIES" };
            for (name, object) in [("runtime.c", "runtime.o"), ("main.c", "main.o")] {
                let options = ["-c", "-fPIC", "-DCUDA_MANAGED", old, &source(name), "-o", object];
                place.run(&clang, &options);
            }
            place.run(&clang, &["-c", "-fPIC", "-ffunction-sections", "-fdata-sections", "host.c"]);
            let llc = ["-filetype=obj", "-relocation-model=pic", "ours.ll", "-o", "text.o"];
            place.run(llvm("llc"), &llc);
            let lld = llvm("ld.lld");
            let mut logs = Vec::new();
            for (linker, entries) in [
                (Path::new("/usr/bin/ld.bfd"), "ours.o"),
                (&lld, "ours.o"),
                (&lld, "text.o"),
                (&lld, "-Wl,ours.bc"),
            ] {
                let linker = format!("--ld-path={}", linker.display());
                let mut arguments = vec![&linker[..], "-Wl,--gc-sections", "-pie", "-o", "program"];
                arguments.extend(wrapper.compiler_args());
                arguments.extend(["wrapper.o", entries, "host.o", "main.o", "runtime.o"]);
                place.run(&clang, &arguments);
                logs.push(place.run("./program", &[]));
                // Only what is retained satisfies a linker that is not told to keep the rest.
                if linker.ends_with("lld") && !matches!(abi, Abi::Aomp | Abi::Llvm18) {
                    arguments.retain(|argument| !argument.contains("nostart"));
                    place.run(&clang, &arguments);
                    logs.push(place.run("./program", &[]));
                }
            }
            let seen = &logs[0];
            assert!(logs.iter().all(|log| log == seen), "{kind} {abi}: {logs:#?}");
            let expected = match kind {
                OffloadKind::OPENMP => {
                    "  entry kernel at kernel_host\n  entry variable at variable_host\n"
                }
                OffloadKind::CUDA => "RegisterFunction handle kernel_host kernel kernel -1",
                _ => "RegisterFunction handle kernel_host kernel kernel -1",
            };
            assert!(seen.contains(expected), "{kind} {abi}: {seen}");
            let count = seen.matches("_host ").count() + seen.matches("_host\n").count();
            assert_eq!(count, list.len(), "{kind} {abi}: {seen}");
        }
    }
}

#[test]
fn tools_read_the_entries() {
    let place = Place::new();
    let mut count = 0;
    for kind in [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP] {
        for abi in Abi::ALL {
            for triple in [LINUX, WINDOWS, "aarch64-apple-darwin", "i386-linux-gnu"] {
                let target = Target::new(triple).unwrap();
                let list = registered(kind, abi);
                let Ok(module) =
                    Entries::new(kind, abi, target.clone()).with_entries(list).module()
                else {
                    continue;
                };
                put_module(&place, &module);
                place.run(llvm("llvm-as"), &["ours.ll", "-o", "theirs.bc"]);
                for bitcode in ["ours.bc", "theirs.bc"] {
                    place.run(llvm("opt"), &["-passes=verify", "-disable-output", bitcode]);
                    let text = place.run(llvm("llvm-dis"), &[bitcode, "-o", "-"]);
                    let text = text.split_once('\n').unwrap().1;
                    let ours = fs::read_to_string(place.path("ours.ll")).unwrap();
                    assert_eq!(text, ours, "{kind} {abi} {triple} {bitcode}");
                }
                let llc = ["-filetype=obj", "-relocation-model=pic", "ours.ll", "-o", "theirs.o"];
                place.run(llvm("llc"), &llc);
                if module.object().is_ok() && target.data_layout().contains("m:e") {
                    let ours = fs::read_to_string(place.path("ours.ll")).unwrap();
                    let variable = ours.lines().rfind(|line| line.ends_with(", align 8")).unwrap();
                    let (_, section) = variable.split_once(", section \"").unwrap();
                    let section = section.split_once('"').unwrap().0.to_owned();
                    let [ours, theirs] = ["ours.o", "theirs.o"].map(|name| {
                        sections(&place.run(llvm("llvm-readelf"), &["-SW", name]), &section)
                    });
                    assert_eq!(ours, theirs, "{kind} {abi} {triple}");
                    assert_eq!(ours.1, "WAR", "{kind} {abi} {triple}");
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, (6 + 6 + 5) + 2 * (5 + 5 + 5 + 2));
}

/// The size of all sections of a name together, and their flags, from a table of `readelf`.
fn sections(table: &str, name: &str) -> (u64, String) {
    let mut size = 0;
    let mut flags = String::new();
    for line in table.lines() {
        if let Some((_, fields)) = line.split_once(&format!(" {name} ")) {
            let fields: Vec<_> = fields.split_whitespace().collect();
            size += u64::from_str_radix(fields[3], 16).unwrap();
            fields[5].clone_into(&mut flags);
        }
    }
    (size, flags)
}

/// Without clang's entries, with ours: LLVM's runtime finds the target region.
#[test]
fn openmp_target_regions_run() {
    let place = Place::new();
    let clang = llvm("clang");
    let source = source("openmp.c");
    let openmp =
        ["-O1", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", "-fPIC", "-c", &source];
    place.run(&clang, &[&openmp[..], &["-o", "whole.o"]].concat());
    let host = ["-S", "-emit-llvm", "--offload-host-only", "-o", "host.ll"];
    place.run(&clang, &[&openmp[..4], &[&source], &host].concat());
    let text = fs::read_to_string(place.path("host.ll")).unwrap();
    let region = text.split("@.offloading.entry.__omp").nth(1).unwrap();
    let region = format!("__omp{}", region.split(' ').next().unwrap());

    let image = "--image=file=device.o,kind=openmp,triple=x86_64-pc-linux-gnu";
    place.run(llvm("llvm-offload-binary"), &["whole.o", image]);
    let shared = ["--target=x86_64-pc-linux-gnu", "-shared", "-Wl,-Bsymbolic", "device.o"];
    place.run(&clang, &[&shared[..], &["-o", "device"]].concat());
    let sections = ["--remove-section=llvm_offload_entries", "--remove-section=.llvm.offloading"];
    place.run(
        llvm("llvm-objcopy"),
        &[&sections[..], &["--strip-unneeded-symbol=.offloading.*"], &["-w", "whole.o", "host.o"]]
            .concat(),
    );

    let device = fs::read(place.path("device")).unwrap();
    let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, Target::new(LINUX).unwrap())
        .with_image(Image::from_bytes(&device))
        .module()
        .unwrap();
    place.put("wrapper.o", wrapper.object().unwrap().to_vec(&[&device]).unwrap());
    let list = [
        OffloadEntry::kernel(&*region, format!(".{region}.region_id")),
        OffloadEntry::variable("table", "table", 16),
    ];
    put_module(&place, &entries(OffloadKind::OPENMP, LINUX, list).module().unwrap());
    let library: PathBuf = llvm("clang").parent().unwrap().with_file_name("lib");
    let (search, path) =
        (format!("-L{}", library.display()), format!("-Wl,-rpath,{}", library.display()));
    let fixed = ["host.o", "wrapper.o", &search, &path, "-lomp", "-lomptarget", "-o", "program"];
    place.run(&clang, &[&fixed[..], &["ours.o"]].concat());
    assert_eq!(place.run("./program", &[]), "on the device: 30\n");
}

/// The bounds of a wrapper for Windows have the entries between them.
#[test]
fn bounds_on_windows_enclose_the_entries() {
    const PROGRAM: &str = "
char kernel_host, variable_host, table_host, pool_host, pool_pointer, picture_host;
int atexit(void (*f)(void)) { return 0; }
void __tgt_register_lib(void *d) {}
void __tgt_unregister_lib(void *d) {}
extern const char __start_llvm_offload_entries[], __stop_llvm_offload_entries[];
const char *volatile bounds[] = {\"BOUNDS!\", __start_llvm_offload_entries, __stop_llvm_offload_entries};
int mainCRTStartup(void) { return bounds[0] != 0; }
";
    for triple in [WINDOWS, "x86_64-w64-windows-gnu", "aarch64-pc-windows-msvc"] {
        let place = Place::new();
        let (kind, target) = (OffloadKind::OPENMP, Target::new(triple).unwrap());
        let wrapper = Wrapper::new(kind, Abi::Current, target).with_image(Image::from_bytes(IMAGE));
        let wrapper = wrapper.module().unwrap().object().unwrap().to_vec(&[IMAGE]).unwrap();
        place.put("wrapper.obj", wrapper);
        let list = registered(kind, Abi::Current);
        let size = 56 * u64::try_from(list.len()).unwrap();
        put_module(&place, &entries(kind, triple, list).module().unwrap());
        place.put("program.c", PROGRAM);
        let target = format!("--target={triple}");
        let clang =
            ["-c", "-ffreestanding", "-fno-builtin", "-w", "program.c", "-o", "program.obj"];
        place.run(llvm("clang"), &[&[&target[..]], &clang[..]].concat());
        place.run(llvm("llc"), &["-filetype=obj", "ours.ll", "-o", "text.obj"]);
        for entries in ["ours.o", "text.obj", "ours.bc"] {
            let objects = ["program.obj", "wrapper.obj", entries];
            if triple.ends_with("msvc") {
                let fixed = ["/nodefaultlib", "/subsystem:console", "/entry:mainCRTStartup"];
                let fixed = [&fixed[..], &["/opt:ref", "/out:program.exe"]].concat();
                place.run(llvm("lld-link"), &[&fixed[..], &objects].concat());
            } else {
                let fixed = ["-m", "i386pep", "--subsystem", "console", "-e", "mainCRTStartup"];
                let fixed = [&fixed[..], &["--gc-sections", "-o", "program.exe"]].concat();
                place.run(llvm("ld.lld"), &[&fixed[..], &objects].concat());
            }
            let program = fs::read(place.path("program.exe")).unwrap();
            assert_eq!(between_bounds(&program), size, "{triple} {entries}");
        }
    }
}

/// Returns the number of bytes between the two pointers in `bounds` of the program.
fn between_bounds(program: &[u8]) -> u64 {
    let long = |at: usize| u64::from_le_bytes(program[at..at + 8].try_into().unwrap());
    let base = 0x1_4000_0000..0x1_4100_0000_u64;
    // {images, start, stop}: the pointers of the descriptor are between the same bounds.
    let pairs = (0..program.len() - 16).step_by(8).map(|at| (long(at), long(at + 8)));
    let mut between = pairs
        .filter(|(start, stop)| base.contains(start) && base.contains(stop) && start < stop)
        .map(|(start, stop)| stop - start)
        .filter(|size| size % 56 == 0);
    between.next().unwrap()
}
