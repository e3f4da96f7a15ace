//! Files of successive parts: some parts become longer or shorter, those after them move.

use std::ops::Range;

use crate::error::Error;
use crate::output::{self, Input, Output};
use crate::tables::absolute;

/// A part of a file, or of a section.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its range from the start of the file.
    pub(super) old: Range<u64>,
    /// A power of two, at least 1.
    pub(super) align: u64,
    /// Its new contents; `None` when it stays what it is.
    pub(super) new: Option<Output>,
    /// `true` if nothing replaces it, and the padding before it is removed, too.
    pub(super) gone: bool,
}

impl Piece {
    pub(super) fn kept(old: Range<u64>, align: u64) -> Self {
        Piece { old, align, new: None, gone: false }
    }

    fn changes(&self) -> bool {
        self.gone || self.new.is_some()
    }
}

/// Parts in their new layout.
#[derive(Debug)]
pub(super) struct Relayout {
    /// All of the new file.
    pub(super) splices: Output,
    /// The new range of each part, in the order in which they were given.
    pub(super) places: Vec<Range<u64>>,
}

/// Lays out the parts of the bytes in `window` of the edited file. Fails if two share bytes, and one of them has to change or to
/// move.
///
/// Parts before the first change stay. From there on each part follows the one that it followed, with the padding
/// that its alignment asks for and with what else was between them. So a part that gets its old length back puts
/// all the others where they were.
pub(super) fn lay_out(window: &Range<u64>, pieces: &[Piece]) -> Result<Relayout, Error> {
    let len = window.end - window.start;
    let absolute = |range: Range<u64>| absolute(window.start, &range);
    let mut places: Vec<_> = pieces.iter().map(|piece| piece.old.clone()).collect();
    let first = pieces.iter().filter(|piece| piece.changes()).map(|piece| piece.old.start).min();
    let Some(change) = first else {
        return Ok(Relayout { splices: output::copy_of(window), places });
    };
    // Padding before a changed part may change as well.
    let before = pieces.iter().filter(|piece| !piece.old.is_empty() && piece.old.end <= change);
    let first = before.map(|piece| piece.old.end).max().unwrap_or(change);
    // Empty parts come before parts that start at the same place.
    let mut order: Vec<_> = pieces.iter().zip(&mut places).collect();
    order.sort_by_key(|(piece, _)| (piece.old.start, piece.old.end));

    let mut splices = Output::new();
    splices.push_input(Input::File, absolute(0..first));
    let mut end = first;
    for (piece, place) in order {
        let Range { start, end: old_end } = piece.old;
        let is_before = old_end <= first || start == old_end && start < change;
        if !piece.changes() && (is_before || start == old_end && start > len) {
            continue;
        }
        if start < end {
            if start == old_end && !piece.changes() {
                *place = splices.size()..splices.size();
                continue;
            }
            return Err(Error::shared_bytes(start, old_end));
        }
        if piece.gone {
            *place = splices.size()..splices.size();
            end = old_end;
            continue;
        }
        if splices.size() == end {
            splices.push_input(Input::File, absolute(end..start));
        } else {
            // No more than the old place had, and no less: back again it would get another one.
            let align = piece.align.min(1 << start.trailing_zeros().min(62)).max(1);
            let off = if align < piece.align { align } else { 0 };
            let step = align + off;
            // Sizes of outputs do not grow past the largest number.
            let aligned = |at: u64| at.saturating_add(off.wrapping_sub(at) & (step - 1));
            splices.pad_to(aligned(splices.size()));
            splices.push_input(Input::File, absolute(aligned(end).min(start)..start));
        }
        let new_start = splices.size();
        match &piece.new {
            Some(new) => splices.append(new),
            None => splices.push_input(Input::File, absolute(start..old_end)),
        }
        *place = new_start..splices.size();
        end = old_end;
    }
    splices.push_input(Input::File, absolute(end.min(len)..len));
    Ok(Relayout { splices, places })
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "samples are small")]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::io::{Cursor, Read};

    fn text(input: &[u8], splices: &Output) -> String {
        let mut input = Cursor::new(input);
        let mut out = String::new();
        output::reader(splices, &mut input, &mut ()).read_to_string(&mut out).unwrap();
        out.replace('\0', ".")
    }

    fn bytes(text: &str) -> Output {
        output::of_bytes(text.as_bytes())
    }

    /// Lays out parts of `input`: a run of equal digits is one part.
    fn laid_out(input: &str, align: u64, change: &[(char, Option<&str>)]) -> String {
        let mut pieces = Vec::new();
        for digit in '1'..='9' {
            let Some(start) = input.find(digit) else { continue };
            let end = input.rfind(digit).unwrap() + 1;
            let mut piece = Piece::kept(start as u64..end as u64, align);
            if let Some((_, new)) = change.iter().find(|(c, _)| *c == digit) {
                piece.new = new.map(bytes);
                piece.gone = new.is_none();
            }
            pieces.push(piece);
        }
        let all = 0..input.len() as u64;
        let input = input.replace('.', "\0");
        let layout = lay_out(&all, &pieces).unwrap();
        let out = text(input.as_bytes(), &layout.splices);
        for (piece, place) in pieces.iter().zip(&layout.places) {
            let expected = match &piece.new {
                Some(new) => text(b"", new),
                None if piece.gone => String::new(),
                None => input[piece.old.start as usize..piece.old.end as usize].to_owned(),
            };
            assert_eq!(out[place.start as usize..place.end as usize], expected);
        }
        out
    }

    #[test]
    fn parts_after_a_change_keep_their_alignment() {
        assert_eq!(laid_out("h.11..2233.tail", 2, &[]), "h.11..2233.tail");
        // As long as before: only there.
        assert_eq!(laid_out("h.11..2233.tail", 2, &[('1', Some("ab"))]), "h.ab..2233.tail");
        // One more: the part after it goes to the next even place, and keeps the further distance of two.
        assert_eq!(laid_out("h.11..2233.tail", 2, &[('1', Some("abc"))]), "h.abc...2233.tail");
        assert_eq!(laid_out("h.11..2233.tail", 2, &[('1', Some("a"))]), "h.a...2233.tail");
        // Unaligned parts stay unaligned.
        assert_eq!(laid_out("h.1122233.", 2, &[('1', Some("abc"))]), "h.abc.22233.");
        assert_eq!(laid_out("h.11122.", 4, &[('1', Some("a"))]), "h.a22.");
    }

    #[test]
    fn a_reversed_change_restores_the_layout() {
        let input = "header..1111....22......33333.......4...5.end";
        let old = ["1111", "22", "33333", "4", "5"];
        for (digit, old) in ('1'..='5').zip(old) {
            for new in ["x", "xx", "xxxxx", "xxxxxxxxxxxxxxxxxxxxx"] {
                let out = laid_out(input, 4, &[(digit, Some(new))]);
                let out = out.replace('x', &digit.to_string());
                assert_eq!(laid_out(&out, 4, &[(digit, Some(old))]), input, "{digit} {new}");
            }
        }
    }

    #[test]
    fn a_reversed_change_restores_any_layout() {
        let mut number = 17_usize;
        let mut below = |end| {
            number = number.wrapping_mul(0x5851_f42d).wrapping_add(0x14d5_7f2d) & 0x7fff_ffff;
            number / 65_536 % end
        };
        for round in 0..2000 {
            let mut input = "h".repeat(below(9));
            let mut old = Vec::new();
            for digit in '1'..='5' {
                input += &".".repeat(below(12));
                old.push(digit.to_string().repeat(1 + below(40)));
                input += old.last().unwrap();
            }
            let align = 1 << below(5);
            let smaller = |old: &String| "x".repeat(1 + old.len() / (1 + round % 7));
            let new: Vec<String> = old.iter().map(smaller).collect();
            let changes = |from: &[String], to: &[String]| {
                let pairs = from.iter().zip(to).zip('1'..='5');
                pairs.map(|((_, to), digit)| (digit, to.clone())).collect::<Vec<_>>()
            };
            let numbered: Vec<String> = new
                .iter()
                .zip('1'..='5')
                .map(|(new, digit)| new.replace('x', &digit.to_string()))
                .collect();
            let apply = |input: &str, to: Vec<(char, String)>| {
                let to: Vec<(char, Option<&str>)> =
                    to.iter().map(|(digit, to)| (*digit, Some(&**to))).collect();
                laid_out(input, align, &to)
            };
            let out = apply(&input, changes(&old, &numbered));
            assert_eq!(apply(&out, changes(&numbered, &old)), input, "{align}: {out}");
        }
    }

    #[test]
    fn removed_parts_take_their_padding_along() {
        assert_eq!(laid_out("hhhh1...2...3.t", 4, &[('2', None)]), "hhhh1...3.t");
        assert_eq!(laid_out("hhhh1...2...3.t", 4, &[('1', None)]), "hhhh2...3.t");
        assert_eq!(laid_out("hhhh1...2...3.t", 4, &[('3', None)]), "hhhh1...2.t");
        assert_eq!(laid_out("hhhh1...2...3.t", 4, &[('2', None), ('3', None)]), "hhhh1.t");
        // Further distance stays with the part after it.
        assert_eq!(laid_out("hhhh1...2.......3.t", 4, &[('2', None)]), "hhhh1.......3.t");
    }

    #[test]
    fn empty_parts_stay_in_order() {
        let pieces = [
            Piece::kept(6..6, 2),
            Piece { new: Some(bytes("abcde")), ..Piece::kept(2..4, 2) },
            Piece::kept(6..8, 2),
            // In the middle of another one, before the change, and beyond the end.
            Piece::kept(7..7, 1),
            Piece::kept(1..1, 1),
            Piece::kept(99..99, 1),
        ];
        let layout = lay_out(&(0..10), &pieces).unwrap();
        assert_eq!(text(b"0123456789", &layout.splices), "01abcde.456789");
        let starts: Vec<_> = layout.places.iter().map(|place| place.start).collect();
        assert_eq!(starts, [10, 2, 10, 12, 1, 99]);
    }

    #[test]
    fn overlapping_parts_are_errors() {
        let changed = |range: Range<u64>| Piece { new: Some(bytes("x")), ..Piece::kept(range, 1) };
        let overlap = |pieces: &[Piece]| lay_out(&(0..10), pieces).map(|l| l.splices.size());
        let expect = |pieces: &[Piece], place: &str| {
            let text = format!("parts of the object at {place} share bytes with others");
            assert_eq!(overlap(pieces).unwrap_err(), (ErrorKind::Malformed, &*text));
        };
        expect(&[changed(2..4), Piece::kept(3..5, 1)], "0x3..0x5");
        expect(&[changed(2..4), Piece::kept(0..3, 1)], "0x0..0x3");
        // Before the change nobody minds.
        let apart = [changed(5..6), Piece::kept(0..3, 1), Piece::kept(2..5, 1)];
        assert_eq!(overlap(&apart).unwrap(), 10);
    }
}
