//! Images to link, and the code that goes into them.

use std::io::{self, Cursor};

use offload_binary::OffloadKind;
use offload_link::{ErrorKind, Fit, Inputs, Plan, PlanOptions};

use crate::common::{self, AMD, HOST, archive, hip, package, planned};

#[test]
fn objects_demand_images_in_their_order() {
    let (a, b) = (hip(&["gfx90a", "gfx1030"]), hip(&["gfx1030", "gfx942"]));
    let (images, left) = planned(&[("a", &a), ("b", &b)], &[]);
    assert_eq!(images, ["gfx90a: a", "gfx1030: a b", "gfx942: b"]);
    assert!(left.is_empty());
}

#[test]
fn members_complete_images_and_demand_none() {
    let object = hip(&["gfx90a"]);
    let (x, y) = (hip(&["gfx90a", "gfx1030"]), hip(&["gfx1100"]));
    let library = archive(&[("x.o", &x), ("y.o", &y)]);
    for files in [[("lib", &library[..]), ("a", &object)], [("a", &object), ("lib", &library)]] {
        let (images, left) = planned(&files, &[]);
        assert_eq!(images, ["gfx90a: a lib(x.o)"]);
        assert_eq!(
            left,
            [
                "lib(x.o) gfx1030: no object has code for this target",
                "lib(y.o) gfx1100: no object has code for this target",
            ]
        );
    }
    assert!(planned(&[("lib", &library)], &[]).0.is_empty());
    let (images, left) = planned(&[("lib", &library)], &["gfx1100", "gfx1030"]);
    assert_eq!(images, ["gfx1030: lib(x.o)", "gfx1100: lib(y.o)"]);
    assert_eq!(left.len(), 1);
}

#[test]
fn members_of_a_whole_archive_are_objects() {
    let member = hip(&["gfx90a"]);
    let library = archive(&[("x.o", &member)]);
    let mut inputs = Inputs::new();
    inputs.whole_archive(true);
    assert_eq!(inputs.add("whole", &library).unwrap(), 1);
    inputs.whole_archive(false);
    inputs.add("lazy", &library).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    let codes: Vec<_> = plan.groups()[0].inputs().iter().map(|input| input.code()).collect();
    assert_eq!(codes.len(), 1);
    assert!(!codes[0].is_lazy() && codes[0].member() == Some("x.o"));
}

/// A library that is named twice is not linked twice; members of one archive with one name and other code are.
#[test]
fn a_member_is_linked_once() {
    let (object, x) = (hip(&["gfx90a"]), hip(&["gfx90a"]));
    let y = package(OffloadKind::OPENMP, AMD, &["gfx90a"]);
    let library = archive(&[("x.o", &x), ("x.o", &y)]);
    let (images, left) = planned(&[("a", &object), ("l", &library), ("l", &library)], &[]);
    assert_eq!(images, ["gfx90a: a l(x.o) l(x.o)"]);
    assert_eq!(left, ["l(x.o) gfx90a: the same member was taken before"; 2]);
    // Objects are the linker's business.
    assert_eq!(planned(&[("a", &object), ("a", &object)], &[]).0, ["gfx90a: a a"]);
    // A copy of a library that is a file, and one with other code in a member of the same name.
    let mut other = x.clone();
    let at = other.windows(6).rposition(|bytes| bytes == b"gfx90a").unwrap();
    other[at] ^= 1;
    let mut inputs = Inputs::new();
    for (name, bytes) in [
        ("a", &object),
        ("l", &library),
        ("copy", &library),
        ("other", &archive(&[("x.o", &other)])),
    ] {
        inputs.read(name, Cursor::new(bytes), |_| Err(io::ErrorKind::NotFound.into())).unwrap();
    }
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert_eq!(common::images(&plan), ["gfx90a: a l(x.o) l(x.o) other(x.o)"]);
    let left: Vec<_> = plan.left_out().iter().map(|left| left.code().to_string()).collect();
    assert_eq!(left, ["copy(x.o)", "copy(x.o)"]);
}

#[test]
fn the_order_of_target_features_does_not_matter() {
    let (plain, on, off) = (hip(&["gfx90a"]), hip(&["gfx90a:xnack+"]), hip(&["gfx90a:xnack-"]));
    let files = [("plain", &plain[..]), ("on", &on[..]), ("off", &off[..])];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (mut images, _) = planned(&order.map(|at| files[at]), &[]);
        images.iter_mut().for_each(|image| {
            let (target, inputs) = image.split_once(": ").unwrap();
            let mut inputs: Vec<_> = inputs.split(' ').collect();
            inputs.sort_unstable();
            *image = format!("{target}: {}", inputs.join(" "));
        });
        images.sort();
        assert_eq!(images, ["gfx90a:xnack+: on plain", "gfx90a:xnack-: off plain"], "{order:?}");
    }
    let library = archive(&[("on.o", &on), ("plain.o", &plain)]);
    let (images, left) = planned(&[("plain", &plain), ("lib", &library)], &[]);
    assert_eq!(images, ["gfx90a: plain lib(plain.o)"]);
    let reason = "needs other target features than the image for amdgcn-amd-amdhsa gfx90a has";
    assert_eq!(left, [format!("lib(on.o) gfx90a:xnack+: {reason}")]);
}

#[test]
fn generic_code_is_in_every_image_of_its_triple() {
    let (any, one) = (hip(&["generic"]), hip(&["gfx90a"]));
    let library = archive(&[("any.o", &any)]);
    assert_eq!(planned(&[("a", &one), ("l", &library)], &[]).0, ["gfx90a: a l(any.o)"]);
    for files in [[("any", &any[..]), ("one", &one)], [("one", &one), ("any", &any)]] {
        let (mut images, _) = planned(&files, &[]);
        images.sort();
        let [generic, one] = &images[..] else { panic!("{images:?}") };
        assert!(one.contains(" any") && one.contains(" one"), "{one}");
        assert_eq!(generic, "generic: any");
    }
}

#[test]
fn programming_models_share_images() {
    let openmp = package(OffloadKind::OPENMP, AMD, &["gfx90a"]);
    let (hip, sycl) = (hip(&["gfx90a"]), package(OffloadKind::SYCL, AMD, &["gfx90a"]));
    let mut inputs = Inputs::new();
    inputs.add("hip", &hip).unwrap();
    inputs.add("openmp", &openmp).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    let [group] = plan.groups() else { panic!() };
    assert_eq!(group.kinds(), [OffloadKind::OPENMP, OffloadKind::HIP]);
    assert!(group.inputs().iter().all(|input| input.fit() == Fit::Same));

    inputs.add("sycl", &sycl).unwrap();
    let error = Plan::new(&inputs, &PlanOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kinds);
    assert!(
        error.to_string().starts_with("Linking images of SYCL offload kind with images of any")
    );
}

#[test]
fn triples_are_compared_as_text() {
    let openmp = |triple| package(OffloadKind::OPENMP, triple, &["generic"]);
    let (pc, unknown) = (openmp("x86_64-pc-linux-gnu"), openmp(HOST));
    let (images, _) = planned(&[("pc", &pc), ("unknown", &unknown)], &[]);
    assert_eq!(images, ["generic: pc", "generic: unknown"]);
}

#[test]
fn an_architecture_without_a_device_linker_is_an_error() {
    for (architecture, shown) in [("riscv64", "riscv64"), ("nv\u{1}ptx\n64", "nv\\u{1}ptx\\n64")] {
        let triple = format!("{architecture}-unknown-linux-gnu");
        let package = package(OffloadKind::OPENMP, &triple, &[""]);
        let mut inputs = Inputs::new();
        inputs.add("a.o", &package).unwrap();
        let error = Plan::new(&inputs, &PlanOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Architecture);
        assert_eq!(error.to_string(), format!("{shown} linking is not supported: a.o"));
    }
}

/// Each image is linked with all code that fits it, so that their number bounds the work for a piece of code.
#[test]
fn too_many_targets_are_an_error() {
    let archs: Vec<String> = (0..300).map(|n| format!("gfx{n}")).collect();
    let archs: Vec<&str> = archs.iter().map(String::as_str).collect();
    let (enough, many) = (hip(&archs[..256]), hip(&archs));
    let plan = |inputs: &[(&str, &[u8])], options| {
        let mut all = Inputs::new();
        for (name, bytes) in inputs {
            all.add(name, bytes).unwrap();
        }
        Plan::new(&all, &options)
            .map(|plan| plan.groups().len())
            .map_err(|e| (e.kind(), e.to_string()))
    };
    let options = PlanOptions::default();
    assert_eq!(plan(&[("a.o", &enough)], options.clone()), Ok(256));
    let text = "a.o: amdgcn-amd-amdhsa gfx256: expected at most 256 targets in a link";
    assert_eq!(plan(&[("a.o", &many)], options.clone()), Err((ErrorKind::Targets, text.into())));
    let library = archive(&[("m.o", &hip(&["gfx256"]))]);
    let options = options.with_should_extract(["gfx256"]);
    let text = "l.a(m.o): amdgcn-amd-amdhsa gfx256: expected at most 256 targets in a link";
    let found = plan(&[("a.o", &enough), ("l.a", &library)], options);
    assert_eq!(found, Err((ErrorKind::Targets, text.into())));
}
