//! The offload link step, of inputs made from the fuzzer's bytes, and of those bytes themselves.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, Read};

use arbitrary::{Result, Unstructured};
use fat_object::{Container, ContainerKind, Enter, FileFormat, Image, Options, Visitor};
use hda_archive::{Member, write_archive};
use object_edit::NewSections;
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use offload_link::{
    DeviceLinker, Fit, Group, Inputs, Members, Parts, Plan, PlanOptions, Reason, RegisterOptions,
};
use samples::elf::with_symbols;

const ARCHS: [&str; 7] = [
    "gfx90a",
    "gfx90a:xnack+",
    "gfx90a:xnack-",
    "gfx1030",
    "generic",
    "",
    "gfx90a:sramecc+:xnack+",
];
const KINDS: [OffloadKind; 3] = [OffloadKind::HIP, OffloadKind::OPENMP, OffloadKind::NONE];
const TRIPLES: [&str; 2] = ["amdgcn-amd-amdhsa", "x86_64-unknown-linux-gnu"];

/// An input, and whether members of it are objects.
struct File {
    bytes: Vec<u8>,
    whole: bool,
}

/// Links made inputs and checks the plan; links any bytes.
pub fn check(data: &[u8]) {
    any_bytes(data);
    let _ = symbols(&mut Unstructured::new(data));
    let mut u = Unstructured::new(data);
    let Ok(files) = made(&mut u) else { return };
    let extract = u.choose(&ARCHS).ok().filter(|_| u.ratio(1, 3).unwrap_or_default());
    let found = planned(&files, extract);
    // Without extraction, the order of inputs changes the order of results only.
    if extract.is_none() {
        let reversed: Vec<_> = files.into_iter().rev().collect();
        assert_eq!(found, planned(&reversed, None));
    }
}

/// The inputs of each image, by its target: the contents of inputs are all different.
type LinkedInputs = BTreeSet<(String, BTreeSet<Vec<u8>>)>;

fn planned(files: &[File], extract: Option<&&'static str>) -> LinkedInputs {
    let mut inputs = Inputs::new();
    for file in files {
        inputs.whole_archive(file.whole);
        inputs.add("file", &file.bytes).expect("well-formed inputs");
    }
    let options = PlanOptions::default().with_should_extract(extract.copied());
    let plan = Plan::new(&inputs, &options).expect("kinds that can be linked together");
    let in_groups = |code: &[u8]| {
        let groups = plan.groups().iter();
        groups
            .filter(|group| group.inputs().iter().any(|it| it.code().bytes() == Some(code)))
            .count()
    };
    for code in inputs.codes() {
        let left =
            plan.left_out().iter().filter(|left| left.code().bytes() == code.bytes()).count();
        let taken = in_groups(code.bytes().expect("code in memory"));
        assert!(left == usize::from(taken == 0), "{code}: {taken} images, {left} times left out");
        assert!(left == 0 || code.is_lazy(), "{code} is an object");
    }
    let targets: BTreeSet<_> = plan.groups().iter().map(Group::target).collect();
    assert_eq!(targets.len(), plan.groups().len(), "one image for each target");
    for group in plan.groups() {
        assert!(!group.inputs().is_empty());
        for input in group.inputs() {
            assert_eq!(input.code().target().fits(group.target()), Some(input.fit()));
            assert!(group.kinds().contains(&input.code().offload_kind()));
        }
        let own = group.inputs().iter().any(|input| input.fit() == Fit::Same);
        assert!(own, "{} is demanded by nothing", group.target());
    }
    register(&plan);
    let found = plan.groups().iter().map(|group| {
        let inputs = group
            .inputs()
            .iter()
            .map(|input| input.code().bytes().expect("code in memory").to_vec());
        (group.target().to_string(), inputs.collect())
    });
    found.collect()
}

struct Join;

impl DeviceLinker for Join {
    type Error = Infallible;

    fn link(&mut self, group: &Group<'_>) -> std::result::Result<Parts, Infallible> {
        let codes = group.inputs().iter().filter_map(|input| input.code().bytes());
        Ok(codes.collect::<Vec<_>>().concat().into())
    }
}

fn register(plan: &Plan<'_>) {
    let Ok(images) = plan.link(&mut Join);
    match images.object(&RegisterOptions::new(TRIPLES[1])) {
        Ok(Some(object)) => assert!(object.starts_with(b"\x7fELF")),
        Ok(None) => assert!(images.kinds().is_empty()),
        Err(error) => is_line(&error),
    }
}

fn any_bytes(data: &[u8]) {
    for members in [Members::All, Members::Needed] {
        let mut inputs = Inputs::new().with_symbols();
        let added = inputs.add("file", data);
        compare_with_walk(data, &inputs, added.as_ref().err());
        match added {
            Ok(_) => {}
            Err(error) => return is_line(&error),
        }
        let options = PlanOptions::default().with_should_extract(ARCHS).with_members(members);
        match Plan::new(&inputs, &options) {
            Ok(plan) => register(&plan),
            Err(error) => is_line(&error),
        }
    }
}

/// Device code where compilers put it, found by a walk that looks into all sections.
#[derive(Default)]
struct Found(Vec<(String, u64)>);

impl Visitor for Found {
    fn opens(&mut self, container: &Container) -> Enter {
        let name = container.path().last().map_or("", |step| step.name());
        let opens = match container.kind() {
            ContainerKind::Member | ContainerKind::OffloadBinary => true,
            ContainerKind::Section => {
                name.starts_with(".llvm.offloading") && name != ".llvm.offloading.relocatable"
            }
            _ => false,
        };
        if opens { Enter::Open } else { Enter::Skip }
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let info = image.info();
        if let Some(entry) = info.offload_binary_entry() {
            let arch = entry.get("arch").map_or("".into(), String::from_utf8_lossy).into_owned();
            let mut bytes = Vec::new();
            self.0.push((arch, image.reader().read_to_end(&mut bytes)? as u64));
        }
        Ok(())
    }
}

/// Checks that no device code is missed, and no damage, of what is searched at all.
fn compare_with_walk(data: &[u8], inputs: &Inputs<'_>, error: Option<&offload_link::Error>) {
    let head = data.get(..64).unwrap_or(data);
    let is_searched = match FileFormat::sniff(head) {
        FileFormat::Elf { .. } => !offload_link::is_library(head),
        FileFormat::Coff | FileFormat::Bitcode | FileFormat::Archive => true,
        format => format == FileFormat::OffloadBinary,
    };
    if !is_searched {
        assert!(inputs.codes().is_empty() && error.is_none());
        return;
    }
    let mut found = Found::default();
    let options = Options::default().with_enter_images(false).with_scan(false);
    let walked = fat_object::walk_slice(data, &options, &mut found);
    match (walked, error) {
        (Ok(_), None) => {
            let codes = inputs.codes().iter();
            let codes: Vec<_> =
                codes.map(|code| (code.target().arch().to_owned(), code.size())).collect();
            assert_eq!(codes, found.0);
        }
        (Ok(_), Some(error)) => panic!("{error}"),
        // A thin archive has reasons of its own. Sections that no name gives away may overlap as they like.
        (Err(damage), error) => {
            let (damage, error) = (damage.to_string(), error.map(ToString::to_string));
            let is_same = error.as_ref().is_some_and(|error| error.ends_with(&damage));
            let is_other = damage.contains("overlap") || damage.contains("thin archive");
            assert!(is_same || is_other, "{damage}: {error:?}");
        }
    }
}

/// An object with symbols, or a member of an archive: what it defines and refers to, each as [`elf`] takes it.
#[derive(Clone, Debug)]
struct Made {
    /// The number of its archive; none for an object.
    archive: Option<usize>,
    host: Vec<String>,
    /// Device code for each target.
    codes: Vec<(&'static str, Vec<String>)>,
}

/// Checks [`Members::Needed`] against the plain definition: repeated until nothing is added.
fn symbols(u: &mut Unstructured<'_>) -> Result<()> {
    let mut made = Vec::new();
    for _ in 0..u.int_in_range(0..=7)? {
        let archive = u.arbitrary::<Option<bool>>()?.map(usize::from);
        let host = names(u)?;
        let mut codes = Vec::new();
        for arch in ["gfx90a", "gfx1030"] {
            if u.arbitrary()? {
                codes.push((arch, names(u)?));
            }
        }
        made.push(Made { archive, host, codes });
    }
    let root = u.arbitrary::<bool>()?.then_some("a");
    let [all, found] = [Members::All, Members::Needed].map(|which| taken(&made, which, root));
    assert!(found.is_subset(&all), "{found:?} {all:?}");
    assert_eq!(found, expected(&made, root), "{made:?}");
    // The order of inputs changes nothing.
    let reversed: Vec<_> = made.iter().rev().cloned().collect();
    let renumbered = taken(&reversed, Members::Needed, root).into_iter();
    let last = made.len().saturating_sub(1);
    let renumbered: Taken = renumbered.map(|(arch, number)| (arch, last - number)).collect();
    assert_eq!(renumbered, found, "{made:?}");
    Ok(())
}

/// Returns up to four symbols of five, with a mark for the kind of each.
fn names(u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let mark = u.choose(&["", "-", "-", "?", "~", "="])?;
        names.push(format!("{mark}{}", u.choose(&["a", "b", "c", "d", "e"])?));
    }
    Ok(names)
}

/// Objects by number, in the images that they are in.
type Taken = BTreeSet<(String, usize)>;

fn taken(made: &[Made], members: Members, root: Option<&str>) -> Taken {
    let files: Vec<_> = made.iter().enumerate().map(|(number, it)| object(number, it)).collect();
    let mut archives = Vec::new();
    for archive in 0..2 {
        let inside = made.iter().enumerate().filter(|(_, it)| it.archive == Some(archive));
        let inside = inside.map(|(number, _)| (format!("{number}.o"), &files[number][..]));
        let inside: Vec<_> = inside.collect();
        let mut bytes = Vec::new();
        let members = inside.iter().map(|(name, bytes)| Member::new(name.as_str(), *bytes));
        write_archive(&mut bytes, members).expect("memory does not fail");
        archives.push(bytes);
    }
    let mut inputs = Inputs::new().with_symbols();
    for (number, file) in files.iter().enumerate().filter(|(at, _)| made[*at].archive.is_none()) {
        inputs.add(&format!("{number}.o"), file).expect("a well-formed object");
    }
    for archive in &archives {
        inputs.add("lib.a", archive).expect("a well-formed archive");
    }
    let options = PlanOptions::default().with_members(members).with_roots(root);
    let plan = Plan::new(&inputs, &options).expect("one kind");
    let mut found = Taken::new();
    for group in plan.groups() {
        for input in group.inputs() {
            assert_eq!(input.need().is_some(), input.code().is_lazy() && members != Members::All);
            let number = input.code().stem().parse().expect("a number");
            assert!(found.insert((group.target().arch().to_owned(), number)));
        }
    }
    // Each code is in its image or left out.
    for code in inputs.codes() {
        let left = plan.left_out().iter().filter(|left| left.code().index() == code.index());
        let key = (code.target().arch().to_owned(), code.stem().parse().expect("a number"));
        assert_eq!(left.count(), usize::from(!found.contains(&key)), "{key:?}");
    }
    let not_needed = plan.left_out().iter().any(|left| *left.reason() == Reason::NotNeeded);
    assert!(!not_needed || members == Members::Needed);
    found
}

/// Returns an object with the device code of its host.
fn object(number: usize, made: &Made) -> Vec<u8> {
    let file = |names: &[String]| {
        with_symbols(false, &names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut package = Vec::new();
    for (arch, names) in &made.codes {
        // All different: equal members are linked once.
        let mut code = file(names);
        code.extend(number.to_le_bytes());
        let entry = ImageEntry::new(code.len() as u64)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("triple", TRIPLES[0])
            .with_string("arch", *arch);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).expect("a small one");
        package.extend(layout.to_vec(&[&code]).expect("memory does not fail"));
    }
    let host = file(&made.host);
    if package.is_empty() {
        return host;
    }
    let sections = NewSections::offloading(&host, package.len() as u64).expect("an object");
    let mut object = Vec::new();
    sections.write_to(&mut object, [&package[..]]).expect("memory does not fail");
    object
}

/// Returns the names with one of these marks; `""` is the mark of a strong definition.
fn marked<'n>(names: &'n [String], marks: &[&str]) -> BTreeSet<&'n str> {
    let split = |name: &'n String| match name.len() {
        1 => ("", name.as_str()),
        _ => name.split_at(1),
    };
    let names = names.iter().map(split).filter(|(mark, _)| marks.contains(mark));
    names.map(|(_, name)| name).collect()
}

const PROVIDED: [&str; 3] = ["", "~", "="];
const WANTED: [&str; 2] = ["-", "="];

/// The definition of [`Members::Needed`], without a thought about time.
fn expected(made: &[Made], root: Option<&str>) -> Taken {
    let mut by_host: Vec<bool> = made.iter().map(|it| it.archive.is_none()).collect();
    loop {
        let linked = made.iter().zip(&by_host).filter(|(_, taken)| **taken);
        let mut wanted: BTreeSet<_> =
            linked.flat_map(|(it, _)| marked(&it.host, &WANTED)).collect();
        wanted.extend(root);
        let next: Vec<bool> = made
            .iter()
            .zip(&by_host)
            .map(|(it, taken)| *taken || !marked(&it.host, &PROVIDED).is_disjoint(&wanted))
            .collect();
        if next == by_host {
            break;
        }
        by_host = next;
    }
    let mut found = Taken::new();
    for arch in ["gfx90a", "gfx1030"] {
        let code = |it: &'_ Made| it.codes.iter().find(|(other, _)| *other == arch).cloned();
        let codes: Vec<_> = made.iter().map(|it| code(it).map(|(_, names)| names)).collect();
        let demands = |(it, code): (&Made, &Option<_>)| it.archive.is_none() && code.is_some();
        if !made.iter().zip(&codes).any(demands) {
            continue;
        }
        let mut image = by_host.clone();
        loop {
            let linked = codes.iter().zip(&image).filter(|(_, taken)| **taken);
            let linked: Vec<_> = linked.filter_map(|(code, _)| code.as_deref()).collect();
            let defined: BTreeSet<_> =
                linked.iter().flat_map(|names| marked(names, &["", "~"])).collect();
            let wanted: BTreeSet<_> =
                linked.iter().flat_map(|names| marked(names, &WANTED)).collect();
            let missing: BTreeSet<_> = wanted.difference(&defined).copied().collect();
            let provides = |names: &Vec<String>| !marked(names, &PROVIDED).is_disjoint(&missing);
            let next: Vec<bool> = codes
                .iter()
                .zip(&image)
                .map(|(code, taken)| *taken || code.as_ref().is_some_and(provides))
                .collect();
            if next == image {
                break;
            }
            image = next;
        }
        let inside = codes.iter().zip(&image).enumerate();
        let inside = inside.filter(|(_, (code, taken))| code.is_some() && **taken);
        found.extend(inside.map(|(number, _)| (arch.to_owned(), number)));
    }
    found
}

fn is_line(error: &offload_link::Error) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}

fn made(u: &mut Unstructured<'_>) -> Result<Vec<File>> {
    let mut number = 0;
    let mut files = Vec::new();
    for _ in 0..u.int_in_range(0..=5)? {
        let members = u.int_in_range(0..=3)?;
        let whole = u.arbitrary()?;
        let bytes = match members {
            0 => package(u, &mut number)?,
            _ => {
                let members = (0..members).map(|_| package(u, &mut number));
                let members = members.collect::<Result<Vec<_>>>()?;
                let members = members.iter().map(|bytes| Member::new("m.o", &bytes[..]));
                let mut archive = Vec::new();
                write_archive(&mut archive, members).expect("memory does not fail");
                archive
            }
        };
        files.push(File { bytes, whole });
    }
    Ok(files)
}

/// Returns offload binaries with up to three images, whose contents are numbers that count.
fn package(u: &mut Unstructured<'_>, number: &mut u32) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        *number += 1;
        let image = number.to_le_bytes();
        let entry = ImageEntry::new(image.len() as u64)
            .with_offload_kind(*u.choose(&KINDS)?)
            .with_string("triple", *u.choose(&TRIPLES)?)
            .with_string("arch", *u.choose(&ARCHS)?);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).expect("a small one");
        all.extend(layout.to_vec(&[&image]).expect("memory does not fail"));
    }
    Ok(all)
}
