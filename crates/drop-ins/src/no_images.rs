//! The reason why a file holds no images, in words.

use fat_object::{FileFormat, Summary};

/// Returns the reason why a file holds no images: an error if that is not known.
pub fn no_images(summary: &Summary) -> Result<String, String> {
    match summary.format {
        format if !format.is_read() => Err(not_read(format)),
        _ => Ok(none(summary)),
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

fn none(summary: &Summary) -> String {
    match summary.format {
        FileFormat::Empty => "the file is empty".to_owned(),
        FileFormat::LinkerScript => "no device images: linker script".to_owned(),
        FileFormat::Bitcode => "no device images: LLVM bitcode that embeds none".to_owned(),
        _ => "no device images".to_owned(),
    }
}
