//! Packages: the members that may hold device code.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use fat_object::FileFormat;
use gpu_packages::{Member, Zip};

use crate::opened::open_regular;
use crate::positioned::Positioned;

/// The first bytes of a member tell whether a walk would read it.
const HEAD: u64 = 64;

/// A package that is open: a wheel or another zip archive.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) file: File,
    pub(crate) zip: Zip,
}

impl Package {
    /// Opens a file if it is a package; `None` if it is something else.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        if path.as_os_str() == "-" || !path.is_file() {
            return Ok(None);
        }
        let file = open_regular(path)?;
        let mut head = Vec::new();
        Positioned::new(&file).take(HEAD).read_to_end(&mut head)?;
        if FileFormat::sniff(&head) != FileFormat::Zip {
            return Ok(None);
        }
        let zip = Zip::read(Positioned::new(&file))?;
        Ok(Some(Package { file, zip }))
    }

    /// Returns a member as a file without a name, which lies in memory where the system can do that; `None` if it is nothing
    /// that holds device code.
    ///
    /// # Errors
    ///
    /// Those of reading; a member of more than `max` bytes.
    pub(crate) fn extract(&self, member: &Member, max: u64) -> io::Result<Option<File>> {
        if member.is_directory() || member.size() == 0 {
            return Ok(None);
        }
        let mut reader = self.zip.open(member, Positioned::new(&self.file))?;
        let mut head = Vec::new();
        reader.by_ref().take(HEAD).read_to_end(&mut head)?;
        let format = FileFormat::sniff(&head);
        if !format.is_read() || matches!(format, FileFormat::Empty | FileFormat::LinkerScript) {
            return Ok(None);
        }
        if member.size() > max {
            let size = member.size();
            let text = format!("has {size} bytes, more than --max-decompressed={max}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let mut file = nameless()?;
        file.write_all(&head)?;
        let mut buffer = vec![0; 1 << 17];
        loop {
            let n = reader.read(&mut buffer)?;
            if n == 0 {
                return Ok(Some(file));
            }
            file.write_all(buffer.get(..n).unwrap_or_default())?;
        }
    }

    /// Returns the bytes of a small member, such as a list of files.
    pub(crate) fn text(&self, member: &Member) -> io::Result<String> {
        if member.size() > MOST_OF_TEXT {
            let text = format!("{}: larger than {MOST_OF_TEXT} bytes", member.path());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let mut text = String::new();
        self.zip.open(member, Positioned::new(&self.file))?.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The most bytes of a list of files.
const MOST_OF_TEXT: u64 = 1 << 28;

/// Creates a file that has no name.
#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    match memfd_create("offload", MemfdFlags::CLOEXEC) {
        Ok(file) => Ok(file.into()),
        Err(_) => tempfile::tempfile(),
    }
}

/// Creates a file that has no name.
#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    tempfile::tempfile()
}
