//! Text bundles.

use samples::bundle::{GFX906, HOST};

use super::{Family, Form, Held, Truth, held};

const MARKER: &str = "# __CLANG_OFFLOAD_BUNDLE____";

pub fn start(id: &str) -> String {
    format!("\n{MARKER}START__ {id}\n")
}

pub fn end(id: &str) -> String {
    format!("\n{MARKER}END__ {id}\n")
}

/// A text bundle, and what it holds.
pub fn sample() -> (Vec<u8>, Vec<Held>) {
    let text =
        [start(HOST), "host\n".into(), end(HOST), start(GFX906), "device\n".into(), end(GFX906)];
    (text.concat().into_bytes(), vec![held(HOST, b"host\n"), held(GFX906, b"device\n")])
}

pub fn texts() -> Family {
    let mut family = Family::new("text bundles", Form::Text);
    let (base, images) = sample();
    let text = String::from_utf8(base.clone()).unwrap();
    let mut refused =
        |name: &str, parts: &[&str]| family.refused(name, parts.concat().into_bytes());
    let (s, e, s2, e2) = (start(HOST), end(HOST), start(GFX906), end(GFX906));
    refused("no END", &[&s, "host\n"]);
    refused("no END after nothing", &[&s]);
    refused("no END of the second", &[&s, "host\n", &e, &s2, "device\n"]);
    refused("no END of the second, which is empty", &[&s, "host\n", &e, &s2]);
    refused("START in START", &[&s, "host\n", &s2, "device\n", &e2, &e]);
    refused("END without START after an entry", &[&s, "host\n", &e, &e2]);
    refused("END twice", &[&s, "host\n", &e, &e]);
    refused("END of another ID", &[&s, "host\n", &e2]);
    refused("END with a part of the ID", &[&s, "host\n", &e[..e.len() - 4], "\n"]);
    refused("START at the end of the file", &[&s, "host\n", &e, s2.trim_end()]);
    refused("START without an ID", &[&s, "host\n", &e, "\n", MARKER, "START__ \nx\n", &e2]);
    refused("START with another leader", &[&text.replacen('#', ";", 1)]);
    refused("END on the line of START", &[s.trim_end(), " ", e.trim_start(), "x\n"]);

    // Text outside of entries does not belong to the bundle; text inside that looks like a START does.
    let half = [&s, "host\n", &e, "\n", MARKER, "START__"];
    family.holds("half a START after the end", half.concat().into_bytes(), &images[..1]);
    let start_inside = [&s, "host\n\n", MARKER, "START__ x\n", &e].concat();
    let inside = format!("host\n\n{MARKER}START__ x\n");
    family.holds("START in an entry", start_inside.into_bytes(), &[held(HOST, inside.as_bytes())]);
    let between = [&s, "host\n", &e, "text\n", &s2, "device\n", &e2].concat();
    family.holds("text between entries", between.into_bytes(), &images);
    family.holds("text after the end", [&text, "text\n"].concat().into_bytes(), &images);
    let other = [&s, "host\n", &e, &s2.replace('#', "//"), "device\n", &e2.replace('#', "//")];
    family.holds("the second with another leader", other.concat().into_bytes(), &images[..1]);
    family.holds("as it should be", base, &images);
    family.holds("START on the first line", text.as_bytes()[1..].to_vec(), &images);
    let empty = [start(GFX906), e2[1..].to_owned()].concat();
    family.holds("END directly after START", empty.into_bytes(), &[held(GFX906, b"")]);
    let crlf = text.replace('\n', "\r\n");
    let lines = [held(HOST, b"host\r\n"), held(GFX906, b"device\r\n")];
    family.holds("CR LF", crlf.into_bytes(), &lines);
    let binary = [start(GFX906).as_bytes(), b"\0\xff\x80\0\n", end(GFX906).as_bytes()].concat();
    family.holds("bytes that are not text", binary, &[held(GFX906, b"\0\xff\x80\0\n")]);
    let blank = [&text, "\n\n   \n"].concat();
    family.holds("blank lines after the end", blank.into_bytes(), &images);
    let marker = [
        &s,
        "x = \"__CLANG_OFFLOAD_BUNDLE____START__ \" # __CLANG_OFFLOAD_BUNDLE____END__ y\n",
        &e,
    ]
    .concat();
    let quoted = s.len()..marker.len() - e.len();
    let quoted = held(HOST, &marker.as_bytes()[quoted]);
    family.holds("words of markers inside a line", marker.into_bytes(), &[quoted]);
    let twice = [&start(GFX906), "a\n", &end(GFX906), &start(GFX906), "b\n", &end(GFX906)].concat();
    family.holds("one ID twice", twice.into_bytes(), &[held(GFX906, b"a\n"), held(GFX906, b"b\n")]);
    // The second one is content, and looks like a bundle itself.
    family.add("START twice", [&s, &s, "host\n", &e].concat().into_bytes(), Truth::Any);
    family.add("a CR alone", text.replace('\n', "\r").into_bytes(), Truth::Any);
    let many: Vec<_> = (0..2000).map(|n| format!("hip-amdgcn-amd-amdhsa--gfx{n}")).collect();
    let long: String = many.iter().map(|id| [&start(id), "x\n", &end(id)].concat()).collect();
    let images: Vec<_> = many.iter().map(|id| held(id, b"x\n")).collect();
    family.holds("two thousand entries", long.into_bytes(), &images);
    let starts: String = (0..2000).map(|n| start(&n.to_string())).collect();
    family.refused("two thousand times START", starts.into_bytes());
    family
}
