//! The cost of files that are made to cost much: `cargo run --release -p offload-benches --bin hostile`. With words after
//! `--`, only the inputs whose names contain one of them; `write NAME KIB PATH` writes one.
//!
//! Each input is made in sizes of N, 2 N, 4 N and 8 N, and read by a tool or, through this program, by a library. The
//! exponent says how time, of all cores, and memory grow from 2 N to 8 N, less what the tool takes for nothing: 1 is
//! linear. Where LLVM's tool reads the same input, its time for 8 N stands beside it.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use offload_benches::{Outcome, PATIENCE, Sample, build, child, hostile, limited, llvm};

/// Runs of each, of which the fastest counts.
const RUNS: usize = 3;
/// Time growing faster than this, for large inputs, is not linear.
const LINEAR: f64 = 1.2;
/// Seconds below which nothing can be said.
const MEASURABLE: f64 = 0.05;

const KIB: usize = 1 << 10;

struct Case {
    name: &'static str,
    make: fn(usize) -> Vec<u8>,
    /// The smallest size.
    start: usize,
    /// A tool and its arguments. `{}` is the input, `{out}` an output.
    ours: &'static [&'static str],
    theirs: &'static [&'static str],
}

/// The input of the case before.
const SAME: &str = "the same";

const LIST: &[&str] = &["clang-offload-bundler", "--list", "--type=o", "--input={}"];
const LIST_TEXT: &[&str] = &["clang-offload-bundler", "--list", "--type=s", "--input={}"];
const UNBUNDLE: &[&str] = &[
    "clang-offload-bundler",
    "--type=a",
    "--unbundle",
    "--targets=hip-amdgcn-amd-amdhsa--gfx906",
    "--input={}",
    "--output={out}",
    "--allow-missing-bundles",
];
const UNBUNDLE_HOST: &[&str] = &[
    "clang-offload-bundler",
    "--type=a",
    "--unbundle",
    "--targets=host-x86_64-unknown-linux-gnu",
    "--input={}",
    "--output={out}",
];
const DUMP: &[&str] = &["llvm-objdump", "--offloading", "{}"];
const READOBJ: &[&str] = &["llvm-readobj", "--offloading", "{}"];
const IMAGES: &[&str] = &["llvm-offload-binary", "{}", "--image=arch=gfx906,file={out}"];
const LS: &[&str] = &["offload", "ls", "{}"];
const JSON: &[&str] = &["offload", "ls", "--json", "{}"];
const VERIFY: &[&str] = &["offload", "verify", "{}"];
const MATCH: &[&str] = &["offload", "match", "--gpu", "gfx90a:xnack+", "{}"];
const MATCH_906: &[&str] = &["offload", "match", "--gpu", "gfx906", "{}"];
const EXTRACT: &[&str] = &["offload", "extract", "{}", "-o", "{out}"];
const THIN: &[&str] =
    &["offload", "thin", "--keep", "gfx90a", "--exact", "--allow-missing", "{}", "-o", "{out}"];
const NOTHING: &[&str] = &[];

/// A library's reader: this program, see [`read`].
const fn case(
    name: &'static str,
    make: fn(usize) -> Vec<u8>,
    kib: usize,
    ours: &'static [&'static str],
    theirs: &'static [&'static str],
) -> Case {
    Case { name, make, start: kib * KIB, ours, theirs }
}

fn one_id(n: usize) -> Vec<u8> {
    let features: String = (0..n / 9).map(|i| format!(":f{i:06}+")).collect();
    format!("hip-amdgcn-amd-amdhsa--gfx906{features}").into_bytes()
}

fn one_triple(n: usize) -> Vec<u8> {
    format!("hip-{}", "x-".repeat(n / 2)).into_bytes()
}

fn cases() -> Vec<Case> {
    use hostile as h;
    vec![
        case("target ID of many features", one_id, 64, &["read", "target-id", "{}"], NOTHING),
        case("entry ID of many fields", one_triple, 256, &["read", "target-id", "{}"], NOTHING),
        case("bundle, unknown processors", h::bundle_of_unknown_processors, 512, LS, LIST),
        case(SAME, h::bundle_of_unknown_processors, 512, JSON, NOTHING),
        case(SAME, h::bundle_of_unknown_processors, 512, MATCH, NOTHING),
        case(SAME, h::bundle_of_unknown_processors, 512, THIN, NOTHING),
        case(SAME, h::bundle_of_unknown_processors, 128, EXTRACT, NOTHING),
        case("bundle, equal IDs", h::bundle_of_equal_ids, 512, VERIFY, LIST),
        case("bundle, conflicting IDs", h::bundle_of_conflicts, 512, VERIFY, LIST),
        case("bundle, IDs of 180 features", h::bundle_of_features, 512, VERIFY, LIST),
        case("bundle, the best entry last", h::bundle_with_the_best_last, 512, MATCH, NOTHING),
        case("bundle, one long ID", h::bundle_of_long_and_short_ids, 256, LS, LIST),
        case("empty bundles", h::bundles_in_a_row, 512, VERIFY, LIST),
        case("bundles 64 deep", h::bundles_in_bundles, 512, VERIFY, NOTHING),
        case("magics", h::magics, 512, VERIFY, LIST),
        case("text bundle, short entries", h::text_bundle_of_entries, 512, LS, LIST_TEXT),
        case(SAME, h::text_bundle_of_entries, 512, THIN, NOTHING),
        case("text bundle, open entries", h::text_without_ends, 512, VERIFY, LIST_TEXT),
        case("text bundle, a line of markers", h::text_of_long_lines, 512, VERIFY, LIST_TEXT),
        case(
            "compressed bundles that claim 4 GiB",
            h::compressed_headers_in_a_row,
            512,
            VERIFY,
            LIST,
        ),
        case("compressed bundles, wrong hashes", h::promises, 1, VERIFY, NOTHING),
        case("zlib, 1000 times its size", h::zlib_bomb, 16, VERIFY, LIST),
        case("Zstandard, 1000 times the bytes", h::zstd_bomb, 16, VERIFY, LIST),
        case("packages", h::packages_in_a_row, 512, LS, IMAGES),
        case(SAME, h::packages_in_a_row, 512, MATCH_906, NOTHING),
        case(SAME, h::packages_in_a_row, 512, THIN, NOTHING),
        case(
            "packages in packages",
            h::packages_in_packages,
            256,
            &["llvm-offload-binary", "{}"],
            NOTHING,
        ),
        case("package of many strings", h::package_of_strings, 512, VERIFY, IMAGES),
        case(SAME, h::package_of_strings, 512, &["read", "convert", "{}"], NOTHING),
        case("package of many entries (version 2)", h::package_of_entries, 512, MATCH, NOTHING),
        case("NVIDIA fatbinary, empty entries", h::fatbinary_of_empty_entries, 512, LS, NOTHING),
        case("archive, empty members", h::archive_of_empty_members, 1024, VERIFY, READOBJ),
        case("archive, an index of one member", h::archive_with_one_symbol, 1024, THIN, READOBJ),
        case("archive, bundles", h::archive_of_bundles, 512, UNBUNDLE, UNBUNDLE),
        case(SAME, h::archive_of_bundles, 512, THIN, NOTHING),
        case(
            "archive, a long name around bundles",
            h::archive_with_a_long_name,
            512,
            THIN,
            NOTHING,
        ),
        case("archives 64 deep", h::archive_of_archives, 1024, VERIFY, READOBJ),
        case("thin archive of itself", h::thin_archive, 4, VERIFY, NOTHING),
        case("ELF, sections with packages", h::elf_of_packages, 512, LS, DUMP),
        case("ELF, sections with bundles", h::elf_with_bundles, 512, LS, DUMP),
        case(SAME, h::elf_with_bundles, 512, THIN, NOTHING),
        case("ELF, sections that stand for it", h::elf_of_hosts, 128, UNBUNDLE_HOST, UNBUNDLE_HOST),
        case(
            "ELF in an archive, symbols of one name",
            h::elf_with_long_symbols,
            128,
            UNBUNDLE,
            UNBUNDLE,
        ),
        case("COFF, sections with empty bundles", h::coff_of_sections, 512, VERIFY, READOBJ),
        case("COFF, sections with bundles", h::coff_with_bundles, 512, THIN, READOBJ),
        case("PE, blocks of relocations", h::pe_of_relocations, 512, THIN, READOBJ),
        case("Mach-O, commands", h::macho_of_commands, 512, VERIFY, READOBJ),
        case("Mach-O, sections", h::macho_of_sections, 512, VERIFY, READOBJ),
        case("Mach-O, slices", h::universal_of_slices, 512, VERIFY, READOBJ),
        case("WebAssembly, custom sections", h::wasm_of_sections, 512, LS, READOBJ),
        case(SAME, h::wasm_of_sections, 512, THIN, NOTHING),
        case("bitcode, globals", h::bitcode_globals, 512, VERIFY, IMAGES),
        case("bitcode, modules", h::bitcode_modules, 512, VERIFY, IMAGES),
        case("bitcode, abbreviations", h::bitcode_abbreviations, 512, VERIFY, IMAGES),
        case("bitcode, arrays", h::bitcode_arrays, 512, VERIFY, IMAGES),
        case("bitcode, blocks in blocks", h::bitcode_nested_blocks, 512, VERIFY, IMAGES),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [read_, what, path] = &words[..]
        && read_ == "read"
    {
        return read(what, Path::new(path));
    }
    if let [write_, what, kib, path] = &words[..]
        && write_ == "write"
    {
        let case = cases().into_iter().find(|case| case.name == what).ok_or("no such input")?;
        return Ok(fs::write(path, (case.make)(kib.parse::<usize>()? * KIB))?);
    }
    if child()? {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    build(&["offload", "clang-offload-bundler", "llvm-offload-binary"])?;
    // Some tools write where they are.
    std::env::set_current_dir(place.path())?;
    println!("| input | read by | size | time | grows as | memory | grows as | LLVM 22 |");
    println!("|---|---|---:|---:|---:|---:|---:|---|");
    let mut name = "";
    for case in cases() {
        name = if case.name == SAME { name } else { case.name };
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            println!("{}", row(&case, place.path())?);
        }
    }
    Ok(())
}

/// A line of the table.
fn row(case: &Case, place: &Path) -> Result<String, Box<dyn Error>> {
    let (nothing, _) = limited(&ours("offload")?, &["--version".into()])?;
    let mut sizes = Vec::new();
    let mut samples: Vec<Sample> = Vec::new();
    let mut outcome = Outcome::Exit(0);
    let path = place.join("input");
    for factor in [1, 2, 4, 8] {
        let bytes = (case.make)(case.start * factor);
        sizes.push(bytes.len());
        fs::write(&path, &bytes)?;
        fs::write(place.join("member"), &bytes)?;
        let (tool, args) = command(case.ours, place)?;
        let tool = ours(tool)?;
        let mut best: Option<Sample> = None;
        for _ in 0..RUNS {
            let (taken, how) = limited(&tool, &args)?;
            outcome = how;
            best = Some(best.filter(|best| best.1 <= taken.1).unwrap_or(taken));
            // One run of what takes long is enough.
            if taken.0 > 2.0 {
                break;
            }
        }
        samples.extend(best);
        if outcome == Outcome::Timeout {
            break;
        }
    }
    let theirs = match command(case.theirs, place) {
        Ok((tool, args)) => match llvm(tool) {
            Some(tool) => {
                let (taken, how) = limited(&tool, &args)?;
                format!("{}{}", milliseconds(taken.1), how.text())
            }
            None => "not installed".to_owned(),
        },
        Err(_) => String::new(),
    };
    let (Some(last), Some(before), Some(size)) =
        (samples.last(), samples.iter().rev().nth(2), sizes.last())
    else {
        return Ok(format!("| {} | | | more than {PATIENCE} s | | | | {theirs} |", case.name));
    };
    let time = exponent(last.1 - nothing.1, before.1 - nothing.1);
    let memory = exponent(last.2 - nothing.2, before.2 - nothing.2);
    let verdict = if time > LINEAR && last.1 > MEASURABLE { " (!)" } else { "" };
    Ok(format!(
        "| {} | `{}` | {} | {}{} | {time:.2}{verdict} | {} | {memory:.2} | {theirs} |",
        case.name,
        case.ours.iter().take(2).copied().collect::<Vec<_>>().join(" ").replace(" {}", ""),
        mebibytes(*size as f64),
        milliseconds(last.1),
        outcome.text(),
        mebibytes(last.2 * 1024.0),
    ))
}

/// Returns the exponent of growth over two doublings, 0 for values too small to be measured.
fn exponent(last: f64, before: f64) -> f64 {
    if last < 1e-3 { 0.0 } else { (last / before.max(1e-4)).log2() / 2.0 }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1e3)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// Returns the path of a tool of ours.
fn ours(tool: &str) -> Result<PathBuf, Box<dyn Error>> {
    let this = std::env::current_exe()?;
    Ok(if tool == "read" { this } else { this.with_file_name(tool) })
}

/// A tool with its arguments.
fn command(
    words: &'static [&'static str],
    place: &Path,
) -> Result<(&'static str, Vec<OsString>), Box<dyn Error>> {
    let (tool, args) = words.split_first().ok_or("no tool")?;
    let input = place.join("input").display().to_string();
    // A directory for those that make one.
    let out = place.join(if args.contains(&"extract") { "directory" } else { "output" });
    let out = out.display().to_string();
    let words = if *tool == "read" { words } else { args };
    let args = words.iter().map(|word| word.replace("{}", &input).replace("{out}", &out).into());
    Ok((tool, args.collect()))
}

/// Has a library read a file.
fn read(what: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let bytes = fs::read(path)?;
    match what {
        "target-id" => {
            let text = String::from_utf8(bytes)?;
            if let Ok(id) = bundle_format::EntryId::parse(&text) {
                let target = id.target();
                let verdict = target_id::compatible(&target, &target);
                let conflicts = target_id::conflicts(&[target.clone(), target]);
                println!("{} {} {}", id.canonical().len(), verdict, conflicts.len());
            }
        }
        "convert" => {
            for version in [offload_binary::FormatVersion::V2, offload_binary::FormatVersion::V1] {
                let converted = offload_binary::convert(&bytes, version)?;
                println!("{}", converted.len());
            }
        }
        _ => return Err("no such reader".into()),
    }
    Ok(())
}
