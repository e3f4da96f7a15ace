//! The inputs of a link, and their files.

use std::io::{self, Read, Seek};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use offload_link::{DeviceCode, Inputs};

use tool_kit::opened::Opened;
use tool_kit::payload::Payload;
use tool_kit::positioned::Positioned;
use tool_kit::{input, parallel};

/// Files that a thread takes at once: looking into one takes microseconds.
pub(super) const AT_ONCE: usize = 16;

/// Inputs that were searched for device code, and the files that the code is in, in the same order.
#[derive(Debug, Default)]
pub struct Sources {
    /// The contents of the files, for the link.
    pub inputs: Inputs<'static>,
    /// The files, in the order of their numbers in `inputs`.
    pub files: Vec<Payload>,
}

/// A file to search, and whether members of it are objects.
#[derive(Debug)]
pub struct Input {
    /// The path of the file.
    pub path: PathBuf,
    /// `true` to link all members of an archive.
    pub is_whole: bool,
}

impl Sources {
    /// Searches files, several at the same time. `open` returns `None` for files that are passed over.
    ///
    /// Symbols decide which members with device code are linked: without such members they are not read. Otherwise the
    /// files are read once more.
    pub fn read(
        threads: NonZeroUsize,
        inputs: &[Input],
        reads_symbols: bool,
        open: impl Fn(&Path) -> io::Result<Option<Opened>> + Sync,
    ) -> io::Result<Sources> {
        let mut searched = Vec::new();
        let mut sources = Sources::default();
        let first = |found: &mut Inputs<'static>, input: &Input| {
            let Some(opened) = open(&input.path)? else { return Ok(None) };
            if Positioned::shares() {
                search(found, input, opened.reader())?;
            } else {
                search(found, input, &opened.file)?;
            }
            Payload::of_opened(&input.path, opened).map(Some)
        };
        sources.inputs = each(threads, inputs, Inputs::new, first, |input, file| {
            if let Some(file) = file {
                sources.files.push(file);
                searched.push(input);
            }
        })?;
        if reads_symbols && sources.inputs.codes().iter().any(DeviceCode::is_lazy) {
            let again: Vec<_> = searched.into_iter().zip(&sources.files).collect();
            let second = |found: &mut Inputs<'static>, (input, file): &(&Input, &Payload)| {
                file.read_parts(|open| search(found, input, open.file()))
            };
            let new = || Inputs::new().with_symbols();
            sources.inputs = each(threads, &again, new, second, |_, ()| {})?;
        }
        Ok(sources)
    }
}

/// Searches several files at the same time, and hands out in order what `search` returns beside what it found.
fn each<'f, F: Sync, T: Send>(
    threads: NonZeroUsize,
    files: &'f [F],
    new: impl Fn() -> Inputs<'static> + Sync,
    search: impl Fn(&mut Inputs<'static>, &F) -> io::Result<T> + Sync,
    mut done: impl FnMut(&'f F, T),
) -> io::Result<Inputs<'static>> {
    let mut inputs = new();
    let some: Vec<_> = files.chunks(AT_ONCE).collect();
    let search = |files: &&'f [F]| {
        let mut found = new();
        let all = files.iter().map(|file| Ok((file, search(&mut found, file)?)));
        let all = all.collect::<io::Result<Vec<_>>>()?;
        Ok((found, all))
    };
    parallel::in_order(threads, &some, search, |_, found: io::Result<_>| {
        let (found, all) = found?;
        inputs.append(found);
        all.into_iter().for_each(|(file, result)| done(file, result));
        Ok::<_, io::Error>(())
    })?;
    Ok(inputs)
}

fn search(inputs: &mut Inputs<'static>, input: &Input, file: impl Read + Seek) -> io::Result<()> {
    let path = &input.path;
    let open = |member: &[u8]| input::open_thin_member(path, member);
    inputs.whole_archive(input.is_whole);
    inputs.read(&input::display(path), file, open)?;
    Ok(())
}
