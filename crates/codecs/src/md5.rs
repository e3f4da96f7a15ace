//! MD5 (RFC 1321).
//!
//! Decompressing a compressed bundle waits for the hash: it is the only part that nothing can share out among threads. Each step of it
//! needs the result of the step before, so what counts is how few operations lie between the two. This one is written
//! for that, and a third faster than what there is without assembly.

use core::hint::black_box;

/// The bytes that are hashed at a time.
const BLOCK: usize = 64;

/// The constant that step `i` adds: the whole part of 2^32 times |sin(i + 1)|.
static CONSTANTS: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];

/// MD5 (RFC 1321) of data that comes piece by piece. It finds damage, not malice.
///
/// ```
/// let mut hash = codecs::Md5::default();
/// hash.update(b"ab");
/// hash.update(b"c");
/// assert_eq!(hash.finish()[..4], [0x90, 0x01, 0x50, 0x98]);
/// ```
#[derive(Clone, Debug)]
pub struct Md5 {
    state: [u32; 4],
    /// Length of all data, in bytes.
    len: u64,
    /// A block that is not full yet.
    rest: [u8; BLOCK],
    /// Number of bytes in it: less than all.
    filled: usize,
}

impl Default for Md5 {
    fn default() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, len: 0, rest: [0; BLOCK], filled: 0 }
    }
}

impl Md5 {
    /// Hashes more data.
    pub fn update(&mut self, mut data: &[u8]) {
        self.len = self.len.wrapping_add(data.len() as u64);
        if self.filled > 0 {
            let (more, behind) = data.split_at(data.len().min(BLOCK - self.filled));
            self.keep(more);
            if self.filled < BLOCK {
                return;
            }
            hash_blocks(&mut self.state, &[self.rest]);
            self.filled = 0;
            data = behind;
        }
        let (blocks, behind) = data.as_chunks();
        hash_blocks(&mut self.state, blocks);
        self.keep(behind);
    }

    /// Keeps what does not fill a block, or just fills it.
    fn keep(&mut self, data: &[u8]) {
        for (to, from) in self.rest.iter_mut().skip(self.filled).zip(data) {
            *to = *from;
        }
        self.filled += data.len();
    }

    /// Returns the digest of all data.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        /// Offset of the length in the last block.
        const LEN_AT: usize = BLOCK - 8;

        let bits = self.len.wrapping_mul(8);
        let mut padding = [0; BLOCK];
        padding[0] = 0x80;
        let end = if self.filled < LEN_AT { LEN_AT } else { BLOCK + LEN_AT };
        self.update(padding.split_at(end - self.filled).0);
        self.update(&bits.to_le_bytes());
        let mut digest = [0; 16];
        for (to, word) in digest.as_chunks_mut().0.iter_mut().zip(self.state) {
            *to = word.to_le_bytes();
        }
        digest
    }
}

#[allow(
    clippy::indexing_slicing,
    reason = "the compiler knows all indexes, once it has unrolled the loops"
)]
#[allow(clippy::many_single_char_names, reason = "the names of RFC 1321")]
fn hash_blocks(state: &mut [u32; 4], blocks: &[[u8; BLOCK]]) {
    // Hidden from the optimizer, which would add known constants last, after the values that take longest.
    let constants: &[u32; 64] = black_box(&CONSTANTS);
    let [mut a, mut b, mut c, mut d] = *state;
    for block in blocks {
        let before = [a, b, c, d];
        let (words, _) = block.as_chunks();
        // The part known before a step: everything but `mixed`, which depends on the results of earlier steps.
        let known = |a: u32, i: usize, word: usize| {
            a.wrapping_add(constants[i].wrapping_add(u32::from_le_bytes(words[word % 16])))
        };
        let end = |b: u32, sum: u32, rotation: u32| b.wrapping_add(sum.rotate_left(rotation));
        let first = |a: u32, b: u32, c: u32, d: u32, i: usize, rotation: u32| {
            end(b, known(a, i, i).wrapping_add(d ^ (b & (c ^ d))), rotation)
        };
        // The two halves of the choice have no bit in common: added one by one, only the second waits for `b`.
        let second = |a: u32, b: u32, c: u32, d: u32, i: usize, rotation: u32| {
            let sum = known(a, i, 5 * i + 1).wrapping_add(c & !d);
            end(b, sum.wrapping_add(b & d), rotation)
        };
        let third = |a: u32, b: u32, c: u32, d: u32, i: usize, rotation: u32| {
            end(b, known(a, i, 3 * i + 5).wrapping_add((c ^ d) ^ b), rotation)
        };
        let fourth = |a: u32, b: u32, c: u32, d: u32, i: usize, rotation: u32| {
            end(b, known(a, i, 7 * i).wrapping_add(c ^ (b | !d)), rotation)
        };
        for i in (0..16).step_by(4) {
            a = first(a, b, c, d, i, 7);
            d = first(d, a, b, c, i + 1, 12);
            c = first(c, d, a, b, i + 2, 17);
            b = first(b, c, d, a, i + 3, 22);
        }
        for i in (16..32).step_by(4) {
            a = second(a, b, c, d, i, 5);
            d = second(d, a, b, c, i + 1, 9);
            c = second(c, d, a, b, i + 2, 14);
            b = second(b, c, d, a, i + 3, 20);
        }
        for i in (32..48).step_by(4) {
            a = third(a, b, c, d, i, 4);
            d = third(d, a, b, c, i + 1, 11);
            c = third(c, d, a, b, i + 2, 16);
            b = third(b, c, d, a, i + 3, 23);
        }
        for i in (48..64).step_by(4) {
            a = fourth(a, b, c, d, i, 6);
            d = fourth(d, a, b, c, i + 1, 10);
            c = fourth(c, d, a, b, i + 2, 15);
            b = fourth(b, c, d, a, i + 3, 21);
        }
        let [a0, b0, c0, d0] = before;
        a = a.wrapping_add(a0);
        b = b.wrapping_add(b0);
        c = c.wrapping_add(c0);
        d = d.wrapping_add(d0);
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::Md5;

    /// RFC 1321, appendix A.5.
    #[test]
    fn digests_are_those_of_the_specification() {
        for (data, digest) in [
            ("", 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128),
            ("a", 0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661),
            ("abc", 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72),
            ("message digest", 0xf96b_697d_7cb7_938d_525a_2f31_aaf1_61d0),
            ("abcdefghijklmnopqrstuvwxyz", 0xc3fc_d3d7_6192_e400_7dfb_496c_ca67_e13b),
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                0xd174_ab98_d277_d9f5_a561_1c2c_9f41_9d9f,
            ),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                0x57ed_f4a2_2be3_c955_ac49_da2e_2107_b67a,
            ),
        ] {
            let mut hash = Md5::default();
            hash.update(data.as_bytes());
            assert_eq!(hash.finish(), digest.to_be_bytes(), "{data}");
        }
    }

    /// Every length around the ends of blocks, every cut into three.
    #[test]
    fn agrees_with_another_implementation() {
        let most = if cfg!(miri) { 70 } else { 200 };
        let data: alloc::vec::Vec<u8> = (0..most).map(|i: u8| i.wrapping_mul(167)).collect();
        for len in 0..data.len() {
            let data = &data[..len];
            let expected = md5::compute(data).0;
            for from in (0..=len).step_by(if cfg!(miri) { 23 } else { 7 }) {
                for to in (from..=len).step_by(if cfg!(miri) { 19 } else { 5 }) {
                    let mut hash = Md5::default();
                    for piece in [&data[..from], &data[from..to], &data[to..]] {
                        hash.update(piece);
                    }
                    assert_eq!(hash.finish(), expected, "{from} {to} {len}");
                }
            }
        }
    }
}
