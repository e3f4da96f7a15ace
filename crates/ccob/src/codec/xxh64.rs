//! XXH64 with seed 0, the checksum of Zstandard frames, which `ruzstd` leaves to its caller.
//!
//! Clang writes frames without it; those that have it are checked, as libzstd does.

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

pub(super) fn hash(data: &[u8]) -> u64 {
    let (stripes, rest) = data.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        P5
    } else {
        let mut acc = [P1.wrapping_add(P2), P2, 0, 0_u64.wrapping_sub(P1)];
        for stripe in stripes {
            let (lanes, _) = stripe.as_chunks::<8>();
            for (acc, lane) in acc.iter_mut().zip(lanes) {
                *acc = round(*acc, u64::from_le_bytes(*lane));
            }
        }
        let [a, b, c, d] = acc;
        let hash = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        acc.into_iter().fold(hash, merge)
    };
    hash = hash.wrapping_add(crate::header::to_u64(data.len()));

    let (lanes, rest) = rest.as_chunks::<8>();
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

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn known_values() {
        // As `xxhsum -H64` prints them.
        assert_eq!(hash(b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(hash(b"abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(hash(b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
    }
}
