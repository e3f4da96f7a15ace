//! Values in JSON.

use serde_json::{json, to_value};
use target_id::{OffloadKind, Target, TargetId, Triple};

#[test]
fn known_and_unknown_names_are_strings() {
    for kind in ["host", "hipv4", "level zero", "HIP", "", "é\"\\"] {
        assert_eq!(to_value(OffloadKind::parse(kind)).unwrap(), json!(kind));
    }
    for triple in ["amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa-", "zx-spectrum", ""] {
        assert_eq!(to_value(Triple::parse(triple)).unwrap(), json!(triple));
    }
    for id in ["gfx90a:sramecc-:xnack+", "generic", "gfx9999:new+", "sm_90a"] {
        assert_eq!(to_value(TargetId::parse(id).unwrap()).unwrap(), json!(id));
    }
}

#[test]
fn targets_are_those_of_offload_ls() {
    let target = |kind: Option<&str>, triple: Option<&str>, id: &str| {
        Target::new(kind.map(OffloadKind::parse), triple.map(Triple::parse), id)
    };
    let full = target(Some("hipv4"), Some("amdgcn-amd-amdhsa-"), "gfx90a:xnack+:broken");
    let fields =
        json!({"kind": "hipv4", "triple": "amdgcn-amd-amdhsa-", "target": "gfx90a:xnack+:broken"});
    assert_eq!(to_value(full).unwrap(), fields);
    let fields = json!({"kind": null, "triple": null, "target": null});
    assert_eq!(to_value(target(None, None, "")).unwrap(), fields);
}
