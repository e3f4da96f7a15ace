//! Targets on command lines: what `clang-offload-bundler` is to make a bundle for.

use samples::bundle::HOST;

use super::{Family, Form, Held, Truth, held};

/// The image for each target.
pub const IMAGE: &[u8] = b"image";

/// The command line's list is the name; the bundle has these IDs, or there is a complaint.
pub fn targets() -> Family {
    let mut family = Family::new("targets on command lines", Form::Targets);
    let hip = "hip-amdgcn-amd-amdhsa--";
    let long = "gfx906".repeat(15_000);
    for target in [
        "",
        "-",
        "hip",
        "hip----",
        "hip-amdgcn-amd-amdhsa",
        "cuda-nvptx64-nvidia-cuda--sm_70",
        "HIP-amdgcn-amd-amdhsa--gfx906",
        "hip-nonsense-amd-amdhsa--gfx906",
        " hip-amdgcn-amd-amdhsa--gfx906",
        &format!("{hip}gfx906::"),
        &format!("{hip}gfx906:+"),
        &format!("{hip}gfx906:xnack"),
        &format!("{hip}gfx906:xnack*"),
        &format!("{hip}gfx906:XNACK+"),
        &format!("{hip}gfx906:foo+"),
        &format!("{hip}gfx906:xnack+:xnack+"),
        &format!("{hip}gfx906:xnack+:xnack-"),
        &format!("{hip}gfx906 :xnack+"),
        &format!("{hip}gfx1030:xnack+"),
        &format!("{hip}gfx906-foo"),
        &format!("{hip}gfx906/../../x"),
        &format!("{hip}gfx90A"),
        &format!("{hip}gfx999"),
        &format!("{hip}gfx"),
        &format!("{hip}\u{1b}[2Jgfx906"),
        &format!("{hip}gfx906\n"),
        &format!("{hip}gfx906,"),
        &format!("{hip}{long}"),
        &format!("{hip}gfx906,{hip}gfx906"),
        &format!("{hip}gfx906,hip-amdgcn-amd-amdhsa-unknown-gfx906"),
        &format!("{hip}gfx906,{hip}gfx906:xnack+"),
        &format!("{hip}gfx906:sramecc+:xnack+,{hip}gfx906:xnack-"),
        &format!("{hip}gfx906:xnack+,{hip}gfx906:sramecc+"),
    ] {
        family.refused(format!("{HOST},{target}"), IMAGE.to_vec());
    }
    // One colon more is nobody's feature.
    for target in ["gfx906:", "gfx906:xnack+:"] {
        family.add(format!("{HOST},{hip}{target}"), IMAGE.to_vec(), Truth::Any);
    }
    for none in ["", ",", "x", "host-", &",".repeat(60_000), "openmp-amdgcn-amd-amdhsa--gfx906"] {
        family.refused(none, IMAGE.to_vec());
    }
    family.refused(format!("{HOST},{HOST}"), IMAGE.to_vec());
    for (target, id) in [
        ("gfx906", "gfx906"),
        ("gfx906:xnack+", "gfx906:xnack+"),
        ("gfx906:sramecc-:xnack+", "gfx906:sramecc-:xnack+"),
        ("gfx906:xnack+:sramecc-", "gfx906:sramecc-:xnack+"),
        ("gfx9-4-generic:xnack+", "gfx9-4-generic:xnack+"),
        ("tahiti", "gfx600"),
    ] {
        let images: Vec<Held> = vec![held(HOST, IMAGE), held(&format!("{hip}{id}"), IMAGE)];
        family.add(format!("{HOST},{hip}{target}"), IMAGE.to_vec(), Truth::Holds(images));
    }
    family
}
