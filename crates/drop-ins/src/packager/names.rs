//! Generated names of extracted images.

use std::path::Path;

use fat_object::OffloadBinaryEntry;
use offload_binary::ImageKind;
use offload_binary::llvm::Release;

/// Returns the name for an image, as the release of LLVM gives it: `STEM-TRIPLE-ARCH.INDEX.EXTENSION`.
///
/// Triple and arch come from the file that is taken apart. Characters that could leave the directory, hide the name
/// or be refused by the system are replaced, unlike in LLVM.
pub(super) fn generated(
    release: Release,
    input: &[u8],
    entry: &OffloadBinaryEntry,
    index: usize,
) -> String {
    let stem = stem(input);
    let triple = part(entry.get("triple"));
    let arch = part(entry.get("arch"));
    let dash = if arch.is_empty() && release != Release::Llvm22 { "" } else { "-" };
    let extension = extension(release, entry.image_kind());
    let name = format!("{stem}-{triple}{dash}{arch}.{index}.{extension}");
    if cfg!(windows) { tool_kit::output::plain_name(&name, "") } else { name }
}

fn extension(release: Release, kind: ImageKind) -> &'static str {
    match kind {
        // Came with LLVM 23.
        ImageKind::SPIRV if release == Release::Llvm22 => "",
        // LLVM has an empty one for other kinds.
        kind => kind.extension().unwrap_or_default(),
    }
}

/// Returns the file name up to its last dot; empty for `.o`.
fn stem(input: &[u8]) -> String {
    let path = tool_kit::input::path(input);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = Path::new(name).display().to_string();
    match name.rsplit_once('.') {
        Some((stem, _)) => stem.to_owned(),
        None => name,
    }
}

/// Returns a string from the file, as a part of a file name; an empty part without the string, as LLVM has it.
fn part(value: Option<&[u8]>) -> String {
    tool_kit::file_part::file_part(&String::from_utf8_lossy(value.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_end_at_the_last_dot() {
        for (input, expected) in
            [("a.o", "a"), ("dir.d/a", "a"), ("a.b.o", "a.b"), (".o", ""), ("-", "-"), ("a.", "a")]
        {
            assert_eq!(stem(input.as_bytes()), expected, "{input}");
        }
    }

    #[test]
    fn parts_cannot_leave_the_directory() {
        let part = |text: &[u8]| part(Some(text));
        assert_eq!(part(b"../../x\\y\n\0\x1b[31m"), ".._.._x_y___[31m");
        assert_eq!(part(b"\xff\xfe"), "__");
        assert_eq!(part("ä".repeat(100).as_bytes()).len(), 80);
        if cfg!(unix) {
            assert_eq!(part(b"gfx90a:xnack+"), "gfx90a:xnack+");
        }
    }

    #[test]
    fn spirv_has_an_extension_since_llvm_23() {
        assert_eq!(extension(Release::Llvm22, ImageKind::SPIRV), "");
        assert_eq!(extension(Release::Llvm23, ImageKind::SPIRV), "spv");
        assert_eq!(extension(Release::Llvm22, ImageKind::CUBIN), "cubin");
        assert_eq!(extension(Release::Llvm23, ImageKind(99)), "");
    }
}
