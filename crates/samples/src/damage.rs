//! Damaged samples: what must hold for any input is asked of files that are almost right.

use crate::faulty;

/// About how many places of a sample are damaged: see [`faulty::places`].
const MOST_PLACES: u64 = 8;

/// Cuts the sample short and changes its bytes, and hands each result to the judge, which panics if an answer is wrong.
pub fn judge(sample: &[u8], judge: impl FnMut(&[u8])) {
    judge_at(sample, 0..sample.len(), judge);
}

/// Judges as [`judge`] does, at some of the places only.
pub fn judge_at(
    sample: &[u8],
    places: impl IntoIterator<Item = usize>,
    mut judge: impl FnMut(&[u8]),
) {
    let places = places.into_iter().collect::<Vec<_>>();
    let mut damaged = sample.to_vec();
    for nth in faulty::places(places.len() as u64, MOST_PLACES) {
        let at = places[nth as usize];
        judge(&sample[..at]);
        let byte = sample[at];
        // Numbers become 0, large, or one more or less; bits change alone and together.
        let values = [0, 1, 0x7f, 0x80, 0xff, byte ^ 1, byte.wrapping_add(1), !byte];
        let number = if faulty::is_thorough() { 3 } else { 1 };
        let values = values.iter().filter(|value| **value != byte).cycle().skip(at % 8);
        for &value in values.take(number) {
            damaged[at] = value;
            judge(&damaged);
        }
        damaged[at] = byte;
    }
}
