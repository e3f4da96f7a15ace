//! The kernel packs in which ROCm's loader finds the code of a split library for a GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::{Device, Need};
use kpack::Toc;
use kpack::search::{self, Loader};
use serde::Serialize;

use super::host::{Host, OpenPack};
use crate::input;
use crate::report;
use crate::style::{self, ERROR, HEADING, Out, PLAIN, TARGET, WARNING, show};
use crate::table::{Align, Table};

/// The answer for a GPU.
#[derive(Debug)]
pub(crate) struct Answer {
    gpu: String,
    /// All places where the loader looks, in its order, and what is there.
    tried: Vec<(PathBuf, String)>,
    /// The packs that code is taken from.
    used: Vec<PathBuf>,
    wrappers: usize,
    /// The wrappers without code.
    missing: Vec<u64>,
    /// The settings of features with which there is code, if not with all.
    conditions: Vec<String>,
    /// Loaders of the first releases find less.
    is_later: bool,
    /// The reason for which a loader does not look at all.
    need: Option<Need>,
}

/// A function that reads the table of the pack at a path; `None` if there is none.
pub(crate) type Open<'o> = dyn Fn(&Path) -> Option<Result<Arc<Toc>, String>> + 'o;

/// The loader at work.
struct Search<'h> {
    host: &'h Host,
    open: &'h Open<'h>,
    packs: BTreeMap<PathBuf, Option<Result<Arc<Toc>, String>>>,
    tried: Vec<PathBuf>,
    used: Vec<PathBuf>,
    is_later: bool,
}

impl Search<'_> {
    /// Returns the wrappers without code for a GPU with these targets.
    fn missing(&mut self, targets: &[&str]) -> Vec<u64> {
        let places = self.host.places(targets);
        for path in &places {
            if !self.packs.contains_key(path) {
                self.tried.push(path.clone());
            }
            self.packs.entry(path.clone()).or_insert_with(|| (self.open)(path));
        }
        let opened =
            |path: &PathBuf| Some((path.clone(), self.packs.get(path)?.as_ref()?.as_ref().ok()?));
        let packs: Vec<(PathBuf, &Arc<Toc>)> = places.iter().filter_map(opened).collect();
        let tables: Vec<&Toc> = packs.iter().map(|(_, toc)| &***toc).collect();
        let (mut left, mut taken) = (Vec::new(), BTreeSet::new());
        for number in &self.host.numbers {
            let key = search::key(self.host.marker.kernel_name(), *number);
            let found = search::lookup(&tables, targets, &key, Loader::Later);
            self.is_later |= search::lookup(&tables, targets, &key, Loader::First) != found;
            let Some(hit) = found.ok() else {
                left.push(*number);
                continue;
            };
            taken.insert(hit.pack);
        }
        let taken = taken.into_iter().filter_map(|pack| packs.get(pack)).map(|(path, _)| path);
        let new: Vec<PathBuf> = taken.filter(|path| !self.used.contains(path)).cloned().collect();
        self.used.extend(new);
        left
    }

    /// Returns what the loader finds at a place.
    fn result(&self, path: &Path) -> String {
        let toc = match self.packs.get(path) {
            Some(Some(Ok(toc))) => toc,
            Some(Some(Err(error))) => return error.clone(),
            _ => return "not there".to_owned(),
        };
        let (name, numbers) = (self.host.marker.kernel_name(), &self.host.numbers);
        let entries = toc.entries().iter().filter(|entry| entry.kernel_name() == name);
        let known: BTreeSet<u64> = entries.filter_map(kpack::Entry::index).collect();
        let targets = report::few(toc.archs());
        match numbers.iter().filter(|number| known.contains(number)).count() {
            0 => format!("has no code of {name}"),
            all if all == numbers.len() => format!("has code for {targets}"),
            some => format!("has code for {targets}, for {some} of {} wrappers", numbers.len()),
        }
    }
}

impl Answer {
    /// Looks for the code of all wrappers of a library, as the loader does for each: with the features that the GPU may have.
    pub(crate) fn of(host: &Host, gpu: &Device) -> Self {
        let open = |path: &Path| {
            let pack = path.exists().then(|| OpenPack::open(path))?;
            Some(pack.map(|pack| Arc::new(pack.toc)))
        };
        Self::among(host, gpu, &open)
    }

    /// Looks for the code as [`of`](Self::of) does, in packs from elsewhere.
    pub(crate) fn among(host: &Host, gpu: &Device, open: &Open<'_>) -> Self {
        let mut search = Search {
            host,
            open,
            packs: BTreeMap::new(),
            tried: Vec::new(),
            used: Vec::new(),
            is_later: false,
        };
        let generic = gpu.id().processor_info().and_then(|info| info.covered_by());
        let generic = generic.map(|info| info.name().to_owned());
        let mut states: Vec<String> =
            gpu.states().iter().map(|state| state.id().to_string()).collect();
        if states.is_empty() {
            states.push(gpu.name());
        }
        let (mut served, mut missing): (Vec<String>, Option<Vec<u64>>) = (Vec::new(), None);
        for state in states {
            let targets: Vec<&str> =
                [Some(&*state), generic.as_deref()].into_iter().flatten().collect();
            let left = search.missing(&targets);
            match left.is_empty() {
                true => served.push(state),
                false => missing = Some(left),
            }
        }
        let tried = search.tried.iter().map(|path| (path.clone(), search.result(path))).collect();
        let conditions = if missing.is_some() { served.clone() } else { Vec::new() };
        Answer {
            gpu: gpu.name(),
            tried,
            used: search.used,
            wrappers: host.numbers.len(),
            missing: missing.filter(|_| served.is_empty()).unwrap_or_default(),
            conditions,
            is_later: search.is_later,
            need: Some(Need::of_kernel_packs()).filter(|need| gpu.lacks(need)),
        }
    }

    /// Returns the name of the GPU.
    pub(crate) fn gpu(&self) -> &str {
        &self.gpu
    }

    /// Returns whether all wrappers get code.
    pub(crate) fn is_served(&self) -> bool {
        self.missing.is_empty() && self.need.is_none()
    }

    /// Prints where the loader looks, in its order.
    pub(crate) fn print_tried(&self, out: &mut Out<'_>) -> io::Result<()> {
        let mut table = Table::default()
            .column(format!("KERNEL PACKS FOR {}", self.gpu), Align::Left, PLAIN)
            .column("RESULT", Align::Left, PLAIN);
        for (path, result) in &self.tried {
            table.row(&[input::display(path), result.clone()]);
        }
        table.print(out, "  ", style::terminal_width())?;
        show!(out)
    }

    /// Prints the conclusion for a library.
    pub(crate) fn print(&self, out: &mut Out<'_>, file: &str) -> io::Result<()> {
        let style = match (self.is_served(), self.conditions.is_empty()) {
            (true, true) => TARGET,
            (true, false) => WARNING,
            (false, _) => ERROR,
        };
        let words = self.words();
        show!(out, "{HEADING}{file}{HEADING:#}: {style}{words}{style:#}")?;
        if self.is_later {
            let text = "  ROCm up to 7.14.0 finds less: its loader stops at the first pack that is there, and one for a GPU with features hides others";
            show!(out, "{WARNING}{text}{WARNING:#}")?;
        }
        Ok(())
    }

    /// Returns the conclusion in words.
    pub(crate) fn words(&self) -> String {
        let gpu = &self.gpu;
        let paths = report::few(self.used.iter().map(|path| input::display(path)));
        if let Some(need) = &self.need {
            return format!("has no code for {gpu} that is found: needs {need}");
        }
        match self.missing.len() {
            0 if !self.conditions.is_empty() => {
                let states = report::few(&self.conditions);
                format!("has code for {gpu} in {paths}, if it is {states}")
            }
            0 => format!("has code for {gpu} in {paths}"),
            missing if missing == self.wrappers => {
                let places = report::few(self.tried.iter().map(|(path, _)| input::display(path)));
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
    /// `false` if loaders of the first releases find less.
    early_loaders: bool,
    tried: Vec<Tried<'a>>,
}

#[derive(Debug, Serialize)]
struct Tried<'a> {
    path: String,
    result: &'a str,
}

impl<'a> SplitRecord<'a> {
    pub(crate) fn new(file: &'a str, answer: &'a Answer) -> Self {
        let tried = answer.tried.iter();
        let tried = tried.map(|(path, result)| Tried { path: input::display(path), result });
        SplitRecord {
            file,
            gpu: &answer.gpu,
            served: answer.is_served(),
            conditions: &answer.conditions,
            wrappers: answer.wrappers,
            missing: &answer.missing,
            early_loaders: !answer.is_later,
            tried: tried.collect(),
        }
    }
}
