//! Placement of bundles: they stay, or close up, or get a new segment.

use std::collections::BTreeMap;

use byte_parts::Source;

use super::Editor;
use super::file::{File, is_allocated, segment_addresses, up};
use super::layout::{Bundle, Layout, PAGE, Task, pack, stay};
use super::references::foreign_references;
use super::room::Room;
use super::validate::is_x86_64;
use super::wrappers::PointerForm;
use crate::error::{Error, ErrorKind};
use crate::linked::host::HostContext;
use crate::pod::LE;

impl Editor<'_> {
    /// Computes the new places.
    pub(super) fn lay_out(
        &self,
        source: &mut Source<'_>,
        context: HostContext<'_>,
        bundles: &[Bundle],
    ) -> Result<Layout, Error> {
        let options = context.options;
        let may_stay = options.stay;
        let room = Room::find(self.file, self.dynamic, self.slot);
        let (mut align, may_lower) = alignment(self.file);
        let lowered_from = lowered_from(self.file);
        if lowered_from.is_some() {
            align = PAGE;
        }
        let raised = lowered_from.filter(|_| may_stay);
        let task = |starts: Vec<u64>, grown: bool| {
            let (file, slot, room) = (self.file, self.slot, &room);
            let task = Task { file, slot, room, bundles, starts, grown };
            if may_lower && !may_stay {
                let layout = task.lay_out(PAGE, true);
                if layout.as_ref().is_ok_and(|layout| layout.freed(slot) > 0) {
                    return layout;
                }
            }
            task.lay_out(align, false).map(|layout| Layout { raised, ..layout })
        };
        let (start, end) = (self.slot.start, self.slot.end(align));
        let stays = stay(bundles, end);
        if let Some(starts) = stays.clone().filter(|_| may_stay)
            && let Ok(layout) = task(starts, false)
        {
            return Ok(layout);
        }
        let packed = pack(bundles, start, end, self.align);
        // For the error. An alignment may be 2^63.
        let sizes = bundles.iter().map(|bundle| up(bundle.size, self.align));
        let needed = sizes.fold(0, u64::saturating_add);
        let no_room = || Error::no_room(needed, self.slot.available(align));
        if stays.is_none() && packed.is_none() && !options.grow {
            return Err(no_room());
        }
        let mut layouts = Vec::new();
        let mut pins = None;
        // The first bundle does not move when they close up.
        if packed.is_some() && packed != stays {
            pins = Some(self.pins(source, bundles)?);
            let mut pinned = bundles.to_vec();
            for &bundle in pins.iter().flat_map(BTreeMap::keys) {
                if let Some(bundle) = pinned.get_mut(bundle) {
                    bundle.pinned = true;
                }
            }
            layouts.extend(
                pack(&pinned, start, end, self.align).map(|starts| (starts, stays.is_none())),
            );
        }
        let mut fits = packed.is_some();
        layouts.extend(stays.map(|starts| (starts, true)));
        for (starts, is_last) in layouts {
            match task(starts, false) {
                // Without a gain nothing moves.
                Ok(layout) if is_last || layout.freed(self.slot) > 0 => return Ok(layout),
                Err(error) if options.grow && error.kind() == ErrorKind::NoRoom => fits = false,
                Err(error) if is_last => return Err(error),
                _ => {}
            }
        }
        // All of them move now, or would if they could.
        let pins = match pins {
            Some(pins) => pins,
            None => self.pins(source, bundles)?,
        };
        if let Some((_, why)) = pins.into_iter().find(|&(n, _)| n > 0 || !fits) {
            return Err(why);
        }
        let memory = self.file.loads().map(|load| segment_addresses(load).end);
        let start = up(memory.max().unwrap_or(0), align);
        let starts = pack(bundles, start, u64::MAX >> 1, self.align).ok_or_else(no_room)?;
        task(starts, true)
    }

    /// Returns the bundles that must not move, and why: the first reason for each.
    fn pins(
        &self,
        source: &mut Source<'_>,
        bundles: &[Bundle],
    ) -> Result<BTreeMap<usize, Error>, Error> {
        let starts: Vec<u64> = bundles.iter().map(|bundle| bundle.old.start).collect();
        let end = bundles.last().map_or(self.slot.start, |bundle| bundle.old.end);
        let slot = self.slot.start..end;
        let mut pins = BTreeMap::new();
        for wrapper in self.wrappers {
            let PointerForm::Unknown { kind } = wrapper.form else { continue };
            let address = wrapper.pointer();
            let pinned = match starts.binary_search(&wrapper.bundle) {
                Ok(bundle) => bundle..bundle + 1,
                // It may be any.
                Err(_) if pins.len() < bundles.len() => 0..bundles.len(),
                Err(_) => 0..0,
            };
            for bundle in pinned {
                pins.entry(bundle).or_insert_with(|| Error::pointer_form(bundle, address, kind));
            }
        }
        let foreign = foreign_references(source, self.file, self.wrappers, &slot, &starts)?;
        for (bundle, address) in foreign {
            pins.entry(bundle).or_insert_with(|| Error::foreign_reference(bundle, address));
        }
        Ok(pins)
    }
}

/// Returns the alignment of a file's segments before an edit lowered it: the segment with the headers still has it.
fn lowered_from(file: &File) -> Option<u64> {
    let (align, was_lowered) = alignment(file);
    let mut heads = file.loads().filter(|load| load.p_align.get(LE) > PAGE);
    let is_kept = heads.all(|load| load.p_offset.get(LE) == 0 && load.p_align.get(LE) == align);
    let others = file.loads().any(|load| load.p_offset.get(LE) > 0);
    (was_lowered && is_kept && others).then_some(align)
}

/// Returns the alignment of segments, and whether it may be lowered to a page.
fn alignment(file: &File) -> (u64, bool) {
    let align = file.loads().map(|load| load.p_align.get(LE)).fold(PAGE, u64::max);
    let mut sections = file.sections.iter().filter(|section| is_allocated(section));
    let plain = sections.all(|section| section.sh_addralign.get(LE) <= PAGE);
    (align, align > PAGE && plain && is_x86_64(file))
}
