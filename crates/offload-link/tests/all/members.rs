//! Members of archives that the host linker loaded, or did not load, as it says itself.

use offload_binary::OffloadKind;
use offload_link::{ErrorKind, Inputs, Members, Need, Plan, PlanOptions, Reason};

use crate::common::{AMD, archive, hip, images, object, offloading, package, with_code};
use samples::elf::with_symbols;

/// A member, its bytes, and whether it was loaded.
type Member<'f> = (&'f str, &'f [u8], bool);

fn said<'f>(
    objects: &[(&str, &'f [u8])],
    members: &[Member<'f>],
    inputs: Inputs<'f>,
) -> Inputs<'f> {
    let mut inputs = inputs;
    for (name, bytes) in objects {
        inputs.add(name, bytes).unwrap();
    }
    for (member, bytes, loaded) in members {
        inputs.add_member("l.a", member, bytes, *loaded).unwrap();
    }
    inputs
}

/// Returns the images, and the code that is in none, which are the same whatever is asked for.
fn planned(inputs: &Inputs<'_>) -> (Vec<String>, Vec<String>) {
    let plan = |members| {
        let plan = Plan::new(inputs, &PlanOptions::default().with_members(members)).unwrap();
        let left = plan.left_out().iter();
        (images(&plan), left.map(|left| format!("{}: {}", left.code(), left.reason())).collect())
    };
    let found = plan(Members::All);
    assert_eq!(plan(Members::Needed), found);
    found
}

#[test]
fn the_linker_decides() {
    let main = offloading(&["main"], &["kernel", "-helper"]);
    // Nothing that was read refers to it: the linker had a reason.
    let used = offloading(&["used"], &["second"]);
    let unused = offloading(&["main", "unused"], &["third", "-nowhere"]);
    // The host linker does not see a reference of device code.
    let helper = offloading(&["other"], &["helper", "-deeper"]);
    let deeper = offloading(&["another"], &["deeper"]);
    let members: [Member<'_>; 4] = [
        ("deeper.o", &deeper, false),
        ("used.o", &used, true),
        ("unused.o", &unused, false),
        ("helper.o", &helper, false),
    ];
    for new in [Inputs::new(), Inputs::new().with_symbols()] {
        let inputs = said(&[("a.o", &main)], &members, new);
        let (images, left) = planned(&inputs);
        assert_eq!(images, ["gfx90a: a.o l.a(deeper.o) l.a(used.o) l.a(helper.o)"]);
        assert_eq!(left, ["l.a(unused.o): nothing refers to its symbols"]);
        let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
        let needs: Vec<_> = plan.groups()[0].inputs().iter().map(|input| input.need()).collect();
        let device = |name: &'static [u8]| Some(Need::Device(name));
        assert_eq!(needs, [None, device(b"deeper"), Some(Need::Loaded), device(b"helper")]);
        assert_eq!(Need::Loaded.to_string(), "the host linker loaded it");
        assert_eq!(*plan.left_out()[0].reason(), Reason::NotNeeded);
        let loaded: Vec<_> = inputs.codes().iter().map(|code| code.is_loaded()).collect();
        assert_eq!(loaded, [None, Some(false), Some(true), Some(false), Some(false)]);
    }
}

/// All members that were loaded give what the archive gives.
#[test]
fn order_and_demand_are_those_of_the_archive() {
    let files = [
        ("x.o", object(&hip(&["gfx942", "gfx90a:xnack+", "gfx1201"]))),
        ("y.o", package(OffloadKind::OPENMP, AMD, &["gfx90a", "generic"])),
        ("none.o", samples::example("host.o")),
        ("text", b"text".to_vec()),
        ("bitcode.o", samples::example("hip-embedded.bc")),
    ];
    let members: Vec<_> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let library = archive(&members);
    let [first, second] = [hip(&["gfx90a", "gfx1100"]), hip(&["gfx906", "gfx90a:xnack+"])];
    for (whole, extract) in [(false, &[][..]), (false, &["gfx1201", "gfx942"]), (true, &[])] {
        let (mut by_archive, mut by_members) = (Inputs::new(), Inputs::new());
        for inputs in [&mut by_archive, &mut by_members] {
            inputs.add("a.o", &first).unwrap();
            inputs.whole_archive(whole);
        }
        by_archive.add("l.a", &library).unwrap();
        for (member, bytes) in &members {
            by_members.add_member("l.a", member, bytes, true).unwrap();
        }
        for inputs in [&mut by_archive, &mut by_members] {
            inputs.whole_archive(false);
            inputs.add("b.o", &second).unwrap();
        }
        let options = PlanOptions::default().with_should_extract(extract.iter().copied());
        let plans = [&by_archive, &by_members].map(|inputs| Plan::new(inputs, &options).unwrap());
        let [expected, found] = plans.each_ref().map(images);
        assert_eq!(found, expected, "{whole} {extract:?}");
        let left = plans.each_ref().map(|plan| {
            let left = plan.left_out().iter();
            left.map(|left| (left.code().to_string(), left.reason().clone())).collect::<Vec<_>>()
        });
        assert_eq!(left[0], left[1]);
        assert!(!left[0].is_empty() || whole || !extract.is_empty());
        let codes = by_members.codes().iter().zip(by_archive.codes());
        for (ours, theirs) in codes {
            assert_eq!((ours.stem(), ours.is_lazy()), (theirs.stem(), theirs.is_lazy()));
        }
    }
}

/// A member that was not loaded is none of a whole archive; one that is given twice is linked once.
#[test]
fn members_that_contradict_or_repeat() {
    let (a, b) = (offloading(&["a"], &["a"]), offloading(&["b"], &["b"]));
    let mut inputs = Inputs::new();
    inputs.whole_archive(true);
    inputs.add_member("l.a", "a.o", &a, true).unwrap();
    inputs.add_member("l.a", "b.o", &b, false).unwrap();
    inputs.whole_archive(false);
    inputs.add_member("m.a", "b.o", &b, true).unwrap();
    inputs.add_member("m.a", "b.o", &b, true).unwrap();
    let (images, left) = planned(&inputs);
    assert_eq!(images, ["gfx90a: l.a(a.o) m.a(b.o)"]);
    assert_eq!(
        left,
        [
            "l.a(b.o): the same member was taken before",
            "m.a(b.o): the same member was taken before"
        ]
    );
}

/// The linker's word holds for its members only.
#[test]
fn other_archives_are_asked_as_ever() {
    let main = offloading(&["main"], &["kernel"]);
    let loaded = offloading(&["loaded", "-asked"], &["second"]);
    let (asked, idle) = (offloading(&["asked"], &["third"]), offloading(&["idle"], &["fourth"]));
    let library = archive(&[("asked.o", &asked), ("idle.o", &idle)]);
    let mut inputs = Inputs::new().with_symbols();
    inputs.add("a.o", &main).unwrap();
    inputs.add("m.a", &library).unwrap();
    inputs.add_member("l.a", "loaded.o", &loaded, true).unwrap();
    inputs.add_member("l.a", "not.o", &idle, false).unwrap();
    let options = PlanOptions::default().with_members(Members::Needed);
    let plan = Plan::new(&inputs, &options).unwrap();
    assert_eq!(images(&plan), ["gfx90a: a.o m.a(asked.o) l.a(loaded.o)"]);
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert_eq!(images(&plan), ["gfx90a: a.o m.a(asked.o) m.a(idle.o) l.a(loaded.o)"]);
    // A loaded member whose symbols nobody may read could refer to anything.
    let mut blind = Inputs::new();
    blind.add_member("l.a", "loaded.o", &loaded, true).unwrap();
    let mut inputs = Inputs::new().with_symbols();
    inputs.add("a.o", &main).unwrap();
    inputs.add("m.a", &library).unwrap();
    inputs.append(blind);
    let plan = Plan::new(&inputs, &options).unwrap();
    assert_eq!(images(&plan), ["gfx90a: a.o m.a(asked.o) m.a(idle.o) l.a(loaded.o)"]);
    let need = plan.groups()[0].inputs()[1].need();
    assert_eq!(need, Some(Need::References("l.a")));
}

/// Device code without known symbols could need any member, which then is in the image.
#[test]
fn unknown_device_code_needs_all() {
    let main = hip(&["gfx90a"]);
    let member = offloading(&["b"], &["b"]);
    let other = with_code(&["c"], &[("gfx1100", &with_symbols(false, &["c"]))]);
    let members: [Member<'_>; 2] = [("b.o", &member, false), ("c.o", &other, false)];
    let inputs = said(&[("a.o", &main)], &members, Inputs::new());
    let (images, left) = planned(&inputs);
    assert_eq!(images, ["gfx90a: a.o l.a(b.o)"]);
    assert_eq!(left, ["l.a(c.o): no object has code for this target"]);
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert_eq!(plan.groups()[0].inputs()[1].need(), Some(Need::References("a.o")));
    // As a member, it is named as one.
    let members: [Member<'_>; 1] = [("a.o", &main, true)];
    let inputs = said(&[("x.o", &member)], &members, Inputs::new());
    let mut inputs = inputs;
    inputs.add_member("l.a", "b.o", &member, false).unwrap();
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert_eq!(plan.groups()[0].inputs()[2].need(), Some(Need::References("l.a(a.o)")));
}

#[test]
fn damaged_members_are_named() {
    let mut damaged = samples::example("host.o");
    damaged[40..48].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = Inputs::new().add_member("l.a", "x.o", &damaged, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().starts_with("l.a(x.o): "), "{error}");
    let thin = samples::example("libhip-thin.a");
    let error = Inputs::new().add_member("l.a", "t.a", &thin, false).unwrap_err();
    assert!(error.to_string().contains("expected a complete archive"), "{error}");
}
