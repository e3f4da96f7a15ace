//! The hash of strings in LLVM 22: CityHash64 by Geoff Pike and Jyrki Alakuijala with a seed mixed
//! in, for strings of up to 64 bytes.

use super::SEED;

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
const K3: u64 = 0xc949_d7c7_509e_6557;
const MUL: u64 = 0x9ddf_ea08_eb38_2d69;

/// Returns the hash of `key`, of its first 64 bytes if it is longer.
pub(super) fn hash(key: &[u8]) -> u64 {
    let key = key.get(..64).unwrap_or(key);
    match key.len() {
        0 => K2 ^ SEED,
        1..=3 => up_to_3(key),
        4..=8 => up_to_8(key),
        9..=16 => up_to_16(key),
        17..=32 => up_to_32(key),
        _ => up_to_64(key),
    }
}

fn up_to_3(key: &[u8]) -> u64 {
    let byte = |at: usize| key.get(at).map_or(0, |byte| u64::from(*byte));
    let len = key.len();
    let y = byte(0) + (byte(len / 2) << 8);
    let z = len as u64 + (byte(len - 1) << 2);
    mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K3) ^ SEED).wrapping_mul(K2)
}

fn up_to_8(key: &[u8]) -> u64 {
    let word = |at: usize| u64::from(u32::from_le_bytes(bytes(key, at)));
    let len = key.len();
    pair(len as u64 + (word(0) << 3), SEED ^ word(len - 4))
}

fn up_to_16(key: &[u8]) -> u64 {
    let len = key.len() as u64;
    let (a, b) = (word(key, 0), word(key, key.len() - 8));
    let turns = u32::try_from(len).unwrap_or(0);
    pair(SEED ^ a, b.wrapping_add(len).rotate_right(turns)) ^ b
}

fn up_to_32(key: &[u8]) -> u64 {
    let len = key.len();
    let a = word(key, 0).wrapping_mul(K1);
    let b = word(key, 8);
    let c = word(key, len - 8).wrapping_mul(K2);
    let d = word(key, len - 16).wrapping_mul(K0);
    let low = a
        .wrapping_sub(b)
        .rotate_right(43)
        .wrapping_add((c ^ SEED).rotate_right(30))
        .wrapping_add(d);
    let high = a
        .wrapping_add((b ^ K3).rotate_right(20))
        .wrapping_sub(c)
        .wrapping_add(len as u64)
        .wrapping_add(SEED);
    pair(low, high)
}

fn up_to_64(key: &[u8]) -> u64 {
    let len = key.len();
    let at = |at| word(key, at);
    let first = at(0).wrapping_add((len as u64).wrapping_add(at(len - 16)).wrapping_mul(K0));
    let (vf, vs) = halves(first, at(24), at(8), at(16));
    let first = at(16).wrapping_add(at(len - 32));
    let (wf, ws) = halves(first, at(len - 8), at(len - 24), at(len - 16));
    let r = mix(vf
        .wrapping_add(ws)
        .wrapping_mul(K2)
        .wrapping_add(wf.wrapping_add(vs).wrapping_mul(K0)));
    mix((SEED ^ r.wrapping_mul(K0)).wrapping_add(vs)).wrapping_mul(K2)
}

/// Returns two sums over 32 bytes.
fn halves(x: u64, z: u64, u: u64, v: u64) -> (u64, u64) {
    let b = x.wrapping_add(z).rotate_right(52);
    let c = x.rotate_right(37);
    let x = x.wrapping_add(u);
    let c = c.wrapping_add(x.rotate_right(7));
    let x = x.wrapping_add(v);
    let second = b.wrapping_add(x.rotate_right(31)).wrapping_add(c);
    (x.wrapping_add(z), second)
}

/// Returns the hash of 16 bytes.
fn pair(low: u64, high: u64) -> u64 {
    let a = mix((low ^ high).wrapping_mul(MUL));
    mix((high ^ a).wrapping_mul(MUL)).wrapping_mul(MUL)
}

fn mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

fn word(key: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(key, at))
}

/// Returns `N` bytes of the key, which must have them.
fn bytes<const N: usize>(key: &[u8], at: usize) -> [u8; N] {
    key.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}
