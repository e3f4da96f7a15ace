//! The needs of the images that GPUs get: versions of drivers and runtimes.

use std::collections::BTreeMap;

use device_select::{Answer, Device, Given, Need, Software, Unit};

use crate::report;

/// The needs of the images that are given, and the files that have them.
#[derive(Default)]
pub(super) struct Needs(BTreeMap<Need, Files>);

/// The files with a need: the first, and the number of all.
struct Files {
    first: String,
    count: usize,
}

impl Needs {
    /// Adds the one of a file for the latest version of each software, except where the version of the software is known, and what all maintained releases have.
    pub(super) fn add(&mut self, file: &str, units: &[Unit], gpu: &Device, answers: &[Answer]) {
        let judged = units
            .iter()
            .zip(answers)
            .flat_map(|(unit, answer)| unit.candidates().iter().zip(&answer.images));
        let given = judged.filter(|(_, judged)| judged.given != Given::No);
        let needs = given.flat_map(|(candidate, _)| candidate.needs());
        let needs = needs.filter(|need| !need.is_old() && !gpu.has_version_of(need.software()));
        // A latest version is enough for the others.
        let mut latest: BTreeMap<Software, &Need> = BTreeMap::new();
        for need in needs {
            let known = latest.entry(need.software()).or_insert(need);
            if known.since() < need.since() {
                *known = need;
            }
        }
        for need in latest.into_values() {
            let files =
                self.0.entry(*need).or_insert_with(|| Files { first: String::new(), count: 0 });
            if files.first != file {
                files.count += 1;
                file.clone_into(&mut files.first);
            }
        }
    }

    /// Notes each.
    pub(super) fn report(&self) {
        for (need, Files { first, count }) in &self.0 {
            match count {
                1 => report::note(&format_args!("{first} needs {need}")),
                count => report::note(&format_args!("{count} files need {need}")),
            }
        }
    }
}
