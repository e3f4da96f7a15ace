//! The data of a page adds up, whatever the files and their names are; the page holds it and nothing from outside.

#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use device_account::{Account, Accountant, Amount, By, PackageShare};
use device_report::{
    File, MOST_CHOICES, MOST_GPUS, MOST_NOTES, MOST_OF_NAME, Node, NodeKind, Note, Report, Shell,
    Tried, Tries, choices, write_page,
};
use fat_object::{Options, walk};
use samples::bundle;
use samples::device::amd;
use serde_json::Value;

fn account(file: &[u8]) -> Account {
    let mut accountant = Accountant::new().with_functions(true);
    walk(Cursor::new(file), &Options::default(), &mut accountant).unwrap();
    accountant.finish(Cursor::new(file)).unwrap()
}

fn data(name: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    fs::read(data.join(name)).unwrap()
}

fn report(name: &str, file: &[u8]) -> Report {
    let accounts = [(name.to_owned(), account(file))];
    Report::new(&[File::new(name, &accounts).with_path(name.as_bytes())], Vec::new(), Shell::Posix)
}

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    report.write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Returns the data of a page, as a browser finds it.
fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Fails unless each row is the sum of its rows.
fn check(node: &Node) {
    let sum = |of: fn(&Node) -> u64| node.children.iter().map(of).sum::<u64>();
    if !node.children.is_empty() {
        let sums = (sum(|node| node.stored), sum(|node| node.plain));
        assert_eq!((node.stored, node.plain), sums, "{}", node.name);
    }
    node.children.iter().for_each(check);
}

#[test]
fn rows_add_up_to_the_files() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let mut rows = 0;
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let (name, file) = (path.to_str().unwrap(), fs::read(&path).unwrap());
        let report = report(name, &file);
        let [tree] = report.files() else { panic!("{name}") };
        assert_eq!(tree.stored, file.len() as u64, "{name}");
        check(tree);
        let gpus = tree.children.iter().filter(|node| node.kind == NodeKind::Gpu);
        let gpus = gpus.map(|node| (report.gpus()[node.gpu.unwrap()].name.clone(), node));
        let mut found: Vec<_> = gpus.map(|(name, node)| (name, node.stored, node.plain)).collect();
        let by_target = account(&file).rows(By::Target).into_iter();
        let mut expected: Vec<_> = by_target
            .filter(|row| !row.target.is_empty() && row.target != "host")
            .map(|row| (row.target, row.amount.stored, row.amount.plain))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
        rows += found.len();
    }
    assert!(rows > 30, "{rows}: the examples have few GPUs");
}

#[test]
fn members_of_a_package_add_up_to_it() {
    let files = ["pkg.whl:a/hip.o", "pkg.whl:cuda.o"];
    let [hip, cuda] = ["hip.o", "cuda-fatbin.o"].map(|name| account(&data(name)));
    let members: [(&[u8], Amount); 3] = [
        (b"a/hip.o", Amount::new(5000, hip.size())),
        (b"cuda.o", Amount::new(1001, cuda.size())),
        (b"README", Amount::new(10, 20)),
    ];
    let paths: [&[u8]; 2] = [b"a/hip.o", b"cuda.o"];
    let share = PackageShare::of(6100, Some(&members), paths);
    assert_eq!(share.members, [5000, 1001]);
    let accounts = [(files[0].to_owned(), hip), (files[1].to_owned(), cuda)];
    let file = File::new("pkg.whl", &accounts).with_share(&share);
    let report =
        Report::new(&[file.with_uneditable("a reason".to_owned())], Vec::new(), Shell::Posix);
    let [tree] = report.files() else { panic!() };
    check(tree);
    assert_eq!((tree.kind, tree.stored), (NodeKind::Package, 6100));
    assert_eq!((&tree.argument, tree.uneditable.as_deref()), (&None, Some("a reason")));
    let names: Vec<_> = tree.children.iter().map(|it| (&*it.name, it.stored)).collect();
    let rest = [("package-overhead", 89), ("other-members", 10)];
    assert_eq!(names, [&[("a/hip.o", 5000), ("cuda.o", 1001)][..], &rest].concat());
    // Two rows have bytes that `offload thin` removes: each in proportion to its part of the package.
    let thin = &tree.thin.iter().find(|thin| report.gpus()[thin.gpu].name == "gfx1100").unwrap();
    assert!(thin.stored > 0 && thin.stored < thin.plain, "{thin:?}");
}

#[test]
fn a_gpu_removes_the_images_of_others() {
    let report = report("hip.o", &data("hip.o"));
    let [tree] = report.files() else { panic!() };
    let name = |gpu: usize| &*report.gpus()[gpu].name;
    let of = |gpu| tree.thin.iter().find(|thin| name(thin.gpu) == gpu).unwrap();
    let size = |gpu| tree.children.iter().find(|node| node.name == gpu).unwrap().stored;
    let [old, generic] = ["gfx906:xnack+", "gfx9-generic"];
    let others = size(old) + size(generic) + size("gfx90a:sramecc+:xnack-");
    assert_eq!((of("gfx1100").stored, of("gfx1100").plain), (others, others));
    assert!(of("gfx1100").also.is_empty());
    let also: Vec<_> = of(old).also.iter().map(|gpu| name(*gpu)).collect();
    assert_eq!((also, of(old).emptied), (vec![generic], 0));
    assert_eq!(of(old).stored, size("gfx1100") + size("gfx90a:sramecc+:xnack-"));
    assert_eq!(tree.argument.as_deref(), Some("hip.o"));
}

#[test]
fn containers_without_code_for_a_gpu_are_counted() {
    let id = |gpu: &str| format!("hipv4-amdgcn-amd-amdhsa--{gpu}");
    let one = |gpu, flags| bundle::bundle_of(&[(id(gpu), amd(flags))], 8);
    let file = [one("gfx906", 0x2f), one("gfx1100", 0x41), one("gfx1100", 0x41)].concat();
    let report = report("three", &file);
    let emptied: Vec<_> = report.files()[0]
        .thin
        .iter()
        .map(|thin| (&*report.gpus()[thin.gpu].name, thin.emptied))
        .collect();
    assert_eq!(emptied, [("gfx1100", 1), ("gfx906", 2)]);
}

#[test]
fn offload_binaries_of_a_section_are_one_container() {
    let report = report("merged-packager.o", &data("merged-packager.o"));
    let [tree] = report.files() else { panic!() };
    assert_eq!(tree.thin.len(), 3);
    assert!(tree.thin.iter().all(|thin| thin.emptied == 0), "{:?}", tree.thin);
}

#[test]
fn few_gpus_are_choices() {
    let ids: Vec<_> = (0..MOST_CHOICES + 6)
        .map(|at| (format!("hipv4-amdgcn-amd-amdhsa--gfx{:x}", 0x1000 + at), amd(0x41)))
        .collect();
    let report = report("many", &bundle::bundle_of(&ids, 8));
    assert_eq!(report.gpus().len(), ids.len());
    let askable = report.gpus().iter().filter(|gpu| gpu.argument.is_some()).count();
    assert!((1..=MOST_CHOICES).contains(&askable), "{askable}");
    assert_eq!(report.files()[0].thin.len(), askable);
}

#[test]
fn the_largest_gpus_stay_and_the_others_are_summed() {
    let number = MOST_GPUS + 50;
    let ids: Vec<_> = (0..number)
        .map(|at| {
            let mut code = amd(0x41);
            code.resize(code.len() + 8 * at, 1);
            (format!("hipv4-amdgcn-amd-amdhsa--gfx{:x}", 0x1000 + at), code)
        })
        .collect();
    let file = bundle::bundle_of(&ids, 8);
    let report = report("many", &file);
    assert_eq!(report.gpus().len(), MOST_GPUS);
    assert_eq!(report.gpus()[0].name, format!("gfx{:x}", 0x1000 + number - 1));
    let [tree] = report.files() else { panic!() };
    assert_eq!(tree.stored, file.len() as u64);
    check(tree);
    let more: Vec<_> = tree.children.iter().filter(|it| it.kind == NodeKind::More).collect();
    let [more] = more[..] else { panic!("{} sums", more.len()) };
    assert_eq!((more.count, more.gpu), (50, None));
    let kept = tree.children.iter().filter(|node| node.kind == NodeKind::Gpu);
    assert!(kept.clone().count() == MOST_GPUS);
    assert!(kept.clone().all(|node| report.gpus()[node.gpu.unwrap()].name == node.name));
    // The smallest are in the sum.
    let smallest = kept.map(|node| node.stored).min().unwrap();
    assert!(more.stored < 50 * smallest, "{} {smallest}", more.stored);
}

#[test]
fn notes_are_few_and_errors_come_first() {
    let mut notes = vec![Note::warning("a", "x".repeat(1000)); MOST_NOTES];
    notes.push(Note::error("b", "wrong"));
    let mut data = Vec::new();
    Report::new(&[], notes, Shell::Posix).write_data(&mut data).unwrap();
    let data: Value = serde_json::from_slice(&data).unwrap();
    assert_eq!((&data["errors"], &data["warnings"]), (&Value::from(1), &Value::from(MOST_NOTES)));
    let notes = data["notes"].as_array().unwrap();
    assert_eq!((notes.len(), notes[0]["file"].as_str()), (MOST_NOTES, Some("b")));
    assert_eq!(notes[1]["message"].as_str().unwrap().chars().count(), MOST_OF_NAME);
}

#[test]
fn results_of_trials_are_those_of_the_file() {
    let file = data("hip.o");
    let names: Vec<_> = choices(&account(&file)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4);
    let tries = [
        Tries::default()
            .with_gpu("gfx1100".to_owned(), Tried::Saves(7))
            .with_gpu("gfx9-generic".to_owned(), Tried::Refused("a reason".to_owned())),
        Tries::default().with_gpu("gfx1100".to_owned(), Tried::Saves(5)),
    ];
    let results = |file: File<'_>| {
        let report = Report::new(&[file], Vec::new(), Shell::Posix);
        let name = |gpu: usize| report.gpus()[gpu].name.clone();
        let thin = report.files()[0].thin.iter();
        thin.map(|thin| (name(thin.gpu), (thin.saved, thin.refused.clone())))
            .collect::<BTreeMap<_, _>>()
    };
    let accounts = ["a", "b"].map(|name| (name.to_owned(), account(&file)));
    let one = results(File::new("a", &accounts[..1]).with_tries(&tries));
    assert_eq!(one["gfx1100"], (Some(7), None));
    assert_eq!(one["gfx9-generic"].1.as_deref(), Some("a reason"));
    assert_eq!(one["gfx906:xnack+"], (None, None));
    let two = results(File::new("a", &accounts).with_tries(&tries));
    assert_eq!(two["gfx1100"], (Some(12), None));
    // The sizes of members are not those in their package.
    let paths: [&[u8]; 2] = [b"a", b"b"];
    let share = PackageShare::of(100, None, paths);
    let package = results(File::new("a", &accounts).with_tries(&tries).with_share(&share));
    assert_eq!(package["gfx1100"], (None, None));
    // The first image is gfx1100.
    let tries = [Tries::default(), Tries::default().with_uneditable(0..2, "a reason")];
    let package = results(File::new("pkg", &accounts).with_tries(&tries).with_share(&share));
    assert_eq!(package["gfx1100"], (None, None));
    assert_eq!(package["gfx906:xnack+"].1.as_deref(), Some("b: a reason"));
    let tries = [Tries::refused("damaged")];
    let file = results(File::new("a", &accounts[..1]).with_tries(&tries));
    assert!(file.values().all(|(_, why)| why.as_deref() == Some("damaged")), "{file:?}");
}

#[test]
fn hostile_names_stay_data() {
    let evil = "</script><script>alert(1)</script><!--\u{2028}\u{202e}&amp;\"'\\\0";
    let id = format!("hip-amdgcn-amd-amdhsa--{}", "<!--<script>&\u{2029}</ScRiPt >");
    let file = bundle::bundle_of(&[(id, amd(0x2f))], 8);
    let accounts = [(evil.to_owned(), account(&file))];
    let files = [File::new(evil, &accounts).with_path(b"\xff</script>'\n")];
    let notes = vec![Note::error(evil, evil), Note::warning(evil, evil)];
    let report = Report::new(&files, notes, Shell::Posix);
    let (page, mut plain) = (page(&report), Vec::new());
    report.write_data(&mut plain).unwrap();
    let found = data_of(&page);
    assert_eq!(found, serde_json::from_slice::<Value>(&plain).unwrap());
    assert_eq!(found["files"][0]["name"], evil);
    assert_eq!(found["files"][0]["argument"], r"$'\377</script>\'\n'");
    assert!(found["gpus"][0]["name"].as_str().unwrap().contains("<script>"), "{found}");
    assert_eq!(found["gpus"][0]["argument"], Value::Null);
    // Only the elements of the page itself.
    for (mark, count) in [("<script", 2), ("</script>", 2), ("<!--", 0)] {
        assert_eq!(page.matches(mark).count(), count, "{mark}");
    }
}

#[test]
fn equal_files_give_equal_pages() {
    for name in ["hip.o", "cuda-fatbin.o", "libhip.a"] {
        let file = data(name);
        assert_eq!(page(&report(name, &file)), page(&report(name, &file)));
    }
}

#[test]
fn the_page_loads_nothing() {
    let mut page = Vec::new();
    write_page(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(data_of(&page), Value::Null);
    for word in
        ["http:", "https:", "//www", "@import", "url(", "innerHTML", "eval(", "new Function", "{{"]
    {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    // With data, style and script are the same, and so is the policy.
    let policy = |page: &str| page.split_once("content=\"default-src").unwrap().1[..200].to_owned();
    let with_data = self::page(&report("hip.o", &data("hip.o")));
    assert_eq!(policy(&page), policy(&with_data));
}
