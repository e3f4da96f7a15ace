//! From a bundle to files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bundle_format::EntryId;
use fat_object::remove_bundle_sections;
use target_id::{OffloadKind, Target};

use super::entries::{self, Contents, Entry};
use super::job::{Failure, FileType, Notes, UnbundleJob};
use super::{archive, commands};
use crate::input;
use crate::output::{Outputs, of_output};
use crate::style::printable;

/// Takes entries out of a file. Each target gets the best entry there is, and one entry may serve several. Nothing is
/// written unless all is well.
pub(crate) fn unbundle(
    job: &UnbundleJob,
    outputs: &mut Outputs,
    notes: &mut Notes,
) -> Result<(), Failure> {
    if job.file_type == FileType::Archive {
        return archive::unbundle(job, outputs, notes);
    }
    check_outputs(job)?;
    let name = input::display(&job.input);
    let named = |error: io::Error| crate::payload::at(Path::new(&name), &error);
    let mut file = input::open_sized(&job.input).map_err(named)?;
    let size = file.metadata()?.len();
    let mut selection = Selection::new(job, size);
    let read =
        entries::for_each(&job.input, &mut file, job.file_type, &job.limits, notes, &mut |entry| {
            selection.offer(entry)
        });
    let Selection { mut best, mut copies, debug, .. } = selection;
    notes.debug.extend(debug);
    let summary = read?;

    if !job.allow_missing {
        let open = job.targets.iter().zip(&best).filter(|(_, best)| best.is_none());
        let missing: BTreeSet<_> = open.map(|((request, _), _)| request.id().to_owned()).collect();
        if !missing.is_empty() {
            return Err(format!("Can't find bundles for {}", enumerated(&missing)).into());
        }
    } else if !summary.is_bundle {
        // A file of the host's that never was bundled.
        for ((request, _), best) in job.targets.iter().zip(&mut best) {
            if request.target().kind() == Some(&OffloadKind::Host) {
                *best =
                    Some(Best { target: request.target().clone(), place: Place::Input(0, size) });
            }
        }
    }

    for ((_, output), best) in job.targets.iter().zip(&best) {
        let place = best.as_ref().map(|best| &best.place);
        if let Some(Place::Host(_)) = place
            && job.dry_run
        {
            notes.commands.push(commands::removing(&job.input, output));
        }
        if !job.dry_run {
            let written = outputs.write_or_print(output, |out| match place {
                None => Ok(()),
                Some(Place::Input(offset, size)) => copy(&mut file, *offset, *size, out),
                Some(Place::Copy(offset, size)) => match &mut copies {
                    Some(copies) => copy(copies, *offset, *size, out),
                    None => Ok(()),
                },
                Some(Place::Host(bytes)) => out.write_all(bytes),
            });
            written.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => named(error),
                _ => of_output(output, error),
            })?;
        }
    }
    Ok(())
}

/// Copies a part of a file; to a file, the kernel does it.
fn copy(file: &mut File, offset: u64, size: u64, out: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    let copied = io::copy(&mut file.take(size), out)?;
    // Only when the file became shorter meanwhile.
    if copied == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A file can be written once only. Standard output and devices take anything.
pub(super) fn check_outputs(job: &UnbundleJob) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for (_, path) in &job.targets {
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if path.as_os_str() == "-" || special {
            continue;
        }
        if !seen.insert(place(path)) {
            let path = path.display();
            return Err(format!("'{path}': is the output for more than one target").into());
        }
    }
    Ok(())
}

/// The path, as far as it exists without links.
fn place(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")));
        match (parent, path.file_name()) {
            (Ok(parent), Some(name)) => parent.join(name),
            _ => path.to_owned(),
        }
    })
}

/// `A`, `A and B`, `A, B, and C`.
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
struct Selection<'j> {
    job: &'j UnbundleJob,
    /// Bytes of the input.
    limit: usize,
    /// For each target.
    best: Vec<Option<Best>>,
    /// The bytes of entries that are compressed in the file.
    copies: Option<File>,
    debug: Vec<String>,
}

#[derive(Clone)]
struct Best {
    target: Target,
    place: Place,
}

/// Where the bytes of an entry are after the walk: offset and size.
#[derive(Clone)]
enum Place {
    Input(u64, u64),
    Copy(u64, u64),
    /// The host object, which was put together.
    Host(std::rc::Rc<[u8]>),
}

impl<'j> Selection<'j> {
    fn new(job: &'j UnbundleJob, size: u64) -> Self {
        Selection {
            job,
            limit: usize::try_from(size).unwrap_or(usize::MAX),
            best: job.targets.iter().map(|_| None).collect(),
            copies: None,
            debug: Vec::new(),
        }
    }

    fn offer(&mut self, entry: &mut Entry<'_, '_, '_>) -> io::Result<()> {
        // What is wrong with an ID is among the warnings.
        let Ok(id) = EntryId::parse(entry.id) else {
            return Ok(());
        };
        let target = id.target();
        let mut place = None;
        for ((request, _), best) in self.job.targets.iter().zip(&mut self.best) {
            let verdict = request.verdict(&target);
            if self.job.debug {
                let text = verdict.debug_text();
                let code_object = id.standardized();
                let [code_object, wanted] = [&*code_object, request.id()].map(printable);
                self.debug
                    .push(format!("{text} \t[CodeObject: {code_object}]\t:\t[Target: {wanted}]"));
            }
            let so_far = best.as_ref().map(|best| &best.target);
            let position = usize::from(so_far.is_some());
            if request.best_match(so_far.into_iter().chain([&target])) != Some(position) {
                continue;
            }
            let place = match &place {
                Some(place) => place,
                None => place.insert(keep(&mut self.copies, &mut entry.contents, self.limit)?),
            };
            *best = Some(Best { target: target.clone(), place: place.clone() });
        }
        Ok(())
    }
}

/// Sees to it that the bytes of an entry can be had after the walk.
///
/// `limit` is the size of the input.
fn keep(
    copies: &mut Option<File>,
    contents: &mut Contents<'_, '_, '_>,
    limit: usize,
) -> io::Result<Place> {
    match contents {
        Contents::File(offset, size) => Ok(Place::Input(*offset, *size)),
        Contents::Now(image) => {
            let copies = match copies {
                Some(copies) => copies,
                none => none.insert(tempfile::tempfile()?),
            };
            let offset = copies.stream_position()?;
            let size = io::copy(&mut image.reader(), copies)?;
            Ok(Place::Copy(offset, size))
        }
        Contents::Host(image) => {
            let mut object = Vec::new();
            object.try_reserve_exact(limit).map_err(|_| io::ErrorKind::OutOfMemory)?;
            if let Some(mut reader) = image.enclosing_object() {
                reader.read_to_end(&mut object)?;
            }
            let host = remove_bundle_sections(&object).map_err(io::Error::other)?;
            Ok(Place::Host(host.into()))
        }
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
