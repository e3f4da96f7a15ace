//! XXH64 with seed 0, the checksum of Zstandard frames, which `ruzstd` leaves to its caller, and which libzstd does not
//! see of frames that are decoded block by block.
//!
//! Clang writes frames without it; those that have it are checked, as libzstd does.

use alloc::vec::Vec;

use crate::header::to_u64;

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

fn round(acc: u64, lane: u64) -> u64 {
    acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn merge(hash: u64, acc: u64) -> u64 {
    (hash ^ round(0, acc)).wrapping_mul(P1).wrapping_add(P4)
}

/// The checksum of a frame with this content: the low half of the hash is what the format keeps.
#[cfg(feature = "ruzstd")]
pub(super) fn checksum(data: &[u8]) -> u32 {
    let mut hash = Xxh64::default();
    hash.update(data);
    hash.checksum()
}

const STRIPE: usize = 32;

/// Data that is hashed piece by piece.
#[derive(Clone, Debug)]
pub(super) struct Xxh64 {
    lanes: [u64; 4],
    /// Bytes of all data.
    len: u64,
    /// A stripe that is not full yet.
    rest: Vec<u8>,
}

impl Default for Xxh64 {
    fn default() -> Self {
        let lanes = [P1.wrapping_add(P2), P2, 0, 0_u64.wrapping_sub(P1)];
        Self { lanes, len: 0, rest: Vec::new() }
    }
}

impl Xxh64 {
    /// Hashes more data.
    pub(super) fn update(&mut self, mut data: &[u8]) {
        self.len = self.len.wrapping_add(to_u64(data.len()));
        if !self.rest.is_empty() {
            let missing = STRIPE.saturating_sub(self.rest.len());
            let (more, behind) = data.split_at(data.len().min(missing));
            self.rest.extend_from_slice(more);
            if self.rest.len() < STRIPE {
                return;
            }
            stripes(&mut self.lanes, &self.rest);
            self.rest.clear();
            data = behind;
        }
        self.rest.extend_from_slice(stripes(&mut self.lanes, data));
    }

    /// The low half of the hash.
    pub(super) fn checksum(&self) -> u32 {
        let [a, b, c, d, ..] = self.hash().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn hash(&self) -> u64 {
        let mut hash = if self.len < to_u64(STRIPE) {
            P5
        } else {
            let [a, b, c, d] = self.lanes;
            let hash = a
                .rotate_left(1)
                .wrapping_add(b.rotate_left(7))
                .wrapping_add(c.rotate_left(12))
                .wrapping_add(d.rotate_left(18));
            self.lanes.into_iter().fold(hash, merge)
        };
        hash = hash.wrapping_add(self.len);

        let (lanes, rest) = self.rest.as_chunks::<8>();
        for lane in lanes {
            hash = (hash ^ round(0, u64::from_le_bytes(*lane)))
                .rotate_left(27)
                .wrapping_mul(P1)
                .wrapping_add(P4);
        }
        let (words, rest) = rest.as_chunks::<4>();
        for word in words {
            hash = (hash ^ u64::from(u32::from_le_bytes(*word)).wrapping_mul(P1))
                .rotate_left(23)
                .wrapping_mul(P2)
                .wrapping_add(P3);
        }
        for &byte in rest {
            hash = (hash ^ u64::from(byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
        }

        hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
        hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
        hash ^ (hash >> 32)
    }
}

/// Hashes all full stripes; returns what is left.
fn stripes<'d>(lanes: &mut [u64; 4], data: &'d [u8]) -> &'d [u8] {
    let (stripes, rest) = data.as_chunks::<STRIPE>();
    for stripe in stripes {
        let (words, _) = stripe.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::Xxh64;

    #[test]
    fn known_values() {
        // As `xxhsum -H64` prints them.
        for (data, expected) in [
            (&b""[..], 0xef46_db37_51d8_e999),
            (b"a", 0xd24e_c4f1_a98c_6e5b),
            (b"abc", 0x44bc_2cf5_ad77_0999),
            (b"Nobody inspects the spammish repetition", 0xfbce_a83c_8a37_8bf1_u64),
        ] {
            for step in [1, 7, 31, 32, 100] {
                let mut hash = Xxh64::default();
                data.chunks(step).for_each(|piece| hash.update(piece));
                assert_eq!(hash.hash(), expected, "{step}");
            }
        }
    }
}
