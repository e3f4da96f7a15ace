//! From a bundle to files.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use bundle_format::{Choice, EntryId};
use target_id::OffloadKind;
use target_id::llvm::debug_text;

use super::entries::{self, Contents, Entry};
use super::job::debug_line;
use super::job::{FileType, Notes, UnbundleJob};
use super::{archive, commands};
use crate::keep::{Keeper, Kept};
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::Outputs;
use tool_kit::parallel::Threads;
use tool_kit::stamp::Stamp;
use tool_kit::style::Text;

/// Takes entries out of a file. Each target gets its best entry; several targets may get the same. Nothing is written
/// after an error.
pub(crate) fn unbundle(
    job: &UnbundleJob,
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    if job.file_type == FileType::Archive {
        return archive::unbundle(job, outputs, notes);
    }
    job.check_outputs()?;
    let name = input::display(&job.input);
    let named = |error: io::Error| tool_kit::payload::at(Path::new(&name), &error);
    let opened = Opened::new(&job.input, MaxInput::default()).map_err(named)?;
    let keeper = Keeper::new(outputs, opened.permissions().of_part());
    let mut file = opened.file;
    let stamp = Stamp::of(&file).map_err(named)?;
    let mut selection = Selection::new(job, keeper);
    // The outputs of a damaged bundle are discarded.
    let walk = (&job.limits, fat_object::Enter::OpenEarly);
    let read = entries::for_each(&job.input, &mut file, job.file_type, walk, notes, &mut |entry| {
        selection.offer(entry)
    });
    let Selection { mut choices, mut keeper, debug, .. } = selection;
    notes.debug.extend(debug);
    let summary = read?;

    if !job.allow_missing {
        let open = choices.iter().filter(|choice| choice.best().is_none());
        let missing: BTreeSet<_> = open.map(|choice| choice.request().id().to_owned()).collect();
        if !missing.is_empty() {
            return Err(format!("Can't find bundles for {}", enumerated(&missing)).into());
        }
    } else if !summary.is_bundle {
        // A file of the host's that never was bundled.
        for choice in &mut choices {
            let target = choice.request().target().clone();
            if target.kind() == Some(&OffloadKind::Host) {
                let all = Kept::Input(0, stamp.size());
                choice.offer(&target, || io::Result::Ok((all, false)))?;
            }
        }
    }

    let mut kept = Vec::new();
    for ((_, output), choice) in job.targets.iter().zip(&choices) {
        let best = choice.best();
        if job.dry_run {
            if best.is_some_and(|(_, is_host_object)| *is_host_object) {
                notes.commands.push(commands::removing(&job.input, output));
            }
            continue;
        }
        kept.push((best.map(|(kept, _)| kept.clone()), &**output));
    }
    keeper.write_all(Threads::default(), &file, kept).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => named(error),
        _ => error,
    })?;
    Ok(stamp.check(&file).map_err(named)?)
}

/// Returns `A`, `A and B`, or `A, B, and C`.
fn enumerated(ids: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for (index, id) in ids.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            _ if index + 1 < ids.len() => ", ",
            1 => " and ",
            _ => ", and ",
        });
        text.push_str(id);
    }
    text
}

/// The entries chosen so far.
struct Selection<'j, 'o> {
    job: &'j UnbundleJob,
    /// The choice for each target, and whether the entry means the object that it lies in.
    choices: Vec<Choice<(Kept, bool)>>,
    keeper: Keeper<'o>,
    debug: Vec<Text>,
}

impl<'j, 'o> Selection<'j, 'o> {
    fn new(job: &'j UnbundleJob, keeper: Keeper<'o>) -> Self {
        let choices = job.targets.iter().map(|(request, _)| Choice::new(request.clone())).collect();
        Selection { job, choices, keeper, debug: Vec::new() }
    }

    fn offer(&mut self, entry: &mut Entry<'_, '_, '_>) -> io::Result<()> {
        // The warnings include errors in IDs.
        let Ok(id) = EntryId::parse(entry.id) else {
            return Ok(());
        };
        let target = id.target();
        for ((request, output), choice) in self.job.targets.iter().zip(&mut self.choices) {
            if self.job.debug {
                let text = debug_text(&request.verdict(&target));
                let code_object = id.standardized();
                self.debug.push(debug_line(text, &code_object, request.id()));
            }
            choice.offer(&target, || {
                let kept = match &mut entry.contents {
                    Contents::File(offset, size) => Kept::Input(*offset, *size),
                    _ if self.job.dry_run => Kept::Input(0, 0),
                    Contents::Now(image) | Contents::Host(image) => {
                        let kept = self.keeper.keep(image, output);
                        kept.map_err(|error| match error.kind() {
                            io::ErrorKind::InvalidData => {
                                tool_kit::payload::at(&self.job.input, &error)
                            }
                            _ => error,
                        })?
                    }
                };
                io::Result::Ok((kept, matches!(entry.contents, Contents::Host(_))))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_llvm_does() {
        for (ids, text) in [
            (&["a"][..], "a"),
            (&["b", "a"], "a and b"),
            (&["c", "a", "b"], "a, b, and c"),
            (&["d", "c", "b", "a"], "a, b, c, and d"),
        ] {
            assert_eq!(enumerated(&ids.iter().map(|id| (*id).to_owned()).collect()), text);
        }
    }
}
