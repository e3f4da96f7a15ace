//! WebAssembly modules: sections one after the other (WebAssembly Core Specification, "Binary Format", "Modules").
//!
//! ```text
//! 00 61 73 6D 01 00 00 00   magic, version 1
//! id, LEB128, contents      a section: the length is that of the contents
//! 00, LEB128, LEB128 name   a custom section: its contents start with its name
//! ```

use std::io;
use std::ops::Range;

use byte_parts::Budget;
use byte_parts::wasm::{CUSTOM, HEADER, Head, LEB128_MAX, head, read_leb128};

use crate::containers::starts_with;
use crate::context::Context;
use crate::error::Error;
use crate::host::is_device_section;
use crate::opened::{Children, Start};
use crate::section::{Section, SectionContents};
use crate::sections::Sections;
use crate::source::Source;
use crate::sycl;
use crate::text::lossy;

/// Opens a module; `None` for components.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
) -> io::Result<Option<Box<dyn Children>>> {
    if source.peek(window, HEADER.len())? != HEADER {
        return Ok(None);
    }
    let mut sections = Vec::new();
    let mut headers = Budget::new(window.end - window.start);
    let mut at = window.start + HEADER.len() as u64;
    let mut fault = None;
    while at < window.end {
        let Some(section) = section(source, at, window.end)? else {
            let at = at - window.start;
            let detail = format!("no section that ends inside the file starts at {at:#x}");
            fault = Some(Error::of_object("WebAssembly", detail));
            break;
        };
        at = section.contents.end;
        let Some(name) = section.name else { continue };
        if let Err(error) = cx.take_names(name.end - name.start) {
            fault = Some(error);
            break;
        }
        let name = lossy(&source.read_range(&name)?);
        let holds_code = is_device_section(name.as_bytes())
            || name.starts_with(bundle_format::MAGIC_TEXT)
            || starts_with(source, &section.contents, &mut headers)? != Start::Nothing;
        // There may be many of the others.
        if holds_code {
            let Range { start, end } = section.contents;
            let range = start - window.start..end - window.start;
            sections.push(Section { name, range, contents: SectionContents::DeviceCode });
        }
    }
    let sections = Sections::new(cx, source, window, sections, sycl::Images::default())?;
    Ok(Some(Box::new(sections.with_fault(fault))))
}

/// The place of the name of a custom section, and of its contents.
struct CustomSection {
    name: Option<Range<u64>>,
    contents: Range<u64>,
}

/// Returns the section at `at`; `None` if there is none.
fn section(source: &mut Source<'_>, at: u64, window_end: u64) -> io::Result<Option<CustomSection>> {
    let first = source.peek(&(at..window_end), 1 + LEB128_MAX)?;
    let Some(Head { id, head_len, len, .. }) = head(&first) else { return Ok(None) };
    let start = at + head_len;
    let end = start + len;
    if end > window_end {
        return Ok(None);
    }
    if id != CUSTOM {
        return Ok(Some(CustomSection { name: None, contents: start..end }));
    }
    let first = source.peek(&(start..end), LEB128_MAX)?;
    let Some((name_len, leb128_len)) = read_leb128(&first) else { return Ok(None) };
    let start = start + leb128_len;
    let name = start..start + name_len;
    let contents = name.end..end;
    Ok(Some(CustomSection { name: Some(name), contents })
        .filter(|place| place.contents.start <= end))
}
