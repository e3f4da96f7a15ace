//! The checks of a command line, in the order of LLVM's tool: the first that fails is the one that is reported.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bundle_format::{EntryId, Request, composition};
use target_id::llvm::bundler_accepts;
use target_id::{Triple, is_known_processor};

use super::options::{Files, Options, Reading};

/// A request that makes sense.
pub(super) enum Command<'o> {
    /// `-list`, with the input.
    List(&'o PathBuf),
    /// `-unbundle`, with the input.
    Unbundle(&'o PathBuf),
    /// Neither of these, with the output.
    Bundle(&'o PathBuf),
}

/// The use of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `-unbundle`.
    Unbundle,
    /// A new bundle.
    Bundle,
}

/// Checks how options go together.
pub(super) fn command<'o>(
    options: &'o Options,
    warnings: &mut Vec<String>,
) -> Result<Command<'o>, String> {
    let Options { inputs, outputs, .. } = options;
    one_spelling(inputs, "input", warnings)?;
    one_spelling(outputs, "output", warnings)?;
    let fail = |text: &str| Err(text.to_owned());
    if options.list && options.unbundle {
        return fail("-unbundle and -list cannot be used together");
    }
    if options.list {
        let [input] = &inputs.files[..] else {
            return fail("only one input file supported for -list");
        };
        if !outputs.files.is_empty() {
            return fail("-outputs option is invalid for -list");
        }
        if !options.targets.is_empty() {
            return fail("-targets option is invalid for -list");
        }
        return Ok(Command::List(input));
    }
    if options.check_input_archive {
        if !options.unbundle {
            return fail("-check-input-archive cannot be used while bundling");
        }
        if options.file_type != "a" {
            return fail("-check-input-archive can only be used for unbundling archives (-type=a)");
        }
    }
    if outputs.files.is_empty() {
        return fail("no output file specified!");
    }
    if options.targets.is_empty() {
        return fail("for the --targets option: must be specified at least once!");
    }
    let targets = options.targets.len();
    if options.unbundle {
        let [input] = &inputs.files[..] else {
            return fail("only one input file supported in unbundling mode");
        };
        if outputs.files.len() != targets {
            return fail("number of output files and targets should match in unbundling mode");
        }
        return Ok(Command::Unbundle(input));
    }
    if options.file_type == "a" {
        return fail("Archive files are only supported for unbundling");
    }
    let [output] = &outputs.files[..] else {
        return fail("only one output file supported in bundling mode");
    };
    if inputs.files.len() != targets {
        return fail("number of input files and targets should match in bundling mode");
    }
    if options.bundle_align == 0 {
        return fail("-bundle-align must be at least 1");
    }
    Ok(Command::Bundle(output))
}

/// Checks that a single option for files is used, and warns of the deprecated one.
fn one_spelling(files: &Files, name: &str, warnings: &mut Vec<String>) -> Result<(), String> {
    if files.current && files.deprecated {
        return Err(format!(
            "-{name}s and -{name} cannot be used together, use only -{name} instead"
        ));
    }
    if files.deprecated {
        warnings.push(format!("-{name}s is deprecated, use -{name} instead"));
    }
    Ok(())
}

/// Checks the targets, each for itself and all together.
pub fn targets(
    typed: &[Vec<u8>],
    mode: Mode,
    reading: Reading,
) -> Result<Vec<EntryId<'_>>, String> {
    let mut ids: Vec<EntryId<'_>> = Vec::new();
    let mut texts = BTreeSet::new();
    for text in typed {
        if !texts.insert(text) {
            return Err("Duplicate targets are not allowed".to_owned());
        }
        ids.push(target(text, reading)?);
    }
    let findings = composition(ids.iter().map(EntryId::as_str));
    let conflict = findings.iter().find(|finding| finding.feature().is_some());
    if let Some(conflict) = conflict {
        let id = |index| ids.get(index).map_or("", EntryId::as_str);
        let (first, second) = (conflict.first().map_or("", id), id(conflict.index()));
        let (a, b) = (first.min(second), first.max(second));
        return Err(format!("Cannot bundle inputs with conflicting targets: '{a}' and '{b}'"));
    }
    let hosts = ids.iter().filter(|id| id.is_host()).count();
    let is_hip = |id: &EntryId<'_>| matches!(id.kind().as_str(), "hip" | "hipv4");
    let needs_host = mode == Mode::Bundle && !ids.iter().all(is_hip);
    if hosts > 1 || (hosts == 0 && needs_host) {
        return Err(format!("expecting exactly one host target but got {hosts}"));
    }
    let mut written = BTreeMap::new();
    for id in &ids {
        let written = written.entry(id.canonical());
        if let Entry::Occupied(before) = &written {
            let (written, before) = (before.key(), before.get());
            return Err(format!(
                "Duplicate targets are not allowed: '{before}' and '{id}' both mean '{written}'"
            ));
        }
        written.or_insert(id);
    }
    Ok(ids)
}

fn target(typed: &[u8], reading: Reading) -> Result<EntryId<'_>, String> {
    let form = || {
        "Targets need to follow the format '<offload kind>-<target triple>', where \
         '<target triple>' follows the format \
         '<kind>-<arch>-<vendor>-<os>-<env>[-<target id>[:target features]]'."
            .to_owned()
    };
    let text = str::from_utf8(typed).map_err(|_| form())?;
    let fields: Vec<_> = text.splitn(6, '-').collect();
    let [_, triple @ ..] = &fields[..] else { return Err(form()) };
    let triple = match triple {
        [arch, vendor, os, environment, ..] => [*arch, *vendor, *os, *environment].join("-"),
        _ => return Err(form()),
    };
    let id = match reading {
        Reading::TargetId => EntryId::parse(text),
        Reading::Environment => EntryId::parse_as_llvm(text),
    };
    let id = id.map_err(|_| form())?;
    let mut message = format!("invalid target '{text}'");
    let kind = id.kind();
    let known_kind = kind.is_bundler_kind();
    let known_arch = Triple::parse(&triple).is_known_arch();
    if !known_kind {
        message.push_str(&format!(", unknown offloading kind '{}'", kind.as_str()));
    }
    if !known_arch {
        message.push_str(&format!(", unknown target triple '{triple}'"));
    }
    if known_kind && known_arch { Ok(id) } else { Err(message) }
}

/// Complaints about target IDs that LLVM's tool takes silently, or drops.
pub fn doubts(ids: &[EntryId<'_>]) -> Vec<String> {
    ids.iter()
        .filter(|id| !id.target_id().is_empty())
        .filter_map(|id| {
            if let Err(error) = id.target().target_id() {
                return Some(format!("'{id}': {error}"));
            }
            let name = processor(id);
            let known = is_known_processor(name) || bundler_accepts(name);
            (!known).then(|| format!("'{id}': unknown processor '{name}', kept as it is"))
        })
        .collect()
}

fn processor<'a>(id: &EntryId<'a>) -> &'a str {
    let id = id.target_id();
    id.split_once(':').map_or(id, |(processor, _)| processor)
}

/// Returns the request of an ID to unbundle.
pub(super) fn request(id: &EntryId<'_>, options: &Options) -> Request {
    let compare = target_id::Options::default()
        .with_hip_openmp(options.hip_openmp_compatible)
        .with_strict_sub_architectures(true);
    Request::new(id).with_options(compare)
}
