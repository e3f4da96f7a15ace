//! The needs of the images that GPUs get: versions of drivers and runtimes.

use std::collections::BTreeMap;

use device_select::Need;

use tool_kit::report;

/// The needs of the images that are given, and the files that have them.
#[derive(Default)]
pub(super) struct Needs(BTreeMap<Need, Files>);

/// The files with a need: the first, and the number of all.
struct Files {
    first: String,
    count: usize,
}

impl Needs {
    /// Adds those of a file.
    pub(super) fn add(&mut self, file: &str, needs: Vec<Need>) {
        for need in needs {
            let files =
                self.0.entry(need).or_insert_with(|| Files { first: String::new(), count: 0 });
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
