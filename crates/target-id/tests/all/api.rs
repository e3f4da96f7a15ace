//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use target_id::{
    Conflict, Error, ErrorKind, Family, Feature, NvidiaArch, OffloadKind, Options, Processor,
    Setting, Target, TargetId, Triple, Verdict,
};

samples::promises! {
    sent: Conflict, Options, Processor;
    value: Error, ErrorKind, Family, Feature, NvidiaArch, OffloadKind, Setting, Target, TargetId,
        Triple, Verdict;
    copied: Family, NvidiaArch, Options, Setting;
    displayed: Conflict, Target, Verdict;
    defaulted: Options;
    error: Error;
    unwinds: Conflict, Error, ErrorKind, Family, Feature, NvidiaArch, OffloadKind, Options,
        Processor, Setting, Target, TargetId, Triple, Verdict;
}

#[test]
fn displayed_text_is_read_back() {
    for kind in ["host", "openmp", "hip", "hipv4", "cuda", "sycl", "", "HIP", "level zero"] {
        assert_eq!(OffloadKind::parse(kind).to_string(), kind);
    }
    for triple in ["amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa-", "x86_64-linux-gnu", "", "?"] {
        assert_eq!(Triple::parse(triple).to_string(), triple);
    }
    for feature in ["xnack", "sramecc", "tgsplit", ""] {
        assert_eq!(Feature::parse(feature).to_string(), feature);
    }
    for id in ["gfx90a:sramecc-:xnack+", "gfx90a", "sm_90a", "generic", "gfx9999:new+"] {
        assert_eq!(TargetId::parse(id).unwrap().to_string(), id);
    }
    for arch in ["sm_20", "sm_90a", "compute_100f"] {
        assert_eq!(NvidiaArch::parse(arch).unwrap().to_string(), arch);
    }
    for name in ["gfx906", "gfx9-generic", "r600"] {
        assert_eq!(Processor::amdgpu(name).unwrap().name(), name);
    }
    assert_eq!(Processor::amdgpu("mullins").unwrap().name(), "gfx703");
    assert_eq!(Processor::amdgpu("GFX906"), None);
    assert_eq!(format!("{:>8}|{:<8}|", OffloadKind::Hip, Setting::On), "     hip|on      |");
}

#[test]
fn equal_target_ids_are_those_of_equal_text() {
    let cuda = Triple::parse("nvptx64-nvidia-cuda");
    let read_for = TargetId::parse_for(&cuda, "gfx906").unwrap();
    let read = TargetId::parse("gfx906").unwrap();
    // Only for one of them the name is the name of an AMD processor.
    assert_ne!(read_for.processor_info(), read.processor_info());
    assert_eq!(read_for, read);
}
