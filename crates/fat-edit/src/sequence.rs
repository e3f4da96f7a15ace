//! Containers one after the other, with zeros between them: a file of them, or a section.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use object_edit::{Input, Item, Output};

/// The HIP runtime maps bundles by the page: where linkers put one after another, each starts at a multiple of this.
const PAGE: u64 = 4096;

/// Returns the window with its containers replaced.
///
/// A container that starts at a multiple of 4096, counted from the start of the window, starts at one again. The zeros
/// before it are the zeros that this takes, and whole pages of zeros that were there. Before any other container there
/// are as many zeros as before. Nothing takes the place of a container that goes.
pub(crate) fn lay_out(
    source: &mut Source<'_>,
    window: &Range<u64>,
    items: Vec<Item>,
) -> io::Result<Output> {
    let mut out = Output::new();
    let mut at = window.start;
    let mut goes = false;
    for item in items {
        // Zeros before the first container would hide it.
        if !goes || out.size() > 0 {
            gap(&mut out, window, &(at..item.old.start));
        }
        goes = item.new.is_none();
        item.new.into_iter().for_each(|new| out.append(&new));
        at = item.old.end;
    }
    let tail = at..window.end;
    let is_short = (1..8).contains(&(tail.end - tail.start));
    if is_short && source.peek(&tail, 8)?.iter().all(|&byte| byte == b'\n') {
        // Members for Apple's linker are filled up to a multiple of 8, and the padding counts as part of them.
        let padding = usize::try_from(out.size().wrapping_neg() % 8).unwrap_or(0);
        if padding as u64 == tail.end - tail.start {
            out.push_input(Input::File, tail);
        } else {
            out.push_bytes(&vec![b'\n'; padding]);
        }
    } else {
        out.push_input(Input::File, tail);
    }
    Ok(out)
}

/// Returns the zeros for those in `gap`, after which a container follows.
fn gap(out: &mut Output, window: &Range<u64>, gap: &Range<u64>) {
    let (from, to) = (gap.start - window.start, gap.end - window.start);
    let old = to - from;
    let zeros = if to % PAGE == 0 {
        // The bytes that alignment took are computed again; further pages stay.
        let padding = |at: u64| at.wrapping_neg() % PAGE;
        old - padding(from) + padding(out.size())
    } else {
        old
    };
    if zeros == old { out.push_input(Input::File, gap.clone()) } else { out.push_zeros(zeros) }
}

/// Returns whether two containers are offload binaries, one directly after the other: only the end of the first shows
/// the place of the second.
pub(crate) fn follows(
    source: &mut Source<'_>,
    before: &Range<u64>,
    range: &Range<u64>,
) -> io::Result<bool> {
    let mut is_offload_binary = |range| -> io::Result<bool> {
        Ok(source.peek(range, offload_binary::MAGIC.len())? == offload_binary::MAGIC)
    };
    Ok(before.end == range.start && is_offload_binary(before)? && is_offload_binary(range)?)
}
