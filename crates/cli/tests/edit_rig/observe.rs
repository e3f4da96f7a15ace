//! Runs files on the stand-in for the HIP runtime, and decodes what that found registered.

use std::fs;
use std::path::Path;
use std::process::Output;

use bundle_format::Bundle as Plain;
use tempfile::TempDir;

use super::zoo::{Linked, Shape, World};
use super::{Complaints, command, run, said, tool};
use crate::common::llvm;

/// Behaviour of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Answers of its host code, and the build ID in its memory.
    pub answers: String,
    /// Log of its registrations, in order.
    pub log: String,
    /// Bytes found at each registered address.
    pub bundles: Vec<Vec<u8>>,
}

/// Loads or runs `path`, which is the file `like` or came out of it.
pub fn observe(like: &Linked, path: &Path) -> Result<Seen, String> {
    let out = tempfile::tempdir().unwrap();
    let output = start(like, path, &out);
    if !output.status.success() || !output.stderr.is_empty() {
        return Err(format!("does not run: {}: {}", output.status, said(&output)));
    }
    let read = |name: &str| fs::read(out.path().join(name));
    let log = read("log").map_err(|_| "registers nothing".to_owned())?;
    let mut bundles = Vec::new();
    while let Ok(bundle) = read(&format!("bundle-{}", bundles.len())) {
        bundles.push(bundle);
    }
    Ok(Seen {
        answers: String::from_utf8_lossy(&output.stdout).into_owned(),
        log: String::from_utf8_lossy(&log).into_owned(),
        bundles,
    })
}

fn start(like: &Linked, path: &Path, out: &TempDir) -> Output {
    let prefix = match like.world {
        World::Glibc => "",
        World::Musl => "musl-",
        World::AArch64 => "aarch64-",
    };
    let libraries = like.place.join(format!("{prefix}runtime"));
    let loader = like.place.join(format!("{prefix}loader"));
    let mut words = match like.shape {
        Shape::Shared => vec![loader.as_path(), path],
        _ => vec![path],
    };
    let emulator = tool("qemu-aarch64");
    if like.world == World::AArch64 {
        words.splice(
            0..0,
            [emulator.as_path(), Path::new("-L"), Path::new("/usr/aarch64-linux-gnu")],
        );
    }
    let mut command = command(words[0]);
    command.args(&words[1..]).env("RIG_OUT", out.path()).env("LD_LIBRARY_PATH", libraries);
    if like.world == World::AArch64 {
        // The emulator is a program of this machine, that knows no library of the other.
        let libraries = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").unwrap();
        let setting = format!("LD_LIBRARY_PATH={}", libraries.1.unwrap().to_str().unwrap());
        command.env("QEMU_SET_ENV", setting).env_remove("LD_LIBRARY_PATH");
    }
    loop {
        let output = command.output().unwrap();
        // Another thread may have started a process while this one wrote the file, which is open there until it runs.
        if !String::from_utf8_lossy(&output.stderr).contains("Text file busy") {
            return output;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A bundle that was taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The version of the compressed form, if it is compressed.
    pub compressed: Option<u16>,
    /// Its bundle entry IDs and what they stand for, in order.
    pub entries: Vec<(String, Vec<u8>)>,
}

impl Bundle {
    /// Without the entries for which there is no reason.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Bundle {
        let entries = self.entries.iter().filter(|(id, _)| id.starts_with("host-") || keep(id));
        Bundle { compressed: self.compressed, entries: entries.cloned().collect() }
    }

    /// The same in another form.
    pub fn compressed_as(&self, version: Option<u16>) -> Bundle {
        Bundle { compressed: version, entries: self.entries.clone() }
    }

    /// Describes the contents in words.
    pub fn summary(&self) -> String {
        let entries: Vec<_> = self
            .entries
            .iter()
            .map(|(id, bytes)| format!("{id} ({} bytes)", bytes.len()))
            .collect();
        let form = self
            .compressed
            .map_or("plain".into(), |version| format!("compressed, version {version}"));
        format!("{form}: {}", entries.join(", "))
    }
}

/// A bundle as our libraries read it. It has to end where the runtime thought.
pub fn decode(dump: &[u8]) -> Result<Bundle, String> {
    let mut compressed = None;
    let mut plain = dump.to_vec();
    if dump.starts_with(&ccob::MAGIC) {
        compressed = Some(u16::from_le_bytes([dump[4], dump[5]]));
        let found =
            ccob::decompress(dump, ccob::MAX_UNCOMPRESSED).map_err(|error| error.to_string())?;
        if found.consumed != dump.len() as u64 {
            return Err(format!(
                "a compressed bundle of {} bytes, of {}",
                found.consumed,
                dump.len()
            ));
        }
        plain = found.data;
    }
    let bundle = Plain::parse(&plain).map_err(|error| error.to_string())?;
    let entry = |entry: bundle_format::Entry<'_>| {
        let payload = entry.payload().ok_or("an entry beyond the end")?;
        Ok((entry.id_str().map_err(|error| error.to_string())?.to_owned(), payload.to_vec()))
    };
    Ok(Bundle { compressed, entries: bundle.entries().map(entry).collect::<Result<_, String>>()? })
}

/// The entries of a bundle as LLVM's tool reads them.
pub fn decode_with_llvm(dump: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let bundler = llvm("clang-offload-bundler");
    let place = tempfile::tempdir().unwrap();
    let input = place.path().join("bundle");
    fs::write(&input, dump).unwrap();
    let input = format!("-input={}", input.display());
    let checked = |output: Output| match output.status.success() && output.stderr.is_empty() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(format!("clang-offload-bundler: {}: {}", output.status, said(&output))),
    };
    let list = checked(run(&bundler, ["-type=o", "-list", &input]))?;
    // It lists them in no order.
    let ids: Vec<_> = list.lines().map(str::to_owned).collect();
    let mut words = vec![
        "-type=o".to_owned(),
        "-unbundle".into(),
        input,
        format!("-targets={}", ids.join(",")),
    ];
    let path = |index: usize| place.path().join(format!("{index}"));
    words.extend((0..ids.len()).map(|index| format!("-output={}", path(index).display())));
    checked(run(&bundler, &words))?;
    Ok(ids
        .into_iter()
        .enumerate()
        .map(|(index, id)| (id, fs::read(path(index)).unwrap()))
        .collect())
}

/// The bundles of what was seen, as ours read them and LLVM's tool, which have to agree.
pub fn bundles(seen: &Seen) -> Result<Vec<Bundle>, String> {
    let decode = |(index, dump): (usize, &Vec<u8>)| {
        let place = |error: String| format!("bundle {index}: {error}");
        let ours = decode(dump).map_err(place)?;
        // Starting LLVM's tool takes long. Where there are many bundles it sees some.
        if index % 10 != 0 && seen.bundles.len() > 10 {
            return Ok(ours);
        }
        let mut theirs = decode_with_llvm(dump).map_err(place)?;
        let mut sorted = ours.entries.clone();
        sorted.sort();
        theirs.sort();
        if sorted != theirs {
            let theirs = Bundle { compressed: ours.compressed, entries: theirs };
            return Err(place(format!(
                "is {}; for LLVM it is {}",
                ours.summary(),
                theirs.summary()
            )));
        }
        Ok(ours)
    };
    seen.bundles.iter().enumerate().map(decode).collect()
}

/// Returns the complaints about the behaviour of an edited file. `before` is the behaviour of the unedited one.
pub fn compare(before: &Seen, after: &Seen, expected: &[Bundle]) -> Complaints {
    let mut complaints = compare_host(before, after);
    match bundles(after) {
        Err(error) => complaints.push(error),
        Ok(found) => complaints.extend(compare_bundles(&found, expected)),
    }
    complaints
}

/// Returns the complaints about the host side of an edited file.
pub fn compare_host(before: &Seen, after: &Seen) -> Complaints {
    let mut complaints = Complaints::new();
    if before.answers != after.answers {
        complaints.push(format!("host code answers {:?}, not {:?}", after.answers, before.answers));
    }
    // Where the unedited file has something odd, the edited one may be better.
    let is_odd = |line: &&str| line.ends_with("not at a page");
    let mut odd = after.log.lines().filter(is_odd);
    let plain = |log: &str| log.lines().filter(|line| !is_odd(line)).collect::<Vec<_>>().join("\n");
    if plain(&before.log) != plain(&after.log) || odd.any(|line| !before.log.contains(line)) {
        complaints.push(format!("registers\n{}, not\n{}", after.log, before.log));
    }
    complaints
}

fn compare_bundles(found: &[Bundle], expected: &[Bundle]) -> Complaints {
    let mut complaints = Complaints::new();
    if found.len() != expected.len() {
        complaints.push(format!("{} bundles, not {}", found.len(), expected.len()));
    }
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found.compressed != expected.compressed
            || !found.entries.iter().map(|(id, _)| id).eq(expected.entries.iter().map(|(id, _)| id))
        {
            complaints.push(format!(
                "bundle {index} is {}; not {}",
                found.summary(),
                expected.summary()
            ));
            continue;
        }
        for ((id, found), (_, expected)) in found.entries.iter().zip(&expected.entries) {
            if found != expected {
                let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
                complaints.push(format!(
                    "bundle {index}: {id}: {} bytes, not {}; different from byte {same} on",
                    found.len(),
                    expected.len()
                ));
            }
        }
    }
    complaints
}
