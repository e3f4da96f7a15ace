//! The report of `shrink`: three lines about all files, and the reasons why code stays.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use device_select::{CodeSizes, Rule, Shrunk, Stay, few};
use serde::Serialize;

use super::options::Options;
use super::report::{About, FileRow};
use super::reporter::Reporter;
use crate::inputs::{Input, Inputs};
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::report as messages;
use tool_kit::style::{self, show};

/// The most reasons that are printed: they fit on a screen.
const MOST_REASONS: usize = 20;

/// Sums about all files. Nothing is said about single files unless they fail.
pub(crate) struct ShortReport<'a> {
    options: &'a Options,
    shrunk: Shrunk,
    /// Packages that changed: the lists of installed ones with names, and the files that are packages.
    packages: BTreeSet<(PathBuf, String)>,
    rows: Vec<FileRow>,
    has_failed: bool,
    /// Packages that were refused as a whole: nobody knows what is in them.
    refused: usize,
    json: bool,
    why: bool,
}

/// The report as JSON.
#[derive(Serialize)]
struct Summary<'a> {
    size_before: u64,
    size_after: u64,
    kept: Kinds,
    removed: Kinds,
    stays: Vec<Staying<'a>>,
    files: &'a [FileRow],
}

#[derive(Serialize)]
struct Kinds {
    machine_code: u64,
    ptx: u64,
    lto_ir: u64,
    other: u64,
}

impl From<CodeSizes> for Kinds {
    fn from(CodeSizes { machine_code, ptx, lto_ir, other, .. }: CodeSizes) -> Self {
        Kinds { machine_code, ptx, lto_ir, other }
    }
}

#[derive(Serialize)]
struct Staying<'a> {
    reason: &'a str,
    bytes: u64,
    files: usize,
}

impl<'a> ShortReport<'a> {
    pub(crate) fn new(options: &'a Options, rule: &Rule, json: bool, why: bool) -> Self {
        ShortReport {
            options,
            shrunk: Shrunk::new(rule),
            packages: BTreeSet::new(),
            rows: Vec::new(),
            has_failed: false,
            refused: 0,
            json,
            why,
        }
    }

    fn add(&mut self, row: FileRow) {
        let shrunk = &mut self.shrunk;
        shrunk.add(&row.tally);
        match &row.stays {
            Stays::Nothing => {}
            Stays::Left => shrunk.leave(&row.tally, &row.file),
            Stays::Refused(why) => shrunk.stay(why, row.tally.stuck.total(), &row.file),
            Stays::Parts(parts) => {
                parts.iter().for_each(|(why, bytes)| shrunk.stay(why, *bytes, &row.file));
            }
        }
        if row.changed {
            if row.about != About::Member {
                shrunk.resize(row.size_before, row.size_after);
            }
            match row.about {
                About::Package => drop(self.packages.insert((row.file.clone().into(), String::new()))),
                _ if row.deleted => shrunk.count_deleted(),
                _ => shrunk.count_changed(),
            }
            shrunk.add_holes(row.holes);
            self.packages.extend(row.distributions.iter().cloned());
        }
        self.rows.extend(Some(row).filter(|_| self.json));
    }
}
