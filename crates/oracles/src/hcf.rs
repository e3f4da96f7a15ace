//! HCF containers of AdaptiveCpp, made from the fuzzer's bytes.

use arbitrary::{Result, Unstructured};
use fat_object::{Listing, Options, list_slice};
use samples::hcf::{MARKER, Sample, hcf};

/// Makes a container and checks that exactly its images are found, and that no change of the fuzzer causes a panic. Any
/// text makes a container that is read in bounds.
pub fn check(data: &[u8]) {
    if let [1, text @ ..] = data {
        drop(check_listing(&[&b"object-id=1\n"[..], text, MARKER.as_bytes(), b"four"].concat()));
        return;
    }
    let u = &mut Unstructured::new(data);
    let Ok(images) = made(u) else { return };
    let mut bytes = hcf(&images);
    let listing = check_listing(&bytes);
    assert!(listing.findings().is_empty(), "{:?}", listing.findings());
    assert_eq!(listing.images().len(), images.len());
    for (image, expected) in listing.images().iter().zip(&images) {
        assert_eq!(image.bytes_in(&bytes), Some(&expected.bytes[..]));
        let hcf = image.hcf().expect("the container describes it");
        assert_eq!(hcf.node(), expected.node);
        assert!(hcf.kernels().eq(expected.kernels.iter().map(String::as_str)));
    }
    for _ in 0..u.int_in_range(1..=4).unwrap_or(1) {
        let Ok(at) = u.int_in_range(0..=bytes.len() - 1) else { break };
        let Ok(byte) = u.arbitrary::<u8>() else { break };
        // Most changes leave a text.
        bytes[at] = if byte < 0xf0 { b"0123456789\n=.{}_"[usize::from(byte % 16)] } else { byte };
    }
    drop(check_listing(&bytes));
}

/// Lists a file, and checks that its images share no bytes.
fn check_listing(bytes: &[u8]) -> Listing {
    let listing = list_slice(bytes, &Options::default()).expect("memory does not fail");
    listing.findings().iter().for_each(crate::assert_message);
    let mut end = 0;
    for image in listing.images().iter().filter(|image| image.path().len() == 1) {
        let (Some(at), size) = (image.location().file_offset(), image.size()) else { continue };
        assert!(size == 0 || at >= end, "image at {at}, after one up to {end}");
        end = end.max(at + size);
        assert!(end <= bytes.len() as u64, "image up to {end} of {} bytes", bytes.len());
    }
    listing
}

fn made(u: &mut Unstructured<'_>) -> Result<Vec<Sample>> {
    let mut images = Vec::new();
    for n in 0..u.int_in_range(1..=6_u32)? {
        let kernels: Vec<String> =
            (0..u.int_in_range(0..=3)?).map(|kernel| format!("kernel{n}.{kernel}")).collect();
        let kernels: Vec<_> = kernels.iter().map(String::as_str).collect();
        let len = u.int_in_range(0..=40)?;
        // No container, which would have images of its own.
        let bytes = [b"code", u.bytes(len)?].concat();
        images.push(Sample::new(&format!("image{n}"), &bytes, &kernels));
    }
    Ok(images)
}
