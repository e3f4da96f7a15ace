//! The bytes of host files: their sections claim them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::{Source, Window};
use device_code::FileFormat;
use fat_object::{HostPartKind, PathStep, host_parts};

use crate::claims::sized;
use crate::kind::Kind;
use crate::ledger::{Label, Ledger};

/// The place of a host file: its space, its start there, and the depth of its claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) space: usize,
    pub(crate) start: u64,
    pub(crate) depth: u32,
}

/// Claims the parts of a host file, which lies in a window of the source. Returns the kind of the bytes between them.
pub(crate) fn claim_parts(
    ledger: &mut Ledger,
    source: &mut Source<'_>,
    window: &Range<u64>,
    place: Place,
    path: &Arc<[PathStep]>,
) -> io::Result<Kind> {
    let head = source.peek(window, FileFormat::SNIFF_LEN)?;
    let between = match FileFormat::sniff(&head) {
        FileFormat::Elf { .. } => Kind::Padding,
        FileFormat::Coff | FileFormat::Pe | FileFormat::MachO => Kind::HostOther,
        FileFormat::Wasm => return Ok(Kind::HostOther),
        FileFormat::Bitcode => return Ok(Kind::HostCode),
        FileFormat::Deb => return Ok(Kind::Container),
        other if other.is_container() => return Ok(Kind::Container),
        _ => return Ok(Kind::NotUnderstood),
    };
    let Some(parts) = host_parts(source, window)? else { return Ok(Kind::NotUnderstood) };
    let whole = Window::new(&sized(place.start, Window::new(window).len()));
    for part in parts {
        // A file that was cut short has no bytes there.
        let end = part.range.end.min(whole.len());
        let Some(range) = whole.part(part.range.start.min(end)..end) else { continue };
        let rest = ledger.add_rest(kind_of(part.kind), path, &part.name);
        ledger.claim(place.space, range, place.depth + 1, Label::Rest(rest));
    }
    Ok(between)
}

fn kind_of(part: HostPartKind) -> Kind {
    match part {
        HostPartKind::Headers => Kind::HostHeaders,
        HostPartKind::DeviceCode => Kind::Container,
        HostPartKind::Registration => Kind::Registration,
        HostPartKind::Code => Kind::HostCode,
        HostPartKind::Symbols => Kind::HostSymbols,
        HostPartKind::Relocations => Kind::HostRelocations,
        HostPartKind::Debug => Kind::HostDebug,
        _ => Kind::HostData,
    }
}
