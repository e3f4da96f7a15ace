//! The kernel packs in which ROCm's loader finds the code of a split library for a GPU.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use device_select::Device;
use kpack::search;
use serde::Serialize;

use super::host::{Host, OpenPack};
use crate::input;
use crate::report;
use crate::style::{self, ERROR, HEADING, PLAIN, TARGET, WARNING};
use crate::table::{Align, Table};

/// The answer for a GPU.
#[derive(Debug)]
pub(crate) struct Answer {
    gpu: String,
    /// All places where the loader looks, in its order: the name by which it looks, the path, and what it finds there.
    tried: Vec<(String, PathBuf, String)>,
    /// The packs that code is taken from.
    used: Vec<PathBuf>,
    wrappers: usize,
    /// The wrappers without code.
    missing: Vec<u64>,
    /// The settings of features with which there is code, if not with all.
    conditions: Vec<String>,
}

/// The loader at work.
struct Search<'h> {
    host: &'h Host,
    packs: BTreeMap<PathBuf, Result<OpenPack, String>>,
    tried: Vec<(String, PathBuf, String)>,
    used: Vec<PathBuf>,
}

impl Search<'_> {
    /// Returns the wrappers without code for these targets, which are looked up one after the other.
    fn missing<'t>(&mut self, targets: impl Iterator<Item = &'t str>) -> Vec<u64> {
        let host = self.host;
        let mut left: Vec<u64> = host.numbers.clone();
        let name = host.marker.kernel_name();
        for (subset, path) in targets.flat_map(|target| host.candidates(target)) {
            let result = match open(&mut self.packs, &path) {
                None => "not there".to_owned(),
                Some(Err(error)) => error.clone(),
                Some(Ok(pack)) if !pack.toc.archs().contains(&subset) => {
                    format!("is for {}", report::few(pack.toc.archs()))
                }
                Some(Ok(pack)) => {
                    let before = left.len();
                    let has = |n: &u64| pack.toc.find(&search::key(name, *n), &subset).is_some();
                    let all = host.numbers.iter().filter(|n| has(n)).count();
                    left.retain(|n| !has(n));
                    if left.len() < before && !self.used.contains(&path) {
                        self.used.push(path.clone());
                    }
                    match all {
                        0 => format!("lacks {name}"),
                        all if all == host.numbers.len() => "has code".to_owned(),
                        all => format!("has code for {all} of {} wrappers", host.numbers.len()),
                    }
                }
            };
            let tried = (subset, path, result);
            if !self.tried.contains(&tried) {
                self.tried.push(tried);
            }
        }
        left
    }
}

impl Answer {
    /// Looks for the code of all wrappers of a library, as the loader does for each: with the features that the GPU may have.
    pub(crate) fn of(host: &Host, gpu: &Device) -> Self {
        let mut search =
            Search { host, packs: BTreeMap::new(), tried: Vec::new(), used: Vec::new() };
        let generic = gpu.id().processor_info().and_then(|info| info.covered_by());
        let generic = generic.map(|info| info.name().to_owned());
        let mut states: Vec<String> =
            gpu.states().iter().map(|state| state.id().to_string()).collect();
        if states.is_empty() {
            states.push(gpu.name());
        }
        let (mut served, mut missing): (Vec<String>, Option<Vec<u64>>) = (Vec::new(), None);
        for state in states {
            let left = search.missing([Some(&*state), generic.as_deref()].into_iter().flatten());
            match left.is_empty() {
                true => served.push(state),
                false => missing = Some(left),
            }
        }
        let conditions = if missing.is_some() { served.clone() } else { Vec::new() };
        Answer {
            gpu: gpu.name(),
            tried: search.tried,
            used: search.used,
            wrappers: host.numbers.len(),
            missing: missing.filter(|_| served.is_empty()).unwrap_or_default(),
            conditions,
        }
    }

    /// Returns whether all wrappers get code.
    pub(crate) fn is_served(&self) -> bool {
        self.missing.is_empty()
    }

    /// Prints where the loader looks, in its order.
    pub(crate) fn print_tried(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::default()
            .column(format!("FOR {}", self.gpu), Align::Left, TARGET)
            .column("KERNEL PACK", Align::Left, PLAIN)
            .column("RESULT", Align::Left, PLAIN);
        for (name, path, result) in &self.tried {
            table.row(&[name.clone(), input::display(path), result.clone()]);
        }
        table.print(out, "  ", style::terminal_width())?;
        writeln!(out)
    }

    /// Prints the conclusion for a library.
    pub(crate) fn print(&self, out: &mut dyn Write, file: &str) -> io::Result<()> {
        let style = match (self.is_served(), self.conditions.is_empty()) {
            (true, true) => TARGET,
            (true, false) => WARNING,
            (false, _) => ERROR,
        };
        let words = self.words();
        let (file, words) = (style::printable(file), style::printable(&words));
        writeln!(out, "{HEADING}{file}{HEADING:#}: {style}{words}{style:#}")
    }

    fn words(&self) -> String {
        let gpu = &self.gpu;
        let paths = report::few(self.used.iter().map(|path| input::display(path)));
        match self.missing.len() {
            0 if !self.conditions.is_empty() => {
                let states = report::few(&self.conditions);
                format!("has code for {gpu} in {paths}, if it is {states}")
            }
            0 => format!("has code for {gpu} in {paths}"),
            missing if missing == self.wrappers => {
                let places =
                    report::few(self.tried.iter().map(|(_, path, _)| input::display(path)));
                format!("has no code for {gpu}: looked for {places}")
            }
            missing => {
                let all = self.wrappers;
                format!(
                    "{missing} of {all} wrappers have no code for {gpu}; the others have it in {paths}"
                )
            }
        }
    }
}

fn open<'p>(
    packs: &'p mut BTreeMap<PathBuf, Result<OpenPack, String>>,
    path: &Path,
) -> Option<&'p Result<OpenPack, String>> {
    if !path.exists() {
        return None;
    }
    Some(packs.entry(path.to_owned()).or_insert_with(|| OpenPack::open(path)))
}

/// The answer for a GPU in the JSON output of `match`.
#[derive(Debug, Serialize)]
pub(crate) struct SplitRecord<'a> {
    file: &'a str,
    gpu: &'a str,
    /// `true` if all wrappers get code.
    served: bool,
    /// The settings of features with which there is code, if not with all.
    conditions: &'a [String],
    wrappers: usize,
    /// The numbers of wrappers without code.
    missing: &'a [u64],
    tried: Vec<Tried<'a>>,
}

#[derive(Debug, Serialize)]
struct Tried<'a> {
    target: &'a str,
    path: String,
    result: &'a str,
}

impl<'a> SplitRecord<'a> {
    pub(crate) fn new(file: &'a str, answer: &'a Answer) -> Self {
        let tried = answer.tried.iter().map(|(target, path, result)| Tried {
            target,
            path: input::display(path),
            result,
        });
        SplitRecord {
            file,
            gpu: &answer.gpu,
            served: answer.is_served(),
            conditions: &answer.conditions,
            wrappers: answer.wrappers,
            missing: &answer.missing,
            tried: tried.collect(),
        }
    }
}
