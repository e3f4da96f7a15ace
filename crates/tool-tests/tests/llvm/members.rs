//! Members of archives that a linker says it loaded. LLVM's tool links the same code for the same targets in the same order.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::convert::Infallible;
use std::fs;

use fat_object::{Options, list_slice};
use offload_link::{DeviceLinker, Group, Inputs, Parts, Plan, PlanOptions, RegisterOptions};

use crate::common::llvm;
use crate::common::place::Place;

const HOST: &str = "x86_64-unknown-linux-gnu";
const HOST_ID: &str = "host-x86_64-unknown-linux-gnu";

/// The code that is linked for each target, and the entries of the bundle.
type Links = (Vec<(String, Vec<String>)>, Vec<String>);

/// Writes an offload binary with code for these processors.
fn package(place: &Place, name: &str, archs: &[&str]) {
    place.put("code", name);
    let image =
        |arch: &&str| format!("--image=file=code,triple=amdgcn-amd-amdhsa,arch={arch},kind=hip");
    let images: Vec<_> = archs.iter().map(image).collect();
    let mut words = vec!["-o", name];
    words.extend(images.iter().map(String::as_str));
    place.run(llvm("llvm-offload-binary"), &words);
}

/// Returns what LLVM's tool would run.
fn of_llvm(place: &Place, line: &[&str]) -> Links {
    let host = format!("--host-triple={HOST}");
    let fixed = ["--dry-run", &host, "--linker-path=/usr/bin/ld", "-o", "out"];
    let output = place.try_run(llvm("clang-linker-wrapper"), &[&fixed, line].concat());
    assert!(output.status.success());
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let mut links = Vec::new();
    let mut ids = Vec::new();
    for words in said.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
        let after = |option: &str| words.iter().find_map(|word| word.strip_prefix(option));
        if let Some(targets) = after("-targets=") {
            ids.extend(targets.split(',').map(str::to_owned));
        } else if let Some(arch) = after("-mcpu=") {
            let code = words.iter().filter(|word| word.ends_with(".o"));
            let stem = |path: &&str| {
                let name = path.rsplit('/').next().unwrap();
                name.split('-').next().unwrap().to_owned()
            };
            links.push((arch.to_owned(), code.map(stem).collect()));
        }
    }
    (links, ids)
}

struct Nothing;

impl DeviceLinker for Nothing {
    type Error = Infallible;

    fn link(&mut self, group: &Group<'_>) -> Result<Parts, Infallible> {
        Ok(group.target().arch().as_bytes().to_vec().into())
    }
}

fn of_plan(inputs: &Inputs<'_>, extract: Option<&str>) -> Links {
    let options = PlanOptions::default().with_should_extract(extract);
    let plan = Plan::new(inputs, &options).unwrap();
    let links = plan.groups().iter().map(|group| {
        let code = group.inputs().iter().map(|input| input.code().stem().to_owned());
        (group.target().arch().to_owned(), code.collect())
    });
    let images = plan.link(&mut Nothing).unwrap();
    let object = images.object(&RegisterOptions::new(HOST)).unwrap().unwrap_or_default();
    let listed = list_slice(&object, &Options::default().with_enter_images(false)).unwrap();
    // The bundler completes the host's.
    let ids = listed.images().iter().filter_map(|image| image.id());
    let ids = ids.map(|id| if id.starts_with("host") { HOST_ID } else { id }.to_owned());
    (links.collect(), ids.collect())
}

#[test]
fn loaded_members_are_linked_as_by_llvm() {
    let place = Place::new();
    for (name, archs) in [
        ("a.bin", &["gfx906", "gfx1030", "gfx90a:xnack+"][..]),
        ("b.bin", &["gfx90a:xnack-", "gfx1100"]),
        ("m.bin", &["gfx1100", "gfx906", "gfx942"]),
        ("n.bin", &["gfx90a:xnack+", "gfx1201"]),
        ("o.bin", &["gfx942", "gfx1030", "gfx90a:xnack-"]),
    ] {
        package(&place, name, archs);
    }
    let members = ["o.bin", "m.bin", "n.bin"];
    place.run(llvm("llvm-ar"), &[&["rcs", "l.a"], &members[..]].concat());
    let read = |name: &&str| fs::read(place.path(name)).unwrap();
    let [a, b] = ["a.bin", "b.bin"].each_ref().map(read);
    let codes: Vec<_> = members.iter().map(read).collect();
    for (order, extract) in [
        (["a.bin", "l.a", "b.bin"], None),
        (["l.a", "b.bin", "a.bin"], None),
        (["b.bin", "a.bin", "l.a"], Some("gfx942")),
        (["l.a", "a.bin", "b.bin"], Some("gfx1201")),
    ] {
        for whole in [false, true] {
            let mut inputs = Inputs::new();
            let mut line = Vec::new();
            for name in order {
                match name {
                    "a.bin" => drop(inputs.add(name, &a).unwrap()),
                    "b.bin" => drop(inputs.add(name, &b).unwrap()),
                    _ => {
                        inputs.whole_archive(whole);
                        for (member, code) in members.iter().zip(&codes) {
                            inputs.add_member(name, member, code, true).unwrap();
                        }
                    }
                }
                line.extend((whole && name == "l.a").then_some("--whole-archive"));
                line.push(name);
                line.extend((whole && name == "l.a").then_some("--no-whole-archive"));
            }
            let asked = extract.map(|arch| format!("--should-extract={arch}"));
            line.extend(asked.as_deref());
            let (links, ids) = of_plan(&inputs, extract);
            let (their_links, their_ids) = of_llvm(&place, &line);
            assert_eq!(ids, their_ids, "{line:?}");
            assert_eq!(links, their_links, "{line:?}");
            assert!(links.len() >= 4 && !ids.is_empty());
        }
    }
}
