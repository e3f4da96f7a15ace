//! Claims to bytes, and who gets a byte that several claim.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// Something that says what bytes are.
#[derive(Clone, Debug)]
pub(crate) struct Claim<L, R = Reverse<u32>> {
    pub(crate) range: Range<u64>,
    /// The lowest rank wins: of the claim with the most claims around it.
    pub(crate) rank: R,
    pub(crate) label: L,
}

impl<L> Claim<L> {
    /// Creates a claim in this many others.
    pub(crate) fn new(range: Range<u64>, depth: u32, label: L) -> Self {
        Claim { range, rank: Reverse(depth), label }
    }
}

/// Returns the range of this many bytes: to the largest number, where headers state more.
pub(crate) fn sized(start: u64, len: u64) -> Range<u64> {
    start..start.saturating_add(len)
}

/// Gives each byte before `size` to the claim of the lowest rank. Claims of one rank are taken by their starts, then in their order.
/// `each` gets the pieces in order. Returns how many bytes two claims of the winner's rank share.
pub(crate) fn resolve<L, R: Copy + Ord>(
    size: u64,
    claims: &[Claim<L, R>],
    mut each: impl FnMut(usize, Range<u64>),
) -> u64 {
    let mut edges = Vec::with_capacity(2 * claims.len());
    for (index, claim) in claims.iter().enumerate() {
        let (start, end) = (claim.range.start, claim.range.end.min(size));
        if start < end {
            edges.push((start, index));
            edges.push((end, index));
        }
    }
    edges.sort_unstable();
    let mut active: BTreeSet<(R, u64, usize)> = BTreeSet::new();
    let (mut at, mut shared) = (0, 0);
    for (edge, index) in edges {
        let mut claimants = active.iter();
        if let Some(&(rank, _, winner)) = claimants.next()
            && at < edge
        {
            each(winner, at..edge);
            if claimants.next().is_some_and(|(other, ..)| *other == rank) {
                shared += edge - at;
            }
        }
        at = edge;
        let Some(claim) = claims.get(index) else { continue };
        let key = (claim.rank, claim.range.start, index);
        if !active.remove(&key) {
            active.insert(key);
        }
    }
    shared
}

/// Splits an amount by weights into parts that add up to it: by the largest remainders. The first one gets all if there are no weights.
#[must_use]
pub fn apportion(amount: u64, weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if total == u128::from(amount) {
        return weights.to_vec();
    }
    if total == 0 {
        let mut parts = vec![0; weights.len()];
        parts.iter_mut().take(1).for_each(|part| *part = amount);
        return parts;
    }
    let share = |weight: u64| u128::from(amount) * u128::from(weight);
    // A part is no more than the amount.
    let part = |weight: u64| u64::try_from(share(weight) / total).unwrap_or(amount);
    let mut parts: Vec<u64> = weights.iter().map(|weight| part(*weight)).collect();
    let left = amount - parts.iter().sum::<u64>();
    let mut order: Vec<(Reverse<u128>, usize)> = weights
        .iter()
        .enumerate()
        .map(|(at, weight)| (Reverse(share(*weight) % total), at))
        .collect();
    order.sort_unstable();
    // There are fewer bytes left than parts.
    for ((_, at), _) in order.into_iter().zip(0..left) {
        if let Some(part) = parts.get_mut(at) {
            *part += 1;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(size: u64, claims: &[(u64, u64, u32)]) -> (Vec<(usize, Range<u64>)>, u64) {
        let claims: Vec<_> =
            claims.iter().map(|(start, end, depth)| Claim::new(*start..*end, *depth, ())).collect();
        let mut pieces = Vec::new();
        let shared = resolve(size, &claims, |claim, range| pieces.push((claim, range)));
        (pieces, shared)
    }

    #[test]
    fn the_innermost_claim_and_then_the_first_one_gets_a_byte() {
        assert_eq!(
            resolved(10, &[(0, 10, 0), (2, 6, 1), (4, 8, 1), (5, 6, 2)]),
            (vec![(0, 0..2), (1, 2..4), (1, 4..5), (3, 5..6), (2, 6..8), (0, 8..10)], 1)
        );
        let beyond = [(0, 10, 0), (8, u64::MAX, 1), (u64::MAX, 3, 1), (20, 30, 1)];
        assert_eq!(resolved(10, &beyond), (vec![(0, 0..8), (1, 8..10)], 0));
        assert_eq!(resolved(0, &[(0, 10, 0)]), (vec![], 0));
    }

    #[test]
    fn each_byte_is_given_once() {
        // Claims of all kinds, by a small generator of numbers.
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let mut claims = vec![Claim::new(0..64, 0, ())];
            for _ in 0..next(12) {
                let start = next(70);
                claims.push(Claim::new(
                    start..start + next(20),
                    u32::try_from(next(4)).unwrap(),
                    (),
                ));
            }
            let mut owners = [None; 64];
            resolve(64, &claims, |claim, range| {
                for byte in range {
                    let owner = &mut owners[usize::try_from(byte).unwrap()];
                    assert_eq!(owner.replace(claim), None);
                }
            });
            for (byte, owner) in (0..64).zip(owners) {
                let claimants =
                    claims.iter().enumerate().filter(|(_, it)| it.range.contains(&byte));
                let winner = claimants.min_by_key(|(at, it)| (it.rank, it.range.start, *at));
                assert_eq!(owner, winner.map(|(at, _)| at));
            }
        }
    }

    #[test]
    fn parts_add_up() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(10, &[4, 6]), [4, 6]);
        assert_eq!(apportion(7, &[0, 0]), [7, 0]);
        assert_eq!(apportion(0, &[5, 0, 9]), [0, 0, 0]);
        assert_eq!(apportion(5, &[u64::MAX, u64::MAX, 0]), [3, 2, 0]);
        assert_eq!(apportion(u64::MAX, &[1, 2]).iter().sum::<u64>(), u64::MAX);
    }
}
