//! The reason why a file holds no images, in words.

use device_code::FileFormat;

use crate::walker::Summary;

impl Summary {
    /// Returns the reason why a file without images holds none, in words.
    ///
    /// ```
    /// let mut walk = fat_object::Walk::new(std::io::Cursor::new("{}"), &fat_object::Options::default())?;
    /// while walk.next()?.is_some() {}
    /// let why = walk.summary().no_images();
    /// assert_eq!(why.unwrap_err(), "unknown format: expected an object, library, archive or container");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// It is not known whether it holds any: the format is one that is not read. The text says so, with a remedy.
    pub fn no_images(&self) -> Result<String, String> {
        let why = match self.format {
            format if !format.is_read() => return Err(not_read(format)),
            FileFormat::Empty => "the file is empty",
            FileFormat::LinkerScript => "no device images: linker script",
            FileFormat::Bitcode => "no device images: LLVM bitcode that embeds none",
            _ => "no device images",
        };
        Ok(why.to_owned())
    }
}

/// Returns the reason why files of a format are not read, and a remedy.
fn not_read(format: FileFormat) -> String {
    match format {
        FileFormat::Unknown => {
            "unknown format: expected an object, library, archive or container".to_owned()
        }
        FileFormat::Zip | FileFormat::Tar | FileFormat::Deb | FileFormat::Rpm => {
            let article = article(format);
            format!(
                "is {article}{format}: read as a file with a name only, not from a pipe or another file"
            )
        }
        FileFormat::SevenZip | FileFormat::Squashfs | FileFormat::Sqlite | FileFormat::TensorRt => {
            format!("is {}{format}: not read", article(format))
        }
        // Often a tar archive inside.
        format => format!("is {format}: not read; decompress it first"),
    }
}

fn article(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Rpm | FileFormat::Sqlite => "an ",
        FileFormat::SevenZip | FileFormat::Squashfs | FileFormat::TensorRt => "a ",
        FileFormat::Zip | FileFormat::Tar | FileFormat::Deb => "a ",
        _ => "",
    }
}
