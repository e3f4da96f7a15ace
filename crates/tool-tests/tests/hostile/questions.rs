//! Questions to the tools about a file: the same for LLVM's and ours.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use std::path::PathBuf;

use samples::bundle::{GFX90A, GFX906, HOST};

use crate::common::{Row, llvm, tool};
use crate::hostile::{Form, Held, Hostile, Truth};
use crate::judge::Claim;
use crate::runs::{End, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Llvm,
    Ours,
}

/// Way to read an answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Success or not.
    Status,
    /// An ID in each line.
    Lines,
    /// These IDs into the files `out0`, `out1` ...
    Outputs(Vec<String>),
    /// All images into files.
    Files,
    /// `arch` and its value in a line of each image.
    Archs,
    /// ID, tab, URI with offset and size; whether these are those of the file.
    Places(bool),
    /// A bundle.
    Bundled,
    /// `offload ls --json`.
    Rows,
    /// `offload extract`: files with the number of the image.
    Numbered,
    /// `offload thin`: a file, if it succeeds.
    Thinned,
}

#[derive(Clone, Debug)]
pub struct Question {
    pub side: Side,
    /// The tool, and what it is asked.
    pub name: &'static str,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub answer: Answer,
}

fn ours(name: &str) -> PathBuf {
    PathBuf::from(tool(name))
}

const BUNDLER: &str = "clang-offload-bundler";
const BINARY: &str = "llvm-offload-binary";

/// All that is asked about a file.
pub fn questions(file: &Hostile) -> Vec<Question> {
    let mut all = Vec::new();
    let mut both = |name: &'static str, tool: &str, args: &[&str], answer: &Answer| {
        for (side, program) in [(Side::Llvm, llvm(tool)), (Side::Ours, ours(tool))] {
            let args = args.iter().map(|&arg| arg.to_owned()).collect();
            all.push(Question { side, name, program, args, answer: answer.clone() });
        }
    };
    if file.form == Form::Targets {
        let inputs = file.name.split(',').map(|_| "-input=input").take(1000);
        let targets = format!("-targets={}", file.name);
        let mut args = vec!["-type=bc", &targets, "-output=bundle"];
        args.extend(inputs);
        both("clang-offload-bundler -targets", BUNDLER, &args, &Answer::Bundled);
        return all;
    }
    let file_type = match file.form {
        Form::Bundle | Form::CompressedBundle => Some("bc"),
        Form::Text => Some("s"),
        Form::ObjectSections => Some("o"),
        _ => None,
    };
    if let Some(file_type) = file_type.filter(|_| !file.sound_outside) {
        let file_type = format!("-type={file_type}");
        both(
            "clang-offload-bundler -list",
            BUNDLER,
            &[&file_type, "-list", "-input=input"],
            &Answer::Lines,
        );
        let ids = wanted(file);
        if !ids.is_empty() {
            let mut args = vec![file_type, "-unbundle".into(), "-input=input".into()];
            args.push(format!("-targets={}", ids.join(",")));
            args.extend((0..ids.len()).map(|n| format!("-output=out{n}")));
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            both("clang-offload-bundler -unbundle", BUNDLER, &args, &Answer::Outputs(ids));
        }
    }
    if file.form == Form::DeviceArchive {
        let targets = "-targets=hipv4-amdgcn-amd-amdhsa--gfx906";
        let args = ["-type=a", "-unbundle", "-input=input", targets, "-output=out.a"];
        both("clang-offload-bundler -type=a", BUNDLER, &args, &Answer::Status);
    }
    if matches!(file.form, Form::Package | Form::PackageObject | Form::Archive | Form::Bitcode) {
        both("llvm-offload-binary", BINARY, &["input", "--image=no-such-key"], &Answer::Files);
    }

    let mut theirs = |name: &'static str, tool: &str, args: &[&str], answer: Answer| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        all.push(Question { side: Side::Llvm, name, program: llvm(tool), args, answer });
    };
    let mut offloading = |objdump: Answer, readobj: Option<Answer>| {
        theirs("llvm-objdump --offloading", "llvm-objdump", &["--offloading", "input"], objdump);
        if let Some(answer) = readobj {
            theirs("llvm-readobj --offloading", "llvm-readobj", &["--offloading", "input"], answer);
        }
    };
    match file.form {
        Form::Package | Form::PackageObject | Form::Archive => offloading(Answer::Archs, None),
        Form::BundleElf => offloading(Answer::Files, Some(Answer::Places(true))),
        Form::CompressedElf if matches!(file.truth, Truth::Holds(_)) => {
            offloading(Answer::Files, Some(Answer::Places(false)));
        }
        // It writes the wrong bytes of any compressed bundle: once is enough to say so.
        Form::CompressedElf => offloading(Answer::Status, Some(Answer::Places(false))),
        Form::Other => offloading(Answer::Status, Some(Answer::Status)),
        _ => {}
    }
    if matches!(file.form, Form::Package | Form::PackageObject | Form::Archive | Form::Bitcode) {
        let args = [
            "--dry-run",
            "--host-triple=x86_64-unknown-linux-gnu",
            "--linker-path=/bin/true",
            "--whole-archive",
            "input",
            "-o",
            "linked",
        ];
        theirs("clang-linker-wrapper", "clang-linker-wrapper", &args, Answer::Status);
    }
    if matches!(file.form, Form::Archive | Form::DeviceArchive) && !file.sound_outside {
        theirs("llvm-ar t", "llvm-ar", &["t", "input"], Answer::Status);
    }

    let mut of_ours = |name: &'static str, tool: &str, args: &[&str], answer: Answer| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        all.push(Question { side: Side::Ours, name, program: ours(tool), args, answer });
    };
    if file.form == Form::DeviceArchive && !file.sound_outside {
        // LLVM's says nothing about any archive.
        let args = ["-type=a", "-list", "-input=input"];
        of_ours("clang-offload-bundler -type=a -list", BUNDLER, &args, Answer::Status);
    }
    let mut offload = |name: &'static str, args: &[&str], answer: Answer| {
        of_ours(name, "offload", args, answer);
    };
    offload("offload ls", &["ls", "--json", "--formats", "input"], Answer::Rows);
    offload("offload verify", &["verify", "input"], Answer::Status);
    offload("offload kernels", &["kernels", "input"], Answer::Status);
    offload("offload size", &["size", "--by", "kernel", "input"], Answer::Status);
    // As stored: the truth concerns bytes of the file.
    offload("offload extract", &["extract", "input", "-o", "out", "--as-stored"], Answer::Numbered);
    offload("offload match", &["match", "--gpu", "gfx906", "input"], Answer::Status);
    offload(
        "offload thin",
        &["thin", "input", "--keep", "gfx906", "-o", "thinned"],
        Answer::Thinned,
    );
    all
}

/// The IDs to ask for.
fn wanted(file: &Hostile) -> Vec<String> {
    let known = [HOST, GFX906, GFX90A];
    let there = |id: &&str| match &file.truth {
        Truth::Holds(held) => held.iter().any(|image| !image.inner && image.id == **id),
        _ => true,
    };
    // The host of an object is the object without the sections: not an image.
    let known = if file.form == Form::ObjectSections { &known[1..] } else { &known[..] };
    known.iter().filter(|id| there(id)).map(|&id| id.to_owned()).collect()
}

impl Question {
    /// Returns the claim of a successful run.
    pub fn claim(&self, file: &Hostile, run: &Run) -> Claim {
        let stdout = String::from_utf8_lossy(&run.stdout);
        match &self.answer {
            Answer::Status => Claim::Nothing,
            Answer::Lines => Claim::Ids(stdout.lines().map(str::to_owned).collect()),
            Answer::Outputs(ids) => {
                let outputs = ids.iter().enumerate().map(|(n, id)| {
                    (id.clone(), run.files.get(&format!("out{n}")).cloned().unwrap_or_default())
                });
                Claim::Some(outputs.collect())
            }
            Answer::Files => Claim::Bytes(run.files.values().cloned().collect()),
            Answer::Archs => {
                let archs = stdout.lines().filter_map(|line| line.strip_prefix("arch"));
                Claim::Ids(archs.map(|arch| arch.trim().to_owned()).collect())
            }
            Answer::Places(are_of_file) => places(file, &stdout, *are_of_file),
            Answer::Bundled => {
                let bundle = run.files.get("bundle").map_or(&[][..], |bytes| bytes);
                let (images, _) = crate::library::walked(bundle, &[]);
                Claim::All(images.into_iter().map(|image| image.held).collect())
            }
            Answer::Rows => match crate::common::try_rows::<Row>(&run.stdout) {
                Ok(rows) => rows_of(file, &rows),
                Err(error) => Claim::Nonsense(error.to_string()),
            },
            Answer::Numbered => Claim::Substance(run.files.values().cloned().collect()),
            Answer::Thinned => match run.files.get("thinned") {
                None => Claim::Nonsense("no file".into()),
                Some(thinned) => {
                    let (images, errors) = crate::library::walked(thinned, &file.beside);
                    // An image that stays is malformed afterwards if it was before.
                    let before = crate::library::walked(&file.bytes, &file.beside).1;
                    match (&file.truth, errors.first()) {
                        (_, Some(error)) if before.is_empty() => Claim::Nonsense(error.clone()),
                        (Truth::Holds(_), _) => {
                            // Images that hold others are thinned, too.
                            let whole = |image: &Held| {
                                let format = fat_object::FileFormat::sniff(&image.bytes);
                                !image.inner && !format.may_hold_images()
                            };
                            let images = images.into_iter().map(|image| image.held).filter(whole);
                            Claim::Some(images.map(|image| (image.id, image.bytes)).collect())
                        }
                        _ => Claim::Nothing,
                    }
                }
            },
        }
    }

    /// Checks that a complaint is one line for each problem, which names the file and a place in it; returns the reason
    /// if not.
    pub fn complaint(&self, run: &Run) -> Result<(), String> {
        let both = format!("{}{}", run.stderr, String::from_utf8_lossy(&run.stdout));
        let stated = if self.name == "offload verify" { &both } else { &run.stderr };
        if run.end == End::Exit(0) {
            return Ok(());
        }
        let name = self.program.display().to_string();
        let tool = if self.name.starts_with("offload ") { "offload" } else { &name };
        for line in run.stderr.lines() {
            let known = ["error: ", "warning: ", "note: "];
            let rest = line.strip_prefix(tool).and_then(|line| line.strip_prefix(": "));
            if !rest.is_some_and(|rest| known.iter().any(|known| rest.starts_with(known))) {
                return Err(format!("a line that is none of a message: {line:?}"));
            }
        }
        let places = ["byte 0x", "byte ", "entry ", "0x"];
        // A file that cannot be edited need not be malformed.
        let anywhere = self.name == "offload thin";
        let at_a_place = |line: &str| anywhere || places.iter().any(|place| line.contains(place));
        let good = |line: &str| line.contains("input") && at_a_place(line);
        if stated.lines().any(good) {
            Ok(())
        } else {
            Err(format!("names no file or place: {stated:?}"))
        }
    }
}

fn places(file: &Hostile, stdout: &str, are_of_file: bool) -> Claim {
    let (mut ids, mut some) = (Vec::new(), Vec::new());
    for line in stdout.lines() {
        let Some((id, uri)) = line.split_once('\t') else { continue };
        let number = |key: &str| -> Option<usize> {
            let rest = uri.split_once(key)?.1;
            rest.split('&').next()?.parse().ok()
        };
        let range = number("offset=").zip(number("size="));
        let bytes = range.and_then(|(at, size)| file.bytes.get(at..at.checked_add(size)?));
        ids.push(id.to_owned());
        match bytes {
            Some(bytes) => some.push((id.to_owned(), bytes.to_vec())),
            None if are_of_file => return Claim::Nonsense(format!("outside of the file: {uri}")),
            None => {}
        }
    }
    // Lists must show all images.
    let complete = match &file.truth {
        Truth::Holds(held) => held.iter().filter(|image| !image.inner).count() == ids.len(),
        _ => true,
    };
    if are_of_file && complete { Claim::Some(some) } else { Claim::Ids(ids) }
}

fn rows_of(file: &Hostile, rows: &[Row]) -> Claim {
    let (images, _) = crate::library::walked(&file.bytes, &file.beside);
    // The bytes are those of `extract`; here it is that images are told as the library has them.
    if images.len() != rows.len() && file.beside.is_empty() {
        return Claim::Nonsense(format!("{} rows", rows.len()));
    }
    let held = images.into_iter().zip(rows).map(|(image, row)| Held {
        id: row.id.clone().or_else(|| row.target.clone()).unwrap_or_default(),
        ..image.held
    });
    let len = file.bytes.len() as u64;
    let outside = rows.iter().filter(|_| file.beside.is_empty()).any(|row| {
        let stored = row.stored_size.unwrap_or(row.size);
        let fits = |at: u64| at.checked_add(stored).is_some_and(|end| end <= len);
        stored > 0 && !row.offset.is_none_or(fits)
    });
    if outside {
        Claim::Nonsense("an image outside of the file".into())
    } else {
        Claim::All(held.collect())
    }
}
