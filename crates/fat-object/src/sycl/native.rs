//! Machine code for several of Intel's GPUs in one image: archives that Intel's offline compiler `ocloc` makes.

use object::read::archive::ArchiveFile;

/// Returns the names of the members of an `ocloc` archive, without the word size before them and the padding between
/// them: IP versions such as `12.60.7`, and `generic_ir` for SPIR-V. `None` for other bytes.
pub(crate) fn gpus(image: &[u8]) -> Option<Vec<String>> {
    let archive = ArchiveFile::parse(image).ok()?;
    let mut names = Vec::new();
    for member in archive.members() {
        let name = String::from_utf8_lossy(member.ok()?.name()).into_owned();
        if !name.starts_with("pad") {
            names.push(name.strip_prefix("64.").map(str::to_owned).unwrap_or(name));
        }
    }
    Some(names)
}
