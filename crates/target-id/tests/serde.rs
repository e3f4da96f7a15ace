//! What values look like in JSON, and that they come back.
#![cfg(feature = "serde")]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test says no")]

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};
use target_id::{
    Feature, Features, IntelGpu, NvidiaArch, OffloadKind, Processor, Setting, Target, TargetId,
    Triple, compatible,
};

/// Written as this, and read back from it, also out of a text.
fn both_ways<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, form: &Value) {
    assert_eq!(to_value(value).unwrap(), *form);
    assert_eq!(from_value::<T>(form.clone()).unwrap(), *value);
    assert_eq!(serde_json::from_str::<T>(&form.to_string()).unwrap(), *value);
}

fn refused<T: DeserializeOwned + Debug>(form: Value) -> String {
    from_value::<T>(form).unwrap_err().to_string()
}

#[test]
fn text_is_a_string_known_or_not() {
    for kind in ["host", "hipv4", "level zero", "HIP", "", "é\"\\"] {
        both_ways(&OffloadKind::parse(kind), &json!(kind));
    }
    for triple in ["amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa-", "zx-spectrum", ""] {
        both_ways(&Triple::parse(triple), &json!(triple));
    }
    for feature in ["xnack", "sramecc", "tgsplit"] {
        both_ways(&Feature::parse(feature), &json!(feature));
    }
    for id in ["gfx90a:sramecc-:xnack+", "generic", "gfx9999:new+", "sm_90a"] {
        both_ways(&TargetId::parse(id).unwrap(), &json!(id));
    }
    for arch in ["sm_90a", "compute_100f"] {
        both_ways(&NvidiaArch::parse(arch).unwrap(), &json!(arch));
    }
    for gpu in ["intel_gpu_pvc", "intel_gpu_bmg"] {
        both_ways(IntelGpu::find(gpu).unwrap(), &json!(gpu));
    }
    assert_eq!(from_value::<IntelGpu>(json!("xe-pvc")).unwrap().name(), "intel_gpu_pvc");
    both_ways(&Setting::On, &json!("on"));
    both_ways(&Setting::Off, &json!("off"));
    both_ways(Processor::amdgpu("tahiti").unwrap(), &json!("gfx600"));
    assert_eq!(from_value::<Processor>(json!("tahiti")).unwrap().name(), "gfx600");
    assert_eq!(from_value::<TargetId>(json!("tahiti:")).unwrap().to_string(), "gfx600");
}

#[test]
fn a_text_that_is_none_is_an_error() {
    assert_eq!(
        refused::<TargetId>(json!("gfx906:xnack")),
        "target ID feature \"xnack\" at offset 7 lacks its sign, expected \"+\" or \"-\""
    );
    assert_eq!(refused::<TargetId>(json!("")), "target ID has no processor name");
    assert_eq!(
        refused::<TargetId>(json!(906)),
        "invalid type: integer `906`, expected a target ID"
    );
    assert!(
        refused::<NvidiaArch>(json!("sm_9")).starts_with("NVIDIA architecture \"sm_9\" is not")
    );
    assert_eq!(
        refused::<Setting>(json!("+")),
        "target feature setting is \"+\", expected \"on\" or \"off\""
    );
    assert_eq!(refused::<Processor>(json!("gfx9999")), "\"gfx9999\" is no known AMD GPU processor");
    assert!(refused::<OffloadKind>(json!(null)).ends_with("expected an offload kind"));
    assert!(refused::<Triple>(json!([])).ends_with("expected a target triple"));
}

#[test]
fn sets_of_features_are_sequences() {
    both_ways(&Features::NONE, &json!([]));
    both_ways(&Features::ALL, &json!(["sramecc", "xnack"]));
    assert_eq!(from_value::<Features>(json!(["xnack", "xnack"])).unwrap(), Features::XNACK);
    assert_eq!(
        refused::<Features>(json!(["xnack", "tgsplit"])),
        "unknown variant `tgsplit`, expected `sramecc` or `xnack`"
    );
    assert!(refused::<Features>(json!("xnack")).ends_with("expected names of target features"));
}

#[test]
fn targets_are_what_offload_ls_prints() {
    let target = |kind: Option<&str>, triple: Option<&str>, id: &str| {
        Target::new(kind.map(OffloadKind::parse), triple.map(Triple::parse), id)
    };
    let full = target(Some("hipv4"), Some("amdgcn-amd-amdhsa-"), "gfx90a:xnack+:broken");
    both_ways(
        &full,
        &json!({"kind": "hipv4", "triple": "amdgcn-amd-amdhsa-", "target": "gfx90a:xnack+:broken"}),
    );
    both_ways(&target(None, None, ""), &json!({"kind": null, "triple": null, "target": null}));
    let asked = target(None, None, "gfx906");
    for form in [json!({"target": "gfx906"}), json!({"size": [1, 2], "target": "gfx906"})] {
        assert_eq!(from_value::<Target>(form).unwrap(), asked);
    }
    assert_eq!(from_value::<Target>(json!({})).unwrap(), target(None, None, ""));
    assert!(refused::<Target>(json!({"target": 906})).starts_with("invalid type: integer `906`"));
    assert!(refused::<Target>(json!("gfx906")).contains("expected a target with the fields"));
    let twice = r#"{"kind": null, "kind": "hip"}"#;
    let error = serde_json::from_str::<Target>(twice).unwrap_err().to_string();
    assert!(error.starts_with("duplicate field `kind`"), "{error}");
}

/// As formats without names of fields have it.
#[test]
fn targets_come_from_sequences() {
    let fields = [Some("hip"), None, Some("gfx906")];
    let fields = fields.map(|field| field.map_or(Value::Null, Value::from));
    let target: Target = from_value(Value::Array(fields.to_vec())).unwrap();
    assert_eq!(target, Target::new(Some(OffloadKind::Hip), None, "gfx906"));
    assert_eq!(
        refused::<Target>(json!(["hip", null])),
        "invalid length 2, expected a target with the fields kind, triple and target"
    );
}

#[test]
fn verdicts_are_answers() {
    let code = Target::new(None, None, "gfx9-generic");
    let device = Target::new(None, None, "gfx906");
    assert_eq!(
        to_value(compatible(&code, &device)).unwrap(),
        json!({
            "compatible": true,
            "strict": false,
            "reason": "is generic code, gfx9-generic covers gfx906",
        })
    );
}
