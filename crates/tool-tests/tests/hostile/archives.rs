//! `ar` archives.

use samples::ar::{MAGIC, THIN, header, member};
use samples::bundle::{GFX90A, GFX906, HOST, bundle};
use samples::{find, longs, with};

use super::bundles::sample as plain;
use super::elf::{object_with_package, section_object};
use super::{Family, Form, Held, Truth, held, joined};

fn archive(members: &[&[u8]]) -> Vec<u8> {
    [&MAGIC[..], &members.concat()].concat()
}

/// An archive of two objects with packages, and what it holds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    let (one, first) = object_with_package("gfx906");
    let (two, second) = object_with_package("gfx90a");
    let bytes = archive(&[&member("one.o/", &one), &member("two.o/", &two)]);
    (bytes, [first, second].concat())
}

/// Adds archives with hostile headers, the same for all kinds of archives.
fn damage(family: &mut Family, base: &[u8], images: &[Held]) {
    let size_at = 8 + 48;
    let size = std::str::from_utf8(&base[size_at..size_at + 10]).unwrap().trim().to_owned();
    let real: usize = size.parse().unwrap();
    for text in [
        "-1".to_owned(),
        "-60".to_owned(),
        "-68".to_owned(),
        String::new(),
        "x".to_owned(),
        "0x10".to_owned(),
        "1e3".to_owned(),
        "9999999999".to_owned(),
        "4294967296".to_owned(),
        format!("{real}x"),
        format!("{} 1", real / 100),
        (base.len() - 68 + 1).to_string(),
        (base.len()).to_string(),
    ] {
        let bytes = with(base, size_at, format!("{text:<10}").as_bytes());
        family.refused(format!("size {text:?}"), bytes);
    }
    family.refused("size is NUL bytes", with(base, size_at, &[0; 10]));
    family
        .refused("size one too small", with(base, size_at, format!("{:<10}", real - 2).as_bytes()));
    family
        .refused("size two too large", with(base, size_at, format!("{:<10}", real + 2).as_bytes()));
    family.holds(
        "size with zeros in front",
        with(base, size_at, format!("{real:010}").as_bytes()),
        images,
    );
    for (what, end) in
        [("nothing", *b"  "), ("newline first", *b"\n`"), ("NUL", [0, 0]), ("CR", *b"`\r")]
    {
        family.refused(format!("header ended by {what}"), with(base, 8 + 58, &end));
    }
    family.holds("date without digits", with(base, 8 + 16, b"yesterday   "), images);
    family.holds("date below zero", with(base, 8 + 16, b"-99999999999"), images);
    family.holds("mode without digits", with(base, 8 + 40, b"rwxrwxrw"), images);
    for junk in [&b"x"[..], b"\n", b"\0", b"junk of some length", &[b'\n'; 59], &[b' '; 60]] {
        let name: String = junk.escape_ascii().to_string().chars().take(20).collect();
        family.part(format!("{name} after the end"), joined(&[base, junk]), images);
    }
    family.refused("a header alone after the end", joined(&[base, &header("x.o/", 100)]));
}

pub fn archives() -> Family {
    let mut family = Family::new("archives", Form::Archive);
    let (base, images) = sample();
    damage(&mut family, &base, &images);
    family.holds("magic alone", MAGIC.to_vec(), &[]);
    family.part("magic without its newline", with(&base, 7, b"\r"), &images);
    family.add("magic cut", MAGIC[..7].to_vec(), Truth::Any);
    let (object, one) = object_with_package("gfx906");

    // The table of long names.
    let table = member("//", b"a_name_that_is_long.o/\nanother_name_that_is_long.o/\n");
    let named = |name: &str| archive(&[&table, &member(name, &object)]);
    family.holds("long name", named("/0"), &one);
    family.holds("the second long name", named("/23"), &one);
    family.holds("a part of a long name", named("/5"), &one);
    for name in
        ["/52", "/53", "/9999999999", "/18446744073709551", "/-1", "/0x1", "/99999999999999"]
    {
        family.refused(format!("long name at {name}"), named(name));
    }
    family.refused("long name without a table", archive(&[&member("/0", &object)]));
    family.refused("table behind the name", archive(&[&member("/0", &object), &table]));
    let open = member("//", b"a_name_that_is_not_ended");
    family.part("long name not ended", archive(&[&open, &member("/0", &object)]), &one);
    family.part("two tables of names", archive(&[&table, &table, &member("/0", &object)]), &one);
    family.refused("table of names beyond the end", archive(&[&header("//", "5000"), b"name/\n"]));

    // BSD's names, which are part of the contents.
    let bsd = |len: &str, size: usize, rest: &[u8]| {
        let head = header(&format!("#1/{len}"), size);
        archive(&[&[&head, rest, &b"\n"[..rest.len() % 2]].concat()])
    };
    let content = [b"name.o\0\0", &object[..]].concat();
    family.holds("BSD name", bsd("8", content.len(), &content), &one);
    for len in ["0x8", "-1", "9999999999", "18446744073709", "x", " 8"] {
        family.refused(format!("BSD name of length {len:?}"), bsd(len, content.len(), &content));
    }
    let beyond = (content.len() + 1).to_string();
    family.refused("BSD name longer than the member", bsd(&beyond, content.len(), &content));
    // Or a file that is called `#1`.
    family.part("BSD name without a length", bsd("", content.len(), &content), &one);
    let whole = content.len().to_string();
    family.holds("BSD name that is the whole member", bsd(&whole, content.len(), &content), &[]);

    // Symbol indexes are not members.
    for (name, size) in
        [("/", "5000"), ("/SYM64/", "9999999999"), ("__.SYMDEF", "5000"), ("#1/12", "5000")]
    {
        let beyond = archive(&[&header(name, size), b"__.SYMDEF\0\0\0", &object]);
        family.refused(format!("index {name} beyond the end"), beyond);
    }
    let second = archive(&[&member("/", &[0; 4]), &header("/", "5000"), &object]);
    family.refused("second index beyond the end", second);
    let index = [&5_000_000_u32.to_be_bytes()[..], &[0; 8]].concat();
    for (what, index_name, table) in [
        ("index of five million symbols", "/", &index[..]),
        ("index of 2^32-1 symbols", "/", &[0xff; 12]),
        ("empty index", "/", b""),
        ("index of 2^64-1 symbols", "/SYM64/", &[0xff; 16]),
        ("BSD index of 4 GiB", "__.SYMDEF", &[0xf8, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        ("BSD index, cut", "__.SYMDEF", b"\x08\0\0"),
    ] {
        let bytes = archive(&[&member(index_name, table), &member("one.o/", &object)]);
        family.part(what, bytes, &one);
    }

    for name in
        ["../../../../../../tmp/offload-hostile/", "/", "", "a\nb/", "\u{1b}[2J/", "\0/", "a/b/c/"]
    {
        let Some(name) = name.get(..name.len().min(16)) else { continue };
        let bytes = archive(&[&member(name, &object), &member("one.o/", &object)]);
        family.part(format!("member {name:?}"), bytes, &[&one[..], &one].concat());
    }
    family.holds(
        "empty member",
        archive(&[&member("e.o/", b""), &member("one.o/", &object)]),
        &one,
    );
    let twice = archive(&[&member("one.o/", &object), &member("one.o/", &object)]);
    family.holds("one name twice", twice, &[&one[..], &one].concat());
    let nested = archive(&[&member("inner.a/", &base)]);
    family.holds("an archive in an archive", nested, &images);
    let mut deep = base.clone();
    for _ in 0..200 {
        deep = archive(&[&member("deep.a/", &deep)]);
    }
    family.add("two hundred deep", deep, Truth::Any);
    let broken =
        archive(&[&member("inner.a/", &with(&base, 8 + 48, b"x")), &member("one.o/", &object)]);
    family.refused_inside("a malformed archive in an archive", broken);
    let mut bad = object.clone();
    let magic = find(&bad, b"\x10\xff\x10\xad");
    bad[magic + 8..magic + 16].copy_from_slice(&longs(&[1 << 40]));
    family.refused_inside(
        "a malformed package in a member",
        archive(&[&member("bad.o/", &bad), &member("one.o/", &object)]),
    );
    let many: Vec<Vec<u8>> = (0..500).map(|n| member(&format!("{n}.o/"), b"text")).collect();
    let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
    family.holds("five hundred members that are text", archive(&many), &[]);
    family
}

pub fn thin() -> Family {
    let mut family = Family::new("thin archives", Form::Archive);
    let (object, images) = object_with_package("gfx906");
    let size = object.len().to_string();
    let thin = |members: &[&[u8]]| [&THIN[..], &members.concat()].concat();
    let beside = |family: &mut Family| {
        let files = vec![("one.o".to_owned(), object.clone())];
        family.files.last_mut().unwrap().beside = files;
    };
    family.holds("one member", thin(&[&header("one.o/", &size)]), &images);
    beside(&mut family);
    family.refused_inside("member that is not there", thin(&[&header("none.o/", &size)]));
    family.refused("member without a name", thin(&[&header("", &size)]));
    family.refused_inside(
        "index beyond the end",
        thin(&[&header("/", &size), &header("one.o/", &size)]),
    );
    family.refused_inside("itself", thin(&[&header("input/", "68")]));
    family.refused_inside(
        "itself twice",
        thin(&[&header("input/", "128"), &header("input/", "128")]),
    );
    let table = member("//", b"./././././././././input/\n");
    family.refused_inside("itself by a long name", thin(&[&table, &header("/0", "150")]));
    family.refused_inside("a directory", thin(&[&header("../", "100")]));
    family.refused_inside(
        "a device that never ends",
        thin(&[&member("//", b"/dev/zero/\n"), &header("/0", "100")]),
    );
    family
        .refused("the null device", thin(&[&member("//", b"/dev/null/\n"), &header("/0", "100")]));
    family
        .refused_inside("a terminal", thin(&[&member("//", b"/dev/tty/\n"), &header("/0", "100")]));
    family.refused("name with a NUL", thin(&[&header("o\0.o/", &size)]));
    for size in ["-1", "x", ""] {
        family.refused(format!("size {size:?}"), thin(&[&header("one.o/", size)]));
        beside(&mut family);
    }
    let other = thin(&[&header("next.a/", "100")]);
    family.refused_inside("another one, which names the first", other);
    let back = thin(&[&header("input/", "100")]);
    family.files.last_mut().unwrap().beside = vec![("next.a".to_owned(), back)];
    family.refused("table of names beyond the end", thin(&[&header("//", "4000"), b"x/\n"]));
    family.refused("long name beyond the table", thin(&[&table, &header("/500", "10")]));
    family
}

/// An archive of two bundles, and what it holds.
pub fn device_sample() -> (Vec<u8>, Vec<Held>) {
    let (one, images) = plain();
    let two = bundle(&[(HOST, b""), (GFX906, b"second")], 1);
    let bytes = archive(&[&member("one.bc/", &one), &member("two.bc/", &two)]);
    (bytes, [&images[..], &[held(HOST, b""), held(GFX906, b"second")]].concat())
}

pub fn device_archives() -> Family {
    let mut family = Family::new("archives of bundles", Form::DeviceArchive);
    let (base, images) = device_sample();
    damage(&mut family, &base, &images);
    let sound = bundle(&[(GFX906, b"sound")], 1);
    let beside = |bytes: &[u8]| archive(&[&member("bad.bc/", bytes), &member("good.bc/", &sound)]);
    for (name, at, value) in [
        ("count of 2^32 in a member", 24, 1_u64 << 32),
        ("entry beyond the end of a member", 32, 1 << 20),
        ("entry in the next member", 32, 120),
        ("entry of a size beyond the member", 40, 80),
        ("entry of 2^64-1 bytes in a member", 40, u64::MAX),
        ("ID of no length in a member", 48, 0),
        ("ID of 2^63 bytes in a member", 48, 1 << 63),
    ] {
        family.refused_inside(name, beside(&with(&sound, at, &longs(&[value]))));
    }
    family.refused_inside("a member cut in its table", beside(&sound[..40]));
    family.refused_inside("a member cut in its image", beside(&sound[..sound.len() - 1]));
    let (packed, inside) = super::compressed::sample();
    let good = held(GFX906, b"sound");
    family.holds("a compressed member", beside(&packed), &[&inside[..], &[good]].concat());
    let wrong = with(&packed, 24, &[!packed[24]]);
    family.refused_inside("a compressed member of another hash", beside(&wrong));
    family.refused_inside("a compressed member, cut", beside(&packed[..packed.len() - 3]));
    let sections = [(format!("__CLANG_OFFLOAD_BUNDLE__{GFX90A}"), b"section".to_vec())];
    let object = section_object(&sections);
    let headers_at = u64::from_le_bytes(object[40..48].try_into().unwrap());
    let beyond = with(&object, headers_at as usize + 64 + 24, &longs(&[1 << 30]));
    family.refused_inside("an object whose entry lies beyond its end", beside(&beyond));
    family
}
