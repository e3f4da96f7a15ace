//! Libraries whose device code lies in kernel packs.

use std::sync::Arc;

use device_select::{Device, PackAnswer, PackSet, SplitLibrary};
use kpack::search::{PackPath, Variables};
use kpack::{Kpack, Marker, NewKpack, Scheme, Toc};

struct Library {
    marker: Marker,
    wrappers: Vec<u64>,
}

impl Library {
    fn new(name: &str) -> Self {
        Library { marker: Marker::new(name, ["../x_@GFXARCH@.kpack"]), wrappers: vec![0, 1] }
    }
}

impl SplitLibrary for Library {
    type Path = String;

    fn marker(&self) -> &Marker {
        &self.marker
    }

    fn wrappers(&self) -> &[u64] {
        &self.wrappers
    }

    fn variables(&self) -> Variables<'_> {
        Variables::default()
    }

    fn path(&self, place: &PackPath) -> String {
        place.path().replace("../", "")
    }
}

/// A pack with code of a library for these wrappers.
fn pack(name: &str, target: &str, wrappers: &[u64]) -> Arc<Toc> {
    let mut new = NewKpack::new("x", target, Scheme::Plain);
    for wrapper in wrappers {
        new.add(name, *wrapper, target, 4);
    }
    let bytes = new.layout(&vec![4; wrappers.len()]).unwrap().to_vec(|_| b"code").unwrap();
    Arc::new(Kpack::parse(&bytes).unwrap().toc().clone())
}

/// The answer for a GPU, with these packs.
fn answer(gpu: &str, packs: &[(&str, Arc<Toc>)]) -> PackAnswer<String> {
    let gpu = Device::parse(gpu).unwrap();
    PackAnswer::new(&Library::new("a.so"), &gpu, &mut |path| {
        let (_, toc) = packs.iter().find(|(name, _)| name == path)?;
        if toc.entries().is_empty() {
            Some(Err("it is damaged".to_owned()))
        } else {
            Some(Ok(Arc::clone(toc)))
        }
    })
}

#[test]
fn the_loader_goes_from_the_gpu_to_its_generic_processor() {
    let generic = ("x_gfx11-generic.kpack", pack("a.so", "gfx11-generic", &[0, 1]));
    let found = answer("gfx1100", std::slice::from_ref(&generic));
    assert!(found.is_served());
    let words = found.words(String::clone);
    assert_eq!(words, "has code for gfx1100 in x_gfx11-generic.kpack");
    let tried: Vec<_> = found.tried().iter().map(|(path, what)| (&**path, &**what)).collect();
    let expected = [("x_gfx1100.kpack", "not there"), (generic.0, "has code for gfx11-generic")];
    assert_eq!(tried, expected);

    // One wrapper has code of its own.
    let own = ("x_gfx1100.kpack", pack("a.so", "gfx1100", &[1]));
    let found = answer("gfx1100", &[own.clone(), generic]);
    assert!(found.is_served());
    assert!(found.is_later(), "the first loaders stop at the pack for the GPU");
    let found = answer("gfx1100", &[own]);
    assert_eq!((found.missing(), found.wrappers()), (&[0][..], 2));
    let words = found.words(String::clone);
    assert!(words.starts_with("1 of 2 wrappers have no code for gfx1100; the others"), "{words}");
}

#[test]
fn features_are_conditions() {
    let with = ("x_gfx90a:xnack+.kpack", pack("a.so", "gfx90a:xnack+", &[0, 1]));
    let found = answer("gfx90a", &[with]);
    assert!(found.is_served());
    assert!(found.conditions().iter().all(|state| state.contains("xnack+")), "{found:?}");
    assert!(!found.conditions().is_empty());
    let damaged = ("x_gfx90a.kpack", pack("a.so", "gfx90a", &[]));
    let found = answer("gfx90a", &[damaged]);
    assert!(!found.is_served());
    assert!(found.tried().iter().any(|(_, what)| what == "it is damaged"));
}

#[test]
fn sets_are_complete_or_not() {
    let gpu = Device::parse("gfx90a").unwrap();
    let mut set = PackSet::default();
    set.add_library("w:a.so", &Arc::new(Library::new("a.so")), false);
    set.add_library("b.so", &Arc::new(Library::new("b.so")), true);
    let faults = set.check().1;
    let expected = ["w:a.so: no kernel pack has its device code: looked for ../x_@GFXARCH@.kpack"];
    assert_eq!(faults, expected);

    let plain = "x_gfx90a.kpack".to_owned();
    let toc = pack("a.so", "gfx90a", &[0, 1]);
    assert!(set.has_library_of(&toc));
    set.add_pack(plain.clone(), None, "w:plain", &toc);
    assert_eq!(set.check(), (vec![("w:a.so", 2)], Vec::new()));
    let answers: Vec<_> = set.answers(&gpu).collect();
    assert_eq!((answers.len(), answers[0].0), (1, "w:a.so"));
    assert!(answers[0].1.is_served());

    let with = pack("c.so", "gfx90a:xnack+", &[0]);
    assert!(!set.has_library_of(&with));
    set.add_pack("x_gfx90a:xnack+.kpack".to_owned(), Some(plain), "w:with", &with);
    set.add_pack("x_none.kpack".to_owned(), None, "w:none", &pack("a.so", "gfx906", &[]));
    let faults = set.check().1;
    let expected = [
        "w:with: no library here is for its code: c.so",
        "w:none: the kernel pack is empty",
        "w:with: ROCm up to 7.14.0 stops at this pack and finds nothing of w:plain",
    ];
    assert_eq!(faults, expected);
}
