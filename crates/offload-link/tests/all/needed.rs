//! Members of archives that something needs, and members that nothing needs.

use std::io::{self, Cursor};

use offload_link::{Inputs, Members, Need, Plan, PlanOptions, Reason};
use samples::elf::with_symbols;

use crate::common::{archive, hip, offloading, planned, with_code};

const MAIN: &str = "main";

/// An input: its name, its bytes, and whether members of it are objects.
type File<'f> = (&'f str, &'f [u8], bool);

/// Returns the inputs of the images, each with the reason for members, and the code that is in no image.
fn needed(files: &[File<'_>], options: &PlanOptions) -> (Vec<String>, Vec<String>) {
    let (mut lent, mut read) = (Inputs::new().with_symbols(), Inputs::new().with_symbols());
    for (name, bytes, whole) in files {
        lent.whole_archive(*whole);
        lent.add(name, bytes).unwrap();
        let mut one = Inputs::new().with_symbols();
        one.whole_archive(*whole);
        one.read(name, Cursor::new(bytes), |_| Err(io::ErrorKind::NotFound.into())).unwrap();
        read.append(one);
    }
    let found = outcome(&lent, options);
    assert_eq!(outcome(&read, options), found, "files and memory");
    found
}

fn outcome(inputs: &Inputs<'_>, options: &PlanOptions) -> (Vec<String>, Vec<String>) {
    let options = options.clone().with_members(Members::Needed);
    let plan = Plan::new(inputs, &options).unwrap();
    let mut taken = Vec::new();
    for group in plan.groups() {
        for input in group.inputs() {
            let need = input.need().map(|need| format!(": {need}")).unwrap_or_default();
            taken.push(format!("{} {}{need}", group.target().arch(), input.code()));
        }
    }
    let left = plan.left_out().iter();
    let left = left.map(|left| format!("{}: {}", left.code(), left.reason()));
    (taken, left.collect())
}

/// As `needed`, of objects and lazy archives, without options.
fn simply(files: &[(&str, &[u8])]) -> (Vec<String>, Vec<String>) {
    let files: Vec<_> = files.iter().map(|(name, bytes)| (*name, *bytes, false)).collect();
    needed(&files, &PlanOptions::default())
}

#[test]
fn members_that_nothing_needs_are_left_out() {
    let main = offloading(&[MAIN, "-more"], &["kernel"]);
    let more = offloading(&["more"], &["second"]);
    let unused = offloading(&["unused"], &["third", "-nowhere"]);
    let library = archive(&[("more.o", &more), ("unused.o", &unused)]);
    let files: [(&str, &[u8]); 2] = [("a.o", &main), ("l.a", &library)];
    let (taken, left) = simply(&files);
    assert_eq!(taken, ["gfx90a a.o", "gfx90a l.a(more.o): the host refers to `more`"]);
    assert_eq!(left, ["l.a(unused.o): nothing refers to its symbols"]);
    // By default, all are linked, and nothing has a reason.
    assert_eq!(planned(&files, &[]).0, ["gfx90a: a.o l.a(more.o) l.a(unused.o)"]);
    let mut inputs = Inputs::new();
    for (name, bytes) in files {
        inputs.add(name, bytes).unwrap();
    }
    let plan = Plan::new(&inputs, &PlanOptions::default()).unwrap();
    assert!(plan.groups()[0].inputs().iter().all(|input| input.need().is_none()));
    // Without symbols, all count as needed.
    let (taken, left) = outcome(&inputs, &PlanOptions::default());
    assert_eq!(
        taken[1..],
        ["l.a(more.o)", "l.a(unused.o)"]
            .map(|member| format!("gfx90a {member}: its symbols are unknown"))
    );
    assert!(left.is_empty());
}

/// One input whose symbols are not read could refer to anything.
#[test]
fn inputs_without_symbols() {
    let main = offloading(&[MAIN], &["kernel"]);
    let plain = with_symbols(false, &["plain"]);
    let library = archive(&[("x.o", &offloading(&["more"], &["second"]))]);
    let mut inputs = Inputs::new();
    inputs.add("plain.o", &plain).unwrap();
    let mut inputs = inputs.with_symbols();
    inputs.add("a.o", &main).unwrap();
    let mut other = Inputs::new().with_symbols();
    other.add("l.a", &library).unwrap();
    inputs.append(other);
    let (taken, _) = outcome(&inputs, &PlanOptions::default());
    assert_eq!(taken[1..], ["gfx90a l.a(x.o): the references of plain.o are unknown"]);
}

#[test]
fn reasons_are_data() {
    let main = offloading(&[MAIN, "-more"], &["-other"]);
    let library = archive(&[
        ("x.o", &offloading(&["more"], &[])),
        ("y.o", &offloading(&["y"], &["other"])),
        ("z.o", &offloading(&["z"], &["z"])),
    ]);
    let mut inputs = Inputs::new().with_symbols();
    inputs.add("a.o", &main).unwrap();
    inputs.add("l.a", &library).unwrap();
    let options = PlanOptions::default().with_members(Members::Needed);
    let plan = Plan::new(&inputs, &options).unwrap();
    let needs: Vec<_> = plan.groups()[0].inputs().iter().map(|input| input.need()).collect();
    assert_eq!(needs, [None, Some(Need::Host(b"more")), Some(Need::Device(b"other"))]);
    assert_eq!(*plan.left_out()[0].reason(), Reason::NotNeeded);
}

/// The host takes a member for its host code; device code alone takes it into this image only.
#[test]
fn device_code_needs_members_for_its_own_image() {
    let kernel = with_symbols(false, &["kernel", "-other"]);
    let plain = with_symbols(false, &["kernel"]);
    let main = with_code(&[MAIN], &[("gfx90a", &kernel), ("gfx1030", &plain)]);
    let other = with_symbols(false, &["other", "-deep"]);
    let deep = with_symbols(false, &["deep"]);
    let library = archive(&[
        ("deep.o", &with_code(&["deep_host"], &[("gfx90a", &deep), ("gfx1030", &deep)])),
        ("other.o", &with_code(&["other_host"], &[("gfx90a", &other), ("gfx1030", &other)])),
    ]);
    let (taken, left) = simply(&[("a.o", &main), ("l.a", &library)]);
    assert_eq!(
        taken,
        [
            "gfx90a a.o",
            "gfx90a l.a(deep.o): device code refers to `deep`",
            "gfx90a l.a(other.o): device code refers to `other`",
            "gfx1030 a.o",
        ]
    );
    assert_eq!(left.len(), 2);
    // A symbol that the image defines is needed from no member; a common one may be.
    for (own, count) in [("other", 1), ("~other", 1), ("=other", 2)] {
        let main = offloading(&[MAIN, "-b"], &["-other"]);
        let own = offloading(&["b"], &[own]);
        let library = archive(&[("b.o", &own), ("other.o", &offloading(&["o"], &["other"]))]);
        assert_eq!(simply(&[("a.o", &main), ("l.a", &library)]).0.len(), 1 + count, "{count}");
    }
}

#[test]
fn chains_and_cycles_end() {
    let main = offloading(&[MAIN, "-a"], &[]);
    let link = |name: &str, next: &str| offloading(&[name, &format!("-{next}")], &[name]);
    // Without device code, a member is still a link of the chain.
    let plain = with_symbols(false, &["b", "-c"]);
    let members = [("a.o", link("a", "b")), ("b.o", plain), ("c.o", link("c", "a"))];
    let members: Vec<_> = members.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let separate: Vec<_> = members.iter().map(|member| archive(&[*member])).collect();
    let expected = ["gfx90a m.o", "a.o): the host refers to `a`", "c.o): the host refers to `c`"];
    let mut reversed = members.clone();
    reversed.reverse();
    for one in [&members, &reversed] {
        let library = archive(one);
        let (mut taken, left) = simply(&[("l.a", &library), ("m.o", &main)]);
        taken.sort_by_key(|line| line.rsplit('(').next().unwrap().to_owned());
        assert!(
            taken
                .iter()
                .zip([expected[1], expected[2], expected[0]])
                .all(|(line, end)| line.ends_with(end)),
            "{taken:?}"
        );
        assert!(left.is_empty());
    }
    // Each in a library of its own, in the wrong order.
    let mut files: Vec<_> = separate.iter().rev().map(|bytes| ("l.a", &bytes[..])).collect();
    files.push(("m.o", &main));
    assert_eq!(simply(&files).0.len(), 3);
    // A cycle that nothing enters.
    let alone = offloading(&[MAIN], &[]);
    let library = archive(&members);
    assert_eq!(simply(&[("m.o", &alone), ("l.a", &library)]).0, ["gfx90a m.o"]);
}

#[test]
fn weak_and_common_symbols() {
    // The reference, the definition in the library, and whether that is taken.
    for (reference, definition, is_taken) in [
        ("-s", "s", true),
        ("-s", "~s", true),
        ("-s", "=s", true),
        ("=s", "s", true),
        ("?s", "s", false),
        ("s", "s", false),
        ("~s", "s", false),
        ("-s", "?s", false),
        ("-s@V1", "s@@V1", true),
        ("-s", "s@@V1", true),
    ] {
        let main = offloading(&[MAIN, reference], &[]);
        let library = archive(&[("x.o", &offloading(&[definition], &[]))]);
        let (taken, left) = simply(&[("m.o", &main), ("l.a", &library)]);
        assert_eq!(
            (taken.len(), left.len()),
            if is_taken { (2, 0) } else { (1, 1) },
            "{reference} {definition}"
        );
    }
}

/// Linkers take the first definition that they come to; here all are taken.
#[test]
fn every_definition_counts() {
    let main = offloading(&[MAIN, "-more"], &[]);
    let (x, y) = (offloading(&["more"], &["x"]), offloading(&["more"], &["y"]));
    let (one, two) = (archive(&[("x.o", &x)]), archive(&[("y.o", &y)]));
    assert_eq!(simply(&[("m.o", &main), ("1.a", &one), ("2.a", &two)]).0.len(), 3);
    // One library that is named twice is one.
    let (taken, left) = simply(&[("m.o", &main), ("1.a", &one), ("1.a", &one)]);
    assert_eq!(taken.len(), 2);
    assert_eq!(left, ["1.a(x.o): the same member was taken before"]);
    let main = offloading(&[MAIN], &["-x"]);
    let (taken, left) = simply(&[("m.o", &main), ("1.a", &one), ("1.a", &one)]);
    assert_eq!(taken[1], "gfx90a 1.a(x.o): device code refers to `x`");
    assert_eq!(left, ["1.a(x.o): the same member was taken before"]);
}

#[test]
fn roots_of_the_host_link() {
    let main = offloading(&["start"], &["kernel"]);
    let library = archive(&[("x.o", &offloading(&["more"], &[]))]);
    let files = [("m.o", &main[..], false), ("l.a", &library[..], false)];
    let options = PlanOptions::default;
    assert_eq!(needed(&files, &options()).0.len(), 1);
    assert_eq!(needed(&files, &options().with_roots(["more"])).0.len(), 2);
    assert_eq!(needed(&files, &options().with_roots(["none"])).0.len(), 1);
    // An object without device code, a library in which the program is `main`, and a shared library.
    let plain = with_symbols(false, &["-more"]);
    let shared = with_symbols(true, &["-more", "defined"]);
    let weak = with_symbols(true, &["?more", "more"]);
    for (other, count) in [(&plain, 2), (&shared, 2), (&weak, 1)] {
        let files = [files[0], files[1], ("other", &other[..], false)];
        assert_eq!(needed(&files, &options()).0.len(), count);
    }
    let in_library = archive(&[("x.o", &offloading(&[MAIN], &[]))]);
    assert_eq!(
        simply(&[("m.o", &main), ("l.a", &in_library)]).0[1],
        "gfx90a l.a(x.o): the host refers to `main`"
    );
}

/// Registration code is in the host link as well.
#[test]
fn registration_code_refers_to_a_runtime() {
    let main = offloading(&[MAIN], &[]);
    let library = archive(&[("x.o", &offloading(&["__hipRegisterFatBinary"], &[]))]);
    let (taken, _) = simply(&[("m.o", &main), ("l.a", &library)]);
    assert_eq!(taken[1], "gfx90a l.a(x.o): the host refers to `__hipRegisterFatBinary`");
}

#[test]
fn members_of_a_whole_archive_are_roots() {
    let whole = archive(&[("x.o", &offloading(&["x", "-more"], &[]))]);
    let library =
        archive(&[("y.o", &offloading(&["more"], &[])), ("z.o", &offloading(&["z"], &[]))]);
    let files = [("w.a", &whole[..], true), ("l.a", &library[..], false)];
    let (taken, left) = needed(&files, &PlanOptions::default());
    assert_eq!(taken, ["gfx90a w.a(x.o)", "gfx90a l.a(y.o): the host refers to `more`"]);
    assert_eq!(left, ["l.a(z.o): nothing refers to its symbols"]);
}

#[test]
fn members_demand_images_if_they_are_needed() {
    let main = offloading(&[MAIN, "-more"], &[]);
    let code = with_symbols(false, &[]);
    let library = archive(&[
        ("x.o", &with_code(&["more"], &[("gfx1030", &code), ("gfx942", &code)])),
        ("y.o", &with_code(&["y"], &[("gfx1030", &code), ("gfx942", &code)])),
    ]);
    let files = [("m.o", &main[..], false), ("l.a", &library[..], false)];
    let options = PlanOptions::default().with_should_extract(["gfx1030"]);
    let (taken, left) = needed(&files, &options);
    assert_eq!(taken, ["gfx90a m.o", "gfx1030 l.a(x.o): the host refers to `more`"]);
    assert_eq!(
        left,
        [
            "l.a(x.o): no object has code for this target",
            "l.a(y.o): nothing refers to its symbols",
            "l.a(y.o): no object has code for this target",
        ]
    );
    // Only what nothing needs could demand one.
    let alone = archive(&[("y.o", &with_code(&["y"], &[("gfx1030", &code)]))]);
    let (taken, left) = needed(&[("l.a", &alone, false)], &options);
    assert_eq!(
        (taken.len(), &left[..]),
        (0, &["l.a(y.o): nothing refers to its symbols".to_owned()][..])
    );
}

/// An error on the side of taking: what cannot be told is needed, and needs all.
#[test]
fn unknown_symbols() {
    let main = offloading(&[MAIN], &[]);
    let member = offloading(&["unused"], &["unused"]);
    let library = archive(&[("x.o", &member)]);
    // The symbol table has no strings: the second section is linked to none.
    let mut cut = with_symbols(false, &["x", "y"]);
    let at = cut.len() - 2 * 64 + 40;
    cut[at] = 9;
    let cut = &cut[..];
    let count = |files: &[(&str, &[u8])]| simply(files).0.len();
    assert_eq!(count(&[("m.o", &main), ("l.a", &library)]), 1);
    // Objects: a linker script, a damaged object.
    for (name, other) in
        [("l.so", &b"INPUT(libx.so)"[..]), ("cut.o", cut), ("m.wasm", b"\0asm\x01\0\0\0")]
    {
        let (taken, left) = simply(&[("m.o", &main), ("l.a", &library), (name, other)]);
        assert_eq!(taken[1..], [format!("gfx90a l.a(x.o): the references of {name} are unknown")]);
        assert!(left.is_empty());
    }
    // Files that refer to nothing.
    for other in [&b""[..], b"MZ\x90\0"] {
        assert_eq!(count(&[("m.o", &main), ("l.a", &library), ("other", other)]), 1);
    }
    // Members: one that is damaged, and one that is only device code, which no linker takes.
    let damaged = archive(&[("x.o", &member), ("cut.o", cut)]);
    let (taken, _) = simply(&[("m.o", &main), ("l.a", &damaged)]);
    assert_eq!(taken[1], "gfx90a l.a(x.o): the references of l.a(cut.o) are unknown");
    let package = hip(&["gfx1030"]);
    let bare = archive(&[("x.o", &member), ("bare.out", &package), ("read.me", b"text")]);
    assert_eq!(simply(&[("m.o", &main), ("l.a", &bare)]).0, ["gfx90a m.o"]);
    let other = with_code(&["o"], &[("gfx1030", &with_symbols(false, &[]))]);
    let (taken, _) = simply(&[("m.o", &main), ("o.o", &other), ("l.a", &bare)]);
    let expected = "gfx1030 l.a(bare.out): its symbols are unknown";
    assert_eq!(taken, ["gfx90a m.o", "gfx1030 o.o", expected]);
    // Device code of an object that is not there.
    let (taken, _) = simply(&[("m.o", &main), ("p.out", &package), ("l.a", &library)]);
    assert_eq!(taken[1], "gfx90a l.a(x.o): the references of p.out are unknown");
    // Device code of an unknown format: text for an assembler, for example.
    let text = with_code(&[MAIN], &[("gfx90a", b"text")]);
    let (taken, _) = simply(&[("m.o", &text), ("l.a", &library)]);
    assert_eq!(taken[1], "gfx90a l.a(x.o): the references of m.o are unknown");
    let of_text = archive(&[("x.o", &member), ("t.o", &with_code(&["t"], &[("gfx90a", b"text")]))]);
    let (taken, _) = simply(&[("m.o", &main), ("l.a", &of_text)]);
    assert_eq!(
        taken[1..],
        [
            "gfx90a l.a(x.o): the references of l.a(t.o) are unknown",
            "gfx90a l.a(t.o): its symbols are unknown"
        ]
    );
}

#[test]
fn nested_and_thin_archives() {
    let main = offloading(&[MAIN, "-more"], &[]);
    let (more, unused) = (offloading(&["more"], &[]), offloading(&["unused"], &[]));
    let inner = archive(&[("more.o", &more), ("unused.o", &unused)]);
    let nested = archive(&[("inner.a", &inner)]);
    let (taken, left) = simply(&[("m.o", &main), ("l.a", &nested)]);
    assert_eq!((taken.len(), left.len()), (2, 1), "{taken:?}");
    let header = |name: &str, len| format!("{name:<16}{:<32}{len:<10}`\n", "");
    let thin = [
        "!<thin>\n".to_owned(),
        header("more.o/", more.len()),
        header("unused.o/", unused.len()),
        header("inner.a/", inner.len()),
    ];
    let mut inputs = Inputs::new().with_symbols();
    inputs.add("m.o", &main).unwrap();
    inputs
        .read("t.a", Cursor::new(thin.concat()), |name| {
            let bytes = match name {
                b"more.o" => &more,
                b"unused.o" => &unused,
                _ => &inner,
            };
            Ok(Box::new(Cursor::new(bytes.clone())))
        })
        .unwrap();
    let (taken, left) = outcome(&inputs, &PlanOptions::default());
    assert_eq!(taken[1..], ["gfx90a t.a(more.o): the host refers to `more`"; 2]);
    assert_eq!(left, ["t.a(unused.o): nothing refers to its symbols"; 2]);
}

/// Bitcode has the symbols that its objects will have, and refers to functions of the runtime library.
#[test]
fn bitcode_of_the_host() {
    let bitcode = samples::example("hip-embedded.bc");
    let library = archive(&[
        ("launch.o", &with_code(&["hipLaunchKernel"], &[("gfx90a", &with_symbols(false, &[]))])),
        ("memory.o", &with_code(&["memcpy"], &[("gfx90a", &with_symbols(false, &[]))])),
        (
            "unused.o",
            &with_code(&["__hip_cuid_1", "unused"], &[("gfx90a", &with_symbols(false, &[]))]),
        ),
    ]);
    let (taken, left) = simply(&[("a.bc", &bitcode), ("l.a", &library)]);
    assert_eq!(
        taken[1..],
        [
            "gfx90a l.a(launch.o): the host refers to `hipLaunchKernel`",
            "gfx90a l.a(memory.o): the host refers to `memcpy`"
        ]
    );
    assert_eq!(left, ["l.a(unused.o): nothing refers to its symbols"]);
    let main = with_code(&[MAIN, "-scale"], &[("gfx90a", &with_symbols(false, &[]))]);
    let library = archive(&[("a.bc", &bitcode)]);
    let (taken, _) = simply(&[("m.o", &main), ("l.a", &library)]);
    assert_eq!(taken[1], "gfx90a l.a(a.bc): the host refers to `scale`");
    let other = with_code(&[MAIN], &[("gfx90a", &with_symbols(false, &[]))]);
    assert_eq!(simply(&[("m.o", &other), ("l.a", &library)]).0.len(), 1);
}

/// Every order of objects and libraries gives the same images.
#[test]
fn the_order_of_inputs_does_not_matter() {
    let files: [(&str, Vec<u8>); 4] = [
        ("m.o", offloading(&[MAIN, "-a"], &["-d"])),
        (
            "a.a",
            archive(&[
                ("a.o", &offloading(&["a", "-b"], &[])),
                ("u.o", &offloading(&["u"], &["u"])),
            ]),
        ),
        (
            "b.a",
            archive(&[
                ("b.o", &offloading(&["b"], &[])),
                ("d.o", &offloading(&["x"], &["d", "-e"])),
            ]),
        ),
        ("e.a", archive(&[("e.o", &offloading(&["e"], &["e"]))])),
    ];
    let mut all = Vec::new();
    for first in 0..4 {
        for second in 0..4 {
            for third in 0..4 {
                let order = [first, second, third, 6_usize.wrapping_sub(first + second + third)];
                if (0..4).all(|at| order.contains(&at)) {
                    let line: Vec<_> =
                        order.iter().map(|&at| (files[at].0, &files[at].1[..])).collect();
                    let (mut taken, mut left) = simply(&line);
                    taken.sort();
                    left.sort();
                    all.push((taken, left));
                }
            }
        }
    }
    assert_eq!(all.len(), 24);
    assert!(all.windows(2).all(|two| two[0] == two[1]));
    assert_eq!((all[0].0.len(), all[0].1.len()), (5, 1));
}

/// Objects with their device code in another form refer to symbols of the library.
#[test]
fn objects_of_other_systems() {
    let main = offloading(&[MAIN], &[]);
    for (name, symbol) in [("hip.obj", "__hipRegisterFunction"), ("hip.o", "__hipRegisterFunction")]
    {
        let object = samples::example(name);
        let members = [symbol, "unused"].map(|symbol| offloading(&[symbol], &[]));
        let library = archive(&[("x.o", &members[0]), ("y.o", &members[1])]);
        let (taken, left) = simply(&[("m.o", &main), (name, &object), ("l.a", &library)]);
        assert_eq!(
            taken[1..],
            [format!("gfx90a l.a(x.o): the host refers to `{symbol}`")],
            "{name}"
        );
        assert_eq!(left.len(), 1, "{name}");
    }
}
