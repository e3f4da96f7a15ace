//! Damage that the `object` crate passes over in silence is told nevertheless.

use fat_object::{Options, list_slice};
use samples::ar::header;

fn findings(bytes: &[u8]) -> Vec<String> {
    let listing = list_slice(bytes, &Options::default()).unwrap();
    listing.findings().iter().map(|finding| finding.error().to_string()).collect()
}

#[test]
fn tables_beyond_the_end_of_an_archive_are_reported() {
    for (name, start) in [("/", 0x44), ("/SYM64/", 0x44), ("__.SYMDEF", 0x44), ("#1/12", 0x44)] {
        let archive = [b"!<arch>\n", &header(name, 5000)[..], b"__.SYMDEF\0\0\0"].concat();
        let expected = format!(
            "archive is cut short: member {name} needs bytes {start:#x}..0x13cc, the archive ends at 0x50"
        );
        assert_eq!(findings(&archive), [expected]);
    }
    // The second of COFF's two indexes, and the only one of a thin archive.
    let second = [b"!<arch>\n", &header("/", 4)[..], &[0; 4], &header("/", 100)].concat();
    let expected =
        "archive is cut short: member / needs bytes 0x84..0xe8, the archive ends at 0x84";
    assert_eq!(findings(&second), [expected]);
    let thin = [b"!<thin>\n", &header("/", 4)[..]].concat();
    let expected =
        "archive is cut short: member / needs bytes 0x44..0x48, the archive ends at 0x44";
    assert_eq!(findings(&thin), [expected]);
}

#[test]
fn malformed_names_of_members_are_reported() {
    for (name, text) in
        [("/-1", "/-1"), ("/x", "/x"), ("#1/x", "#1/x"), ("#1/-1", "#1/-1"), ("#1/ 8", "#1/ 8")]
    {
        let archive = [b"!<arch>\n", &header("a.o/", 0)[..], &header(name, 4), b"text"].concat();
        let expected =
            format!("archive member at 0x44: expected a name or a reference to one, found {text}");
        assert_eq!(findings(&archive), [expected]);
    }
    // Members of thin archives lie elsewhere.
    let names = [&header("//", 6)[..], b"ab.o/\n"].concat();
    let thin = [b"!<thin>\n", &names[..], &header("/0", 4), &header("/x", 4)].concat();
    let expected = "archive member: expected a name or a reference to one, found /x";
    assert_eq!(findings(&thin).last().map(String::as_str), Some(expected));
    // A private table of a linker, and a file called `#1`.
    for name in ["/<XFGHASHMAP>/", "#1/"] {
        let archive = [b"!<arch>\n", &header("a.o/", 0)[..], &header(name, 4), b"text"].concat();
        assert!(findings(&archive).is_empty(), "{name}");
    }
}

/// A Mach-O object of one load command, an empty segment.
fn mach_o(commands: u32, commands_len: u32, command_len: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0xfeed_facf, 0x0100_0007, 3, 1, commands, commands_len, 0, 0, 0x19, command_len]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect();
    bytes.resize(32 + 72, 0);
    bytes
}

#[test]
fn malformed_load_commands_are_reported() {
    assert!(findings(&mach_o(1, 72, 72)).is_empty());
    for (file, detail) in [
        (mach_o(2, 72, 72), "load command header"),
        (mach_o(u32::MAX, 72, 72), "load command header"),
        (mach_o(1, 73, 72), "load command table size"),
        (mach_o(1, u32::MAX, 72), "load command table size"),
        (mach_o(1, 71, 72), "load command size"),
        (mach_o(1, 72, 0), "load command size"),
        (mach_o(1, 72, 7), "load command size"),
        (mach_o(1, 72, 73), "load command size"),
        (mach_o(1, 72, u32::MAX), "load command size"),
    ] {
        assert_eq!(findings(&file), [format!("malformed Mach-O file: Invalid Mach-O {detail}")]);
    }
}
