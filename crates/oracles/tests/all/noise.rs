//! Bytes without any order are judged, too.

use oracles::{accounts, bare, hcf, kpacks, links, ranges, sycl};

/// Returns bytes without any order, the same for the same state.
fn noise(state: &mut u64, len: usize) -> Vec<u8> {
    let next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()[6]
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn noise_as_bare_images_is_checked_without_panic() {
    let mut state = 1;
    (0..1200).for_each(|len| bare::check(&noise(&mut state, len % 200)));
}

#[test]
fn noise_has_an_account() {
    let mut state = 1;
    for len in 0..300 {
        let noise = noise(&mut state, len);
        accounts::check(&noise);
        accounts::check(&[b"\x7fELF\x02\x01\x01", &noise[..]].concat());
        accounts::check(&[b"\x50\xed\x55\xba\x01\0\x10\0", &noise[..]].concat());
    }
}

#[test]
fn noise_as_sycl_tables_is_checked_without_panic() {
    let mut state = 1;
    (0..600).for_each(|len| sycl::check(&noise(&mut state, len)));
}

#[test]
fn noise_as_hcf_files_is_checked_without_panic() {
    let mut state = 1;
    for len in 0..600 {
        let noise = noise(&mut state, len);
        hcf::check(&noise);
        hcf::check(&[&[1], &noise[..]].concat());
    }
}

#[test]
fn noise_as_kernel_packs_is_checked_without_panic() {
    let mut state = 1;
    (0..1200).for_each(|len| kpacks::check(&noise(&mut state, len)));
}

#[test]
fn noise_as_inputs_of_links_is_checked_without_panic() {
    let mut state = 1;
    (0..2400).for_each(|len| links::check(&noise(&mut state, len % 300)));
}

#[test]
fn noise_as_a_source_of_ranges_is_checked() {
    let mut state = 1;
    (0..300).for_each(|len| ranges::check(&noise(&mut state, len)));
}
