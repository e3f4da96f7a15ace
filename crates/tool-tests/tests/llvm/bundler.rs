//! `clang-offload-bundler` of LLVM 22 and ours, with the same arguments in the same places: the same words, files,
//! bytes and exit status. [`harness::DIFFERENCES`] and [`ODDITIES`] list the intended differences, with reasons.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#[path = "../llvm_bundler/files.rs"]
mod files;
#[path = "../llvm_bundler/generate.rs"]
mod generate;
#[path = "../llvm_bundler/harness.rs"]
mod harness;
#[path = "../llvm_bundler/oddities.rs"]
mod oddities;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Random, is_object_form};
use files::{TARGETS, case, inputs, line};
use generate::{Bundling, Chance, bundling, listing, unbundling};
use harness::{Outcome, VARIABLES, all, both, compare, ours, run, succeeds, theirs};
use oddities::ODDITIES;

#[derive(Default)]
struct Counts {
    made: AtomicUsize,
    refused: AtomicUsize,
    taken_apart: AtomicUsize,
    missing: AtomicUsize,
    listed: AtomicUsize,
    compressed: AtomicUsize,
    object_form: AtomicUsize,
}

fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// One bundle made by both, listed and taken apart by both.
fn round_trip(seed: u64, counts: &Counts) -> Result<(), String> {
    let random = &mut Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let Bundling { file_type, targets, case, output } = bundling(random);
    let (their, our) = compare(&case)?;
    if their.status != Some(0) || our.status != Some(0) {
        add(&counts.refused);
        return Ok(());
    }
    add(&counts.made);
    let made = |outcome: &Outcome| match &output {
        Some(name) => outcome.bytes(name).to_vec(),
        None => outcome.stdout.clone(),
    };
    let (their, our) = (made(&their), made(&our));
    if their.starts_with(b"CCOB") {
        add(&counts.compressed);
    }
    if file_type == "o" && is_object_form(&their) {
        add(&counts.object_form);
    }
    // Equal bytes need not be read twice.
    let bundles = if their == our { vec![their] } else { vec![their, our] };
    let mut theirs_of_each = Vec::new();
    for bundle in bundles {
        let random = &mut random.clone();
        let case = unbundling(random, file_type, &targets, &bundle);
        let (theirs, _) = compare(&case)?;
        add(if succeeds(&theirs) { &counts.taken_apart } else { &counts.missing });
        if random.one_in(2) {
            compare(&listing(random, file_type, &bundle))?;
            add(&counts.listed);
        }
        // From objects of COFF, LLVM does not give back what they were made of.
        let files = theirs.files.into_iter().filter(|(name, (_, bytes))| {
            name.starts_with("out") && !bytes.starts_with(b"\x64\x86")
        });
        theirs_of_each.push((theirs.status, files.collect::<Vec<_>>()));
    }
    if theirs_of_each.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("LLVM gets something else from our bundle: {:?}", case.args));
    }
    Ok(())
}

#[test]
fn bundles_lists_and_unbundles_as_llvm_does() {
    let counts = Counts::default();
    let cases = match std::env::var("CASE") {
        Ok(case) => case.parse().unwrap()..case.parse::<usize>().unwrap() + 1,
        Err(_) if samples::faulty::is_thorough() => 0..320,
        Err(_) => 0..160,
    };
    all(cases.clone(), |nth| round_trip(nth as u64, &counts));
    let said: Vec<_> = [
        ("made", &counts.made, 200),
        ("refused", &counts.refused, 40),
        ("taken apart", &counts.taken_apart, 120),
        ("missing", &counts.missing, 20),
        ("listed", &counts.listed, 80),
        ("compressed", &counts.compressed, 40),
        ("object form", &counts.object_form, 20),
    ]
    .into_iter()
    // The numbers are those of 320 cases.
    .map(|(name, counter, least)| {
        (name, counter.load(Ordering::Relaxed), least * cases.len() / 320)
    })
    .collect();
    println!("{said:?}");
    assert!(cases.len() == 1 || said.iter().all(|(_, count, least)| count >= least), "{said:?}");
}

/// Runs the command lines of a file.
fn lines(text: &str) {
    let lines: Vec<_> =
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    all(0..lines.len(), |nth| {
        let text = if lines[nth] == "(none)" { "" } else { lines[nth] };
        compare(&line(text)).map(|_| ())
    });
}

#[test]
fn errors_have_the_same_words() {
    lines(include_str!("../llvm_bundler/misuse.txt"));
}

#[test]
fn corner_cases_end_alike() {
    lines(include_str!("../llvm_bundler/corners.txt"));
}

#[test]
fn archives_are_unbundled_alike() {
    lines(include_str!("../llvm_bundler/archives.txt"));
}

#[test]
fn environment_variables_mean_the_same() {
    let bundle = "-type=bc -targets=H,D -input=in/text0 -input=in/large -output=out";
    let mut commands = Vec::new();
    let values = ["", "0", "1", "2", "3", "02", "0x2", "4", "-1", "9", "true", "65536", "2 "];
    for variable in VARIABLES {
        for value in values.into_iter().chain(["99999999999"]) {
            commands.push((vec![(variable, value)], format!("{bundle} -verbose -compress")));
        }
    }
    let list = "-type=bc -list -input=bundle.ccob";
    for value in ["1", "0", "2", "x"] {
        let compress = ("OFFLOAD_BUNDLER_COMPRESS", value);
        let verbose = ("OFFLOAD_BUNDLER_VERBOSE", value);
        let level = ("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value);
        let version = ("COMPRESSED_BUNDLE_FORMAT_VERSION", value);
        for options in ["", " -compress=false", " -compress"] {
            commands.push((vec![compress], format!("{bundle}{options}")));
        }
        for variable in VARIABLES {
            commands.push((vec![(variable, value)], list.to_owned()));
        }
        commands.push((vec![verbose], format!("{list} -verbose=0")));
        let options = "-verbose -compress -compression-level=5";
        for line in [&format!("{bundle} {options}"), "-bogus", "--help"] {
            commands.push((vec![level, version], line.to_owned()));
        }
        let ignored = ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1");
        commands.push((vec![ignored, compress, verbose, level, version], bundle.to_owned()));
    }
    all(0..commands.len(), |nth| {
        let (variables, text) = &commands[nth];
        let mut case = line(text);
        case.env = variables.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        compare(&case).map(|_| ())
    });
}

#[test]
fn help_is_laid_out_alike() {
    lines(
        "-help\n\
         --help\n\
         -help-list\n\
         -type=o -h\n\
         -help -bogus\n\
         -bogus -help\n\
         -list -help\n\
         -print-options -type=o -list -input=in/empty\n\
         -print-all-options -type=o -list -input=in/empty\n\
         -print-options -type=s -targets=H -input=in/text0 -output=out -bundle-align=4 -compression-level=3 -compress\n\
         -print-options=0 -type=o -list -input=in/empty",
    );
    for option in ["--help-hidden", "--help-list-hidden"] {
        // Ours has two options more.
        let (their, our) = both(&case(option));
        let lines = |outcome: &Outcome| -> Vec<String> {
            let text = String::from_utf8(outcome.stdout.clone()).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        let (their, our) = (lines(&their), lines(&our));
        let is_own =
            |line: &str| ["--debug-only", "--release=<22|23>"].iter().any(|own| line.contains(own));
        let common: Vec<_> = our.iter().filter(|line| !is_own(line)).collect();
        assert_eq!(common, their.iter().collect::<Vec<_>>());
        assert_eq!(our.len(), their.len() + 2);
    }
    // The vendor and the release are those of the tool.
    let (their, our) = both(&case("--version"));
    assert_eq!(our.status, Some(0));
    for outcome in [their, our] {
        let text = String::from_utf8(outcome.stdout).unwrap();
        assert!(text.contains("clang-offload-bundler version "), "{text}");
    }
}

#[test]
fn oddities_end_as_listed() {
    all(0..ODDITIES.len(), |nth| {
        let (text, theirs, ours, reason) = ODDITIES[nth];
        let case = line(text);
        let (their, our) = both(&case);
        if !theirs.is_that_of(&their) {
            return Err(format!("{text}\nLLVM does not end with {theirs:?}: {their:?}"));
        }
        let dry = case.args[0] == "-###";
        if !ours.is_that_of(&our)
            || ((our.status == Some(1) || dry) && !our.new_files(&case).is_empty())
        {
            return Err(format!("{text}: {reason}\nours does not end with {ours:?}: {our:?}"));
        }
        Ok(())
    });
}

#[test]
fn one_entry_serves_several_requests() {
    // LLVM hands out what it meets first, and each entry once.
    let any = "hip-amdgcn-amd-amdhsa--gfx906";
    let exact = "hip-amdgcn-amd-amdhsa--gfx906:xnack+";
    let other = "hip-amdgcn-amd-amdhsa--gfx906:xnack-";
    let mut made = case("-type=bc -input=in/text0 -input=in/text1 -output=out");
    made.args.push(format!("-targets={},{any}", TARGETS[0].1));
    let bundle = run(&ours(), &made).bytes("out").to_vec();
    let mut asked = case("-type=bc -unbundle -input=bundle -output=a -output=b");
    asked.args.push(format!("-targets={exact},{other}"));
    asked.files.insert("bundle".to_owned(), bundle);
    let (their, our) = both(&asked);
    assert_eq!(their.status, Some(1), "{their:?}");
    assert_eq!(our.status, Some(0), "{our:?}");
    let image = fs::read(inputs().join("text1")).unwrap();
    assert!(our.bytes("a") == image && our.bytes("b") == image);
}

#[test]
fn one_zero_byte_for_a_device_is_not_a_host() {
    let bundle =
        run(&theirs(), &line("-type=o -targets=H,D -input=in/host.o -input=in/zero -output=out"));
    let mut asked = line("-type=o -unbundle -targets=H,D -input=bundle -output=a -output=b");
    asked.files.insert("bundle".to_owned(), bundle.bytes("out").to_vec());
    let (their, our) = both(&asked);
    assert_eq!((their.bytes("b").len(), our.bytes("b")), (their.bytes("a").len(), &[0][..]));
    assert_eq!(their.bytes("a"), our.bytes("a"));
}
