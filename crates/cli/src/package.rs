//! Packages: the members that may hold device code.

use std::fs::File;
use std::io::{self, Read};
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

    /// Returns the bytes of a member; `None` if it is nothing that holds device code.
    ///
    /// # Errors
    ///
    /// Those of reading; a member of more than `max` bytes.
    pub(crate) fn read(&self, member: &Member, max: u64) -> io::Result<Option<Vec<u8>>> {
        if member.is_directory() || member.size() == 0 {
            return Ok(None);
        }
        let mut reader = self.zip.open(member, Positioned::new(&self.file))?;
        let mut bytes = Vec::new();
        reader.by_ref().take(HEAD).read_to_end(&mut bytes)?;
        let format = FileFormat::sniff(&bytes);
        if !format.is_read() || matches!(format, FileFormat::Empty | FileFormat::LinkerScript) {
            return Ok(None);
        }
        if member.size() > max {
            let size = member.size();
            let text = format!("has {size} bytes, more than --max-decompressed={max}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        reader.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}
