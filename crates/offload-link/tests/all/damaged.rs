//! Damaged inputs: an error or fewer images, never a panic.

use offload_link::{ErrorKind, Inputs, Members, Plan, PlanOptions, RegisterOptions};

use crate::common::{Join, archive, hip, object, offloading};

/// Does each step that the damage allows.
fn link(bytes: &[u8]) -> Result<usize, offload_link::Error> {
    let mut inputs = Inputs::new();
    let count = inputs.add("file", bytes)?;
    let plan = Plan::new(&inputs, &PlanOptions::default().with_should_extract(["gfx90a"]))?;
    let Ok(images) = plan.link(&mut Join);
    images.object(&RegisterOptions::new("x86_64-unknown-linux-gnu"))?;
    Ok(count)
}

#[test]
fn every_damage_is_survived() {
    let package = hip(&["gfx90a", "gfx1030"]);
    let samples = [package.clone(), object(&package), archive(&[("x.o", &package)])];
    for sample in samples {
        assert!(link(&sample).is_ok());
        for end in faulty_places(sample.len()) {
            let _ = link(&sample[..end]);
        }
        for at in faulty_places(sample.len()) {
            for value in [0, 0xff, sample[at] ^ 1] {
                let mut damaged = sample.clone();
                damaged[at] = value;
                let _ = link(&damaged);
            }
        }
    }
}

/// The symbols of damaged inputs are others, or unknown.
#[test]
fn every_damage_of_symbols_is_survived() {
    let object = offloading(&["main", "-more"], &["kernel", "-other"]);
    let library = archive(&[("x.o", &offloading(&["more", "=c"], &["other", "?w"]))]);
    let bitcode = std::fs::read("../../examples/data/hip-embedded.bc").unwrap();
    let coff = std::fs::read("../../examples/data/hip.obj").unwrap();
    let plan = |damaged: &[u8], library: &[u8]| {
        let mut inputs = Inputs::new().with_symbols();
        let added = inputs.add("a.o", damaged).and_then(|_| inputs.add("l.a", library));
        if added.is_ok() {
            let options = PlanOptions::default().with_members(Members::Needed);
            let _ = Plan::new(&inputs, &options);
        }
    };
    for sample in [&object, &library, &bitcode, &coff] {
        for end in faulty_places(sample.len()) {
            plan(&sample[..end], &library);
        }
        for at in faulty_places(sample.len()) {
            for value in [0, 0xff, sample[at] ^ 1] {
                let mut damaged = sample.clone();
                damaged[at] = value;
                plan(&damaged, &library);
                plan(&object, &damaged);
            }
        }
    }
}

/// Returns the first places, and some others.
fn faulty_places(len: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |at| *at < 300 || at % 37 == 0)
}

#[test]
fn truncated_offload_binaries_are_errors() {
    let package = hip(&["gfx90a"]);
    for end in 4..package.len() - 8 {
        let error = link(&package[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{end}");
        assert!(error.to_string().starts_with("file: "), "{error}");
        assert!(error.finding().is_some());
    }
}

/// LLVM 22 reads past the end of it.
#[test]
fn an_image_past_the_end_is_an_error() {
    let mut package = hip(&["gfx90a"]);
    // The size of the image, in the entry after the header.
    package[32 + 32..32 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
    let error = link(&package).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}
