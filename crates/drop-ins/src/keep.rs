//! Images chosen while a file is walked, whose outputs are to be had only when all of it was seen.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use fat_edit::PlacedHost;
use fat_object::{Image, Location};
use object_edit::{ErrorKind, HostObject};

use tool_kit::output::{self, How, Name, Outputs};
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::scratch;

/// The place of the bytes of a selected image.
#[derive(Clone, Debug)]
pub enum Kept {
    /// In the walked file: offset and size.
    Input(u64, u64),
    /// In the walked file: the host object of a placeholder.
    Host(HostObject),
    /// In the output already, which has its name when all outputs have.
    Written(u64),
    /// In a file of copies: offset and size.
    Copy(u64, u64),
}

impl Kept {
    /// Returns the size of the image in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Kept::Input(_, size) | Kept::Written(size) | Kept::Copy(_, size) => *size,
            Kept::Host(host) => host.size(),
        }
    }
}

/// Keeps images for their outputs.
#[derive(Debug)]
pub struct Keeper<'o> {
    outputs: &'o mut Outputs,
    /// Permissions of new files.
    new_permissions: NewPermissions,
    /// Copies for outputs that cannot be taken back, such as standard output.
    copies: Option<File>,
}

impl<'o> Keeper<'o> {
    /// Creates a keeper of images for these outputs.
    pub fn new(outputs: &'o mut Outputs, new_permissions: NewPermissions) -> Self {
        Keeper { outputs, new_permissions, copies: None }
    }

    /// Makes outputs no more readable than this file, the source of the next images.
    pub fn narrow(&mut self, file: &File) -> io::Result<()> {
        self.new_permissions = self.new_permissions.and_of(file)?;
        Ok(())
    }

    /// Sees to it that an image can be written to an output after the walk. Bytes kept for this
    /// output before are dropped.
    ///
    /// A placeholder of the host is kept as the host object. [`InvalidData`](io::ErrorKind::InvalidData) if the object
    /// in the input is malformed.
    pub fn keep(&mut self, image: &mut Image<'_, '_>, output: &Path) -> io::Result<Kept> {
        match fat_edit::host_object(image)? {
            Some(PlacedHost::InFile(host)) => return Ok(Kept::Host(host)),
            Some(PlacedHost::Bytes(host)) => return self.take(output, |out| out.write_all(&host)),
            _ => {}
        }
        match image.location() {
            Location::File(offset) => Ok(Kept::Input(offset, image.size())),
            _ => self.take(output, |out| image.pieces(&mut |piece| out.write_all(piece))),
        }
    }

    fn take(
        &mut self,
        output: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Kept> {
        if Outputs::appears_late(output) {
            let write = |file: &mut File| {
                write(file)?;
                file.stream_position()
            };
            let name = Name::Typed(output.to_owned());
            return self
                .outputs
                .write(&name, self.new_permissions.into(), write)
                .map(Kept::Written);
        }
        let copies = match &mut self.copies {
            Some(copies) => copies,
            none => none.insert(scratch::file("images from compressed containers")?),
        };
        let offset = copies.stream_position()?;
        write(copies)?;
        Ok(Kept::Copy(offset, copies.stream_position()? - offset))
    }

    /// Writes the kept image of each output as `write` does, with several threads.
    pub fn write_all(
        &mut self,
        threads: Threads,
        input: &File,
        all: Vec<(Option<Kept>, &Path)>,
    ) -> io::Result<()> {
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        for (kept, output) in all {
            match kept {
                Some(Kept::Input(offset, size)) if Outputs::appears_late(output) => {
                    parts.push((Name::Typed(output.to_owned()), offset..offset + size));
                }
                kept => others.push((kept, output)),
            }
        }
        self.outputs.write_parts(threads, input, self.new_permissions, &parts)?;
        others.into_iter().try_for_each(|(kept, output)| self.write(kept, input, output))
    }

    /// Writes the kept image to its output; without one, writes an empty file. `input` is the walked file.
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the input ends early.
    fn write(&mut self, kept: Option<Kept>, input: &File, output: &Path) -> io::Result<()> {
        let (copies, how) = (&self.copies, How::from(self.new_permissions));
        let (from, offset, size) = match kept {
            Some(Kept::Written(_)) => return Ok(()),
            Some(Kept::Host(host)) => {
                return self.outputs.write_or_print(output, how, |out| {
                    host.write(&mut &*input, out).map_err(|error| match error.kind() {
                        // The file became shorter meanwhile.
                        ErrorKind::InputChanged => io::ErrorKind::UnexpectedEof.into(),
                        _ => error.into(),
                    })
                });
            }
            Some(Kept::Input(offset, size)) => (Some(input), offset, size),
            Some(Kept::Copy(offset, size)) => (copies.as_ref(), offset, size),
            None => (None, 0, 0),
        };
        self.outputs.write_or_print(output, how, |out| match from {
            Some(from) => output::copy_part(from, offset..offset + size, out).map(drop),
            None => out.flush(),
        })
    }
}
