//! The new contents of a section, and where in it things are that others refer to.

use std::ops::Range;

use super::host::SectionChange;
use super::relayout::{Piece, lay_out};
use crate::error::Error;
use crate::output::{self, Output};

/// Relocations relative to their own place have the distance from there to the end of the instruction in their
/// addend: so much may lie between what they say and what they mean.
const BIAS: u64 = 64;

/// A section whose contents change.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) contents: Output,
    pub(super) moves: Moves,
}

impl Changed {
    /// Plans the contents of the section at `range` with this alignment; `None` when they do not change. `change` is
    /// not [`SectionChange::Removed`].
    pub(super) fn new(
        range: &Range<u64>,
        align: u64,
        change: SectionChange,
    ) -> Result<Option<Self>, Error> {
        let mut items = Vec::new();
        let mut pieces = Vec::new();
        match change {
            SectionChange::Removed => return Ok(None),
            SectionChange::Contents(new) if output::is_copy_of(&new, range) => return Ok(None),
            SectionChange::Contents(new) => {
                let old = 0..range.end - range.start;
                items.push(Moved { new: 0..new.size(), old: old.clone(), fate: Fate::Changed });
                pieces.push(Piece { new: Some(new), ..Piece::kept(old, 1) });
            }
            SectionChange::Items(all) if !all.iter().any(|item| item.is_changed()) => {
                return Ok(None);
            }
            SectionChange::Items(all) => {
                for item in all {
                    if item.old.start < range.start || item.old.end > range.end {
                        return Err(Error::shared_bytes(item.old.start, item.old.end));
                    }
                    let old = item.old.start - range.start..item.old.end - range.start;
                    let fate = match item.is_changed() {
                        false => Fate::Kept,
                        true if item.new.is_none() => Fate::Gone,
                        true => Fate::Changed,
                    };
                    items.push(Moved { old: old.clone(), new: old.clone(), fate });
                    pieces.push(Piece {
                        new: item.new.filter(|_| fate == Fate::Changed),
                        gone: fate == Fate::Gone,
                        ..Piece::kept(old, align)
                    });
                }
                // Zeros before the new first content would hide it, if only its start identifies it.
                let next: Vec<u64> = pieces.iter().skip(1).map(|piece| piece.old.start).collect();
                let gone = pieces.iter_mut().take_while(|piece| piece.gone);
                for (piece, next) in gone.zip(next) {
                    piece.old.end = piece.old.end.max(next);
                }
            }
        }
        let layout = lay_out(range, &pieces)?;
        for (item, place) in items.iter_mut().zip(layout.places) {
            item.new = place;
        }
        items.sort_by_key(|item| item.old.start);
        Ok(Some(Changed { contents: layout.splices, moves: Moves::new(items) }))
    }
}

/// The old and the new places of the containers of a section. Offsets count from its start.
#[derive(Debug)]
pub(super) struct Moves {
    /// By their old places.
    items: Vec<Moved>,
    /// The first one that is not where it was.
    first_moved: Option<usize>,
}

#[derive(Debug)]
struct Moved {
    old: Range<u64>,
    new: Range<u64>,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Changed,
    Gone,
}

/// Something in the section.
struct Point {
    offset: u64,
    /// `true` if what was there is there.
    exact: bool,
    /// The container that it belongs to.
    item: usize,
}

/// A reference to a section, as a relocation makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// The value of the symbol: an offset in the section.
    pub(super) symbol: u64,
    /// `true` if it is the symbol of the section, whatever is where in it.
    pub(super) of_section: bool,
    pub(super) addend: Addend,
}

/// The addend of a relocation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Addend {
    /// The sum is what is meant.
    Known(i64),
    /// The sum says where the target is, from some place nearby.
    About(i64),
    Unknown,
}

/// The reason why a reference cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Its form is not understood, and this container must move.
    Form(usize),
    /// It is to the inside of this container, which changes, or to one that goes.
    Inside(usize),
}

impl Lost {
    /// Returns the error, for the relocation of this type at this offset.
    pub(super) fn at(self, address: u64, kind: u32) -> Error {
        match self {
            Lost::Form(bundle) => Error::pointer_form(bundle, address, kind),
            Lost::Inside(bundle) => Error::foreign_reference(bundle, address),
        }
    }
}

impl Moves {
    fn new(items: Vec<Moved>) -> Self {
        let moves = |item: &Moved| item.fate == Fate::Gone || item.old.start != item.new.start;
        let first_moved = items.iter().position(moves);
        Moves { items, first_moved }
    }

    fn point(&self, at: u64) -> Point {
        let behind = self.items.partition_point(|item| item.old.start <= at);
        let Some((index, item)) =
            behind.checked_sub(1).and_then(|index| Some((index, self.items.get(index)?)))
        else {
            return Point { offset: at, exact: true, item: 0 };
        };
        let into = (at - item.old.start).min(item.new.end - item.new.start);
        let moved = item.new.start + into;
        let (offset, exact) = match item.fate {
            Fate::Gone if at < item.old.end => (item.new.start, false),
            Fate::Kept if at < item.old.end => (moved, true),
            Fate::Changed if at < item.old.end => (moved, at == item.old.start),
            // After the last one, the old contents follow. It may be the value of a symbol, which may be anything.
            _ if behind == self.items.len() => {
                (item.new.end.saturating_add(at - item.old.end), true)
            }
            _ => (item.new.end, at == item.old.end),
        };
        Point { offset, exact, item: index }
    }

    /// Returns the new place of a symbol with this value.
    pub(super) fn value(&self, at: u64) -> u64 {
        self.point(at).offset
    }

    /// Returns the size of a symbol with this value and size.
    pub(super) fn size(&self, at: u64, size: u64) -> u64 {
        // A symbol may have any value.
        let end = at.saturating_add(size);
        let ends = self.items.partition_point(|item| item.old.end < end);
        let item = self.items.get(ends).filter(|item| item.old.end == end && item.old.start >= at);
        let end = item.map_or_else(|| self.value(end), |item| item.new.end);
        // It has none if its bytes are gone.
        end.saturating_sub(self.value(at))
    }

    /// Returns the first container that is not where it was.
    fn first_moved(&self) -> Option<(usize, &Moved)> {
        self.first_moved.and_then(|index| Some((index, self.items.get(index)?)))
    }

    /// Returns whether all containers are where they were.
    pub(super) fn stay(&self) -> bool {
        self.first_moved.is_none()
    }

    /// Returns the addend that keeps the target of the reference; `None` when it does not change.
    pub(super) fn addend(&self, reference: Reference) -> Result<Option<i64>, Lost> {
        let Reference { symbol, of_section, addend } = reference;
        let first_moved = self.first_moved();
        let known = match (addend, first_moved) {
            (Addend::Known(addend), _) => addend,
            (_, None) => return Ok(None),
            (addend, Some((index, first))) => {
                let safe = match (addend, of_section) {
                    (Addend::About(about), true) => {
                        symbol.checked_add_signed(about).is_none_or(|at| {
                            at.checked_add(BIAS).is_some_and(|end| end < first.old.start)
                        })
                    }
                    (Addend::About(about), false) => about.unsigned_abs() <= BIAS,
                    (_, of_section) => !of_section,
                };
                return if safe { Ok(None) } else { Err(Lost::Form(index)) };
            }
        };
        let Some(at) = symbol.checked_add_signed(known) else {
            return if self.stay() { Ok(None) } else { Err(Lost::Inside(0)) };
        };
        let point = self.point(at);
        if !point.exact {
            return Err(Lost::Inside(point.item));
        }
        // Section symbols stay where they are.
        let symbol = if of_section { symbol } else { self.value(symbol) };
        let new = point.offset.wrapping_sub(symbol).cast_signed();
        Ok((new != known).then_some(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linked::host::Item;

    /// Returns three bundles of the section at 1000..1640: one unchanged, one of another length, one unchanged.
    fn moved(new: u64) -> Moves {
        let zeros = |n| {
            let mut zeros = Output::new();
            zeros.push_zeros(n);
            (n > 0).then_some(zeros)
        };
        let items = vec![
            Item { old: 1000..1100, new: Some(output::copy_of(&(1000..1100))), joined: false },
            Item { old: 1256..1300, new: zeros(new), joined: false },
            Item { old: 1512..1630, new: Some(output::copy_of(&(1512..1630))), joined: false },
        ];
        let change = SectionChange::Items(items);
        Changed::new(&(1000..1640), 256, change).unwrap().unwrap().moves
    }

    #[test]
    fn symbols_move_with_their_bundles() {
        let moves = moved(300);
        for (old, new) in [
            (0, 0),
            (99, 99),
            (100, 100),
            (120, 100),
            (256, 256),
            (299, 299),
            (512, 768),
            (640, 896),
        ] {
            assert_eq!(moves.value(old), new, "{old}");
        }
        assert_eq!(moves.size(0, 100), 100);
        assert_eq!(moves.size(256, 44), 300);
        assert_eq!(moves.size(0, 640), 896);
        assert_eq!(moves.size(512, 0), 0);
        // Without it the last one follows the first.
        let moves = moved(0);
        assert_eq!([512, 630, 256, 260].map(|at| moves.value(at)), [256, 374, 100, 100]);
        assert_eq!(moves.size(256, 44), 0);
    }

    #[test]
    fn references_move_or_are_lost() {
        let reference = |symbol, of_section, addend: i64, known: bool| {
            let addend = if known { Addend::Known(addend) } else { Addend::About(addend) };
            moved(300).addend(Reference { symbol, of_section, addend })
        };
        assert_eq!(reference(0, true, 0, true), Ok(None));
        assert_eq!(reference(0, true, 512, true), Ok(Some(768)));
        assert_eq!(reference(512, false, 0, true), Ok(None));
        assert_eq!(reference(512, false, -512, true), Ok(Some(-768)));
        assert_eq!(reference(512, false, 8, true), Ok(None));
        // Into one that changes, and what leads nowhere.
        assert_eq!(reference(0, true, 260, true), Err(Lost::Inside(1)));
        assert_eq!(reference(0, true, -4, true), Err(Lost::Inside(0)));
        // A reference of unknown form: by the section only before contents that move.
        assert_eq!(reference(0, true, 252, false), Ok(None));
        assert_eq!(reference(0, true, 508, false), Err(Lost::Form(2)));
        assert_eq!(reference(512, false, -4, false), Ok(None));
        assert_eq!(reference(0, false, 508, false), Err(Lost::Form(2)));
    }

    #[test]
    fn nothing_changes_without_a_change() {
        let same = vec![Item { old: 8..9, new: Some(output::copy_of(&(8..9))), joined: false }];
        let same = SectionChange::Items(same);
        assert!(Changed::new(&(8..20), 1, same).unwrap().is_none());
        let same = SectionChange::Contents(output::copy_of(&(8..20)));
        assert!(Changed::new(&(8..20), 1, same).unwrap().is_none());
    }
}
