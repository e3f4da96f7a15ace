//! Damaged inputs: errors that name the file. `oracles::links` judges that no damage is a panic.

use offload_link::{ErrorKind, Inputs, Plan, PlanOptions, RegisterOptions};

use crate::common::{Join, hip};

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
