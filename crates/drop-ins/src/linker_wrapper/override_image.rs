//! `--override-image=KIND=FILE`: a file in place of what device links make.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::PathBuf;

use fat_object::image_target;
use offload_binary::OffloadKind;
use offload_link::{LinkTarget, LinkedImage};

use crate::llvm_cl::split_at_equals;
use tool_kit::input;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::permissions::NewPermissions;
use tool_kit::report::reason;

/// An image, its file, and the permissions of that.
pub(super) type Overriding = (LinkedImage, PathBuf, NewPermissions);

/// Reads the image. Its target is the target in the image, or the host's for other ELF files.
pub(super) fn read(value: &OsStr, host_triple: &str) -> io::Result<Overriding> {
    let bytes = input::bytes(value.to_owned());
    let (kind, path) = split_at_equals(&bytes);
    let kind = String::from_utf8_lossy(kind).into_owned();
    // LLVM's tool, too, opens an empty path without `=`.
    let path = input::path(path.unwrap_or_default());
    let mut image = Vec::new();
    let permissions = Opened::new(&path, MaxInput::default())
        .and_then(|opened| {
            opened.reader().read_to_end(&mut image)?;
            Ok(opened.permissions())
        })
        .map_err(|error| io::Error::other(format!("'{}': {}", path.display(), reason(&error))))?;
    if !image.starts_with(b"\x7fELF") {
        return Err(io::Error::other(format!(
            "Invalid ELF class: '{}' is not an ELF file",
            path.display()
        )));
    }
    let kind = OffloadKind::from_name(&kind).filter(|kind| *kind != OffloadKind::NONE);
    let kind = kind.ok_or_else(|| io::Error::other("none bundling is not supported"))?;
    let target = image_target(&image).and_then(|target| {
        let triple = target.triple()?.offload_binary_form().to_owned();
        Some(LinkTarget::new(triple, target.id()))
    });
    let target = target.unwrap_or_else(|| LinkTarget::new(host_triple, ""));
    let image = LinkedImage::new(target, image.into()).with_kinds([kind]);
    Ok((image, path, permissions))
}
