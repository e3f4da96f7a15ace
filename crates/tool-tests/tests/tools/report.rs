//! `offload report`: what the page says of `offload thin` is what `offload thin` does.

use std::fs;

use samples::device::old_cubin;
use samples::fatbin::{Made, fatbin};
use samples::linked::{Linked, Style};
use samples::packages::{self, Around};
use serde_json::Value;

use crate::common::{all_data, data, stderr};
use crate::wheels::Place;

/// Returns the data of the page of a file.
fn page(place: &Place, file: &str) -> Value {
    let output = place.offload(&["report", file, "-o", "-"]);
    let page = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The results of one page.
#[derive(Debug, Default, PartialEq)]
struct Told {
    sizes: usize,
    refusals: usize,
    unknown: usize,
}

/// Fails unless the page of a file says of each GPU what `offload thin` does.
fn check(place: &Place, file: &str) -> Told {
    let data = page(place, file);
    let mut told = Told::default();
    let tree = &data["files"][0];
    for thin in tree["thin"].as_array().into_iter().flatten() {
        let gpu = &data["gpus"][thin["gpu"].as_u64().unwrap() as usize];
        let gpu = gpu["argument"].as_str().unwrap();
        let mut line = vec!["thin", "--keep", gpu, file, "-o", "thinned"];
        line.extend(thin.get("emptied").map(|_| "--allow-empty"));
        let done = place.offload(&line);
        let said = stderr(&done);
        if let Some(why) = thin["refused"].as_str().or(tree["uneditable"].as_str()) {
            assert_eq!(done.status.code(), Some(1), "{line:?}");
            let (why, _) = why.split_once(" (--allow-uneditable").unwrap_or((why, ""));
            assert!(said.contains(why), "{line:?}: {said} without {why}");
            told.refusals += 1;
            continue;
        }
        assert_eq!(done.status.code(), Some(0), "{line:?}: {said}");
        let [old, new] =
            [file, "thinned"].map(|name| fs::metadata(place.path(name)).unwrap().len());
        match thin["saved"].as_u64() {
            Some(saved) => {
                assert_eq!(old - new, saved, "{line:?}");
                told.sizes += 1;
            }
            None => told.unknown += 1,
        }
        fs::remove_file(place.path("thinned")).unwrap();
    }
    told
}

#[test]
fn the_page_says_what_thin_does() {
    let mut told = Told::default();
    for path in all_data() {
        let place = Place::with("file", &fs::read(&path).unwrap());
        let of_file = check(&place, "file");
        told.sizes += of_file.sizes;
        told.refusals += of_file.refusals;
        told.unknown += of_file.unknown;
    }
    assert!(told.sizes > 30 && told.refusals > 5 && told.unknown > 10, "{told:?}");
}

/// Device code beside other data in a linked file leaves zeros: the file keeps its size.
#[test]
fn zeros_are_not_saved() {
    let images = [80, 90].map(|sm| Made::cubin(sm, &old_cubin(sm)));
    let around = [0xa5; 24];
    let rodata = [&around[..], &fatbin(&images), &around].concat();
    let linked = Linked { rodata: Some(rodata), ..Linked::new(Style::Third, Vec::new()) };
    let place = Place::with("lib.so", &linked.build());
    assert_eq!(check(&place, "lib.so"), Told { sizes: 2, ..Told::default() });
    let data = page(&place, "lib.so");
    for thin in data["files"][0]["thin"].as_array().unwrap() {
        assert!(thin["stored"].as_u64().unwrap() > 50, "{thin}");
        assert_eq!(thin["saved"], 0);
    }
}

#[test]
fn a_package_is_refused_for_a_member() {
    let [hip, mac] = ["hip.o", "hip-macos.o"].map(|name| fs::read(data(name)).unwrap());
    let wheel =
        |files: &[(&str, &[u8])]| packages::zip(&packages::wheel(files), &Around::default());
    let place = Place::with("foo.whl", &wheel(&[("foo/hip.o", &hip), ("foo/mac.o", &mac)]));
    let told = check(&place, "foo.whl");
    // The Mach-O file has code for gfx906 and gfx1100; the other file for gfx906:xnack+, too.
    assert_eq!(told.refusals, 3);
    let place = Place::with("foo.whl", &wheel(&[("foo/hip.o", &hip)]));
    assert_eq!(check(&place, "foo.whl"), Told { unknown: 4, ..Told::default() });
}

/// An error of the output comes before the files are read.
#[test]
fn an_output_that_cannot_be_made_is_told_first() {
    let damaged = fs::read(data("cuda-fatbin.o")).map(|mut file| {
        file[1600..1604].fill(0xff);
        file
    });
    let place = Place::with("damaged.o", &damaged.unwrap());
    fs::create_dir(place.path("directory")).unwrap();
    for (out, why) in [
        ("missing/page.html", "offload: error: 'missing/page.html': "),
        ("directory", "offload: error: 'directory': "),
        ("./damaged.o", "offload: error: './damaged.o': this is an input: choose another name"),
    ] {
        let said = stderr(&place.offload(&["report", "damaged.o", "-o", out]));
        assert!(said.starts_with(why), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
