//! The offload link step, of inputs made from the fuzzer's bytes, and of those bytes themselves.

use std::collections::BTreeSet;
use std::convert::Infallible;

use arbitrary::{Result, Unstructured};
use hda_archive::{Member, write_archive};
use offload_binary::{FormatVersion, ImageEntry, OffloadKind};
use offload_link::{DeviceLinker, Fit, Group, Inputs, Parts, Plan, PlanOptions, RegisterOptions};

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
type Found = BTreeSet<(String, BTreeSet<Vec<u8>>)>;

fn planned(files: &[File], extract: Option<&&'static str>) -> Found {
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
    let mut inputs = Inputs::new();
    match inputs.add("file", data) {
        Ok(_) => {}
        Err(error) => return is_line(&error),
    }
    match Plan::new(&inputs, &PlanOptions::default().with_should_extract(ARCHS)) {
        Ok(plan) => register(&plan),
        Err(error) => is_line(&error),
    }
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
            .offload_kind(*u.choose(&KINDS)?)
            .string("triple", *u.choose(&TRIPLES)?)
            .string("arch", *u.choose(&ARCHS)?);
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).expect("a small one");
        all.extend(layout.to_vec(&[&image]).expect("memory does not fail"));
    }
    Ok(all)
}
