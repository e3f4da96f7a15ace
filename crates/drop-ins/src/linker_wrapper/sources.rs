//! The inputs of a link, and their files.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use offload_link::Inputs;

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
    pub fn read(
        threads: NonZeroUsize,
        inputs: &[Input],
        reads_symbols: bool,
        open: impl Fn(&Path) -> io::Result<Option<Opened>> + Sync,
    ) -> io::Result<Sources> {
        let mut sources = Sources::default();
        let search = |inputs: &&[Input]| {
            let mut some = Sources::default();
            if reads_symbols {
                some.inputs = some.inputs.with_symbols();
            }
            for input in *inputs {
                if let Some(opened) = open(&input.path)? {
                    some.search(input, opened)?;
                }
            }
            Ok(some)
        };
        let inputs: Vec<_> = inputs.chunks(AT_ONCE).collect();
        parallel::in_order(threads, &inputs, search, |_, found: io::Result<Sources>| {
            let mut found = found?;
            sources.inputs.append(found.inputs);
            sources.files.append(&mut found.files);
            Ok::<_, io::Error>(())
        })?;
        Ok(sources)
    }

    fn search(&mut self, input: &Input, opened: Opened) -> io::Result<()> {
        let path = &input.path;
        let name = input::display(path);
        let open = |member: &[u8]| input::open_thin_member(path, member);
        self.inputs.whole_archive(input.is_whole);
        if Positioned::shares() {
            self.inputs.read(&name, Positioned::new(&opened.file), open)?
        } else {
            self.inputs.read(&name, &opened.file, open)?
        };
        self.files.push(Payload::of_opened(path, opened)?);
        Ok(())
    }
}
