//! Edits of offload binaries in `.hip_fatbin`, where HIP's wrappers lead to them as they do to bundles.

use crate::editing::{edited, images};
use crate::registered::{Form, TARGETS, Unit, contents_of, noise};
use fat_edit::Error;
use samples::linked::{AARCH64, EXEC, Linked, Loaded, Pointers, Style, check_same};

fn layouts(form: Form) -> Vec<Linked> {
    let mut all = Vec::new();
    for style in [Style::First, Style::Third] {
        for count in [1, 3] {
            let plain = Linked::new(style, form.units(count));
            all.push(Linked { after: false, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Relr, hash: 6000, ..plain.clone() });
            all.push(Linked { pointers: Pointers::Symbols, symbols: false, ..plain.clone() });
            all.push(Linked { e_type: EXEC, pointers: Pointers::Plain, ..plain.clone() });
            all.push(Linked { machine: AARCH64, page: 0x10000, ..plain.clone() });
            all.push(plain);
        }
        all.push(Linked { reference: Some(1), ..Linked::new(style, form.units(3)) });
    }
    all
}

/// Returns processors and images that each wrapper leads to, up to those of the next one, read from memory.
fn registered(file: &[u8]) -> Vec<Unit> {
    let loaded = Loaded::new(file);
    let starts = loaded.registered();
    let read = |&start: &u64| {
        assert_eq!(start % 4096, 0, "starts on a page");
        assert!(loaded.read(start, 4096).is_some(), "the first page can be read");
        let section = (loaded.sections().into_iter())
            .filter(|section| section.name == ".hip_fatbin")
            .find(|section| (section.address..section.address + section.size).contains(&start))
            .unwrap();
        let next = starts.iter().copied().filter(|&next| next > start).min();
        let end = section.address + section.size;
        let memory = loaded.read(start, next.map_or(end, |next| next.min(end)) - start).unwrap();
        contents_of(&memory)
    };
    starts.iter().map(read).collect()
}

fn without(file: &[u8], archs: &[&str]) -> Result<Vec<u8>, Error> {
    edited(file, &[], |contents, edit| {
        for image in contents.images() {
            if archs.contains(&image.target().id()) {
                edit.remove(image.index());
            }
        }
    })
}

#[test]
fn one_target_is_kept_in_every_layout() {
    for form in Form::ALL {
        for linked in layouts(form) {
            let file = linked.build();
            let before = registered(&file);
            assert_eq!(before.concat().len(), images(&file).len(), "{linked:?}");
            let count = if samples::faulty::is_thorough() { TARGETS.len() } else { 1 };
            for (_, kept) in TARGETS.into_iter().rev().take(count) {
                let others: Vec<_> = TARGETS.map(|(_, arch)| arch).into();
                let others: Vec<_> = others.into_iter().filter(|arch| *arch != kept).collect();
                let thinned = without(&file, &others).unwrap();
                check_same(&file, &thinned);
                let left = |all: &Unit| -> Unit {
                    all.iter().filter(|(arch, _)| arch == kept).cloned().collect()
                };
                assert_eq!(registered(&thinned), before.iter().map(left).collect::<Vec<_>>());
                assert!(thinned.len() < file.len() || linked.page > 4096);
                assert_eq!(without(&thinned, &others).unwrap(), thinned, "idempotent");
            }
        }
    }
}

#[test]
fn images_are_replaced_and_added() {
    for form in Form::ALL {
        for style in [Style::First, Style::Third] {
            let file = Linked::new(style, form.units(3)).build();
            let (small, large) = (noise(77, 500), noise(78, 8000));
            let out = edited(&file, &[&small], |_, edit| edit.replace(4, 0)).unwrap();
            check_same(&file, &out);
            let mut expected = registered(&file);
            expected[1][1].1.clone_from(&small);
            assert_eq!(registered(&out), expected);
            // The new entry fits where one has gone.
            let out = edited(&file, &[&large], |contents, edit| {
                edit.remove(4);
                let container = contents.container_of(5).unwrap().index();
                edit.add(container, "hip-amdgpu9.42-amd-amdhsa--gfx942", 0);
            })
            .unwrap();
            check_same(&file, &out);
            let mut expected = registered(&file);
            expected[1].remove(1);
            expected[1].push(("gfx942".to_owned(), large));
            assert_eq!(registered(&out), expected);
        }
    }
}

#[test]
fn a_wrapper_keeps_at_least_one_image() {
    for form in Form::ALL {
        let file = Linked::new(Style::Third, form.units(2)).build();
        let all: Vec<_> = TARGETS.map(|(_, arch)| arch).into();
        let error = without(&file, &all).unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
    }
}
