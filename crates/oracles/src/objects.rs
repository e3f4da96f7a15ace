//! Objects that device code is put into and taken out of.

use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};
use object_edit::embed;

use crate::assert_message;

const IDS: [&str; 2] = ["host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"];

/// Checks that entries can be added and removed again, and that the rest is then unchanged.
pub fn check(data: &[u8]) {
    let host = remove_bundle_sections(data);
    if let Err(error) = &host {
        assert_message(error);
    }
    match embed(data, data) {
        Ok(object) => assert!(object.len() > data.len()),
        Err(error) => assert_message(&error),
    }
    let image = b"device code";
    let sizes = [(IDS[0], HOST_PLACEHOLDER.len() as u64), (IDS[1], image.len() as u64)];
    let bundle = match object_bundle(data, &sizes) {
        Ok(bundle) => bundle,
        Err(error) => return assert_message(&error),
    };
    let object = bundle.to_vec(&[HOST_PLACEHOLDER, image]).expect("these sizes were laid out");
    assert_eq!(object.len() as u64, bundle.total_size());
    let mut ranges = bundle.contents_ranges();
    for contents in [HOST_PLACEHOLDER, image] {
        let range = ranges.next().expect("two entries");
        assert_eq!(&object[range.start as usize..range.end as usize], contents);
    }
    let restored = remove_bundle_sections(&object);
    match (host, restored) {
        (Ok(host), Ok(restored)) => assert!(host == restored, "another host comes back"),
        (Err(_), Err(_)) => {}
        (host, restored) => panic!("{:?} became {:?}", host.map(drop), restored.map(drop)),
    }
}
