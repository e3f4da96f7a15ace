//! Edits of archives: the same bytes as if the archive had been made of the edited members.

use std::io::Cursor;

use crate::editing::{self, code, images, remove};
use fat_edit::survey;
use object::read::archive::ArchiveFile;
use samples::bundle::{GFX906, GFX1100, HOST, bundle};
use samples::damage::judge;
use samples::example;

/// The forms of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Gnu,
    /// With offsets of 64 bits.
    Gnu64,
    /// As LLVM writes it: all names before the data, which are aligned.
    Bsd,
    BsdSorted,
    Bsd64,
    /// In the other byte order.
    BsdBig,
    /// As FreeBSD's `ar` writes it: only long names before the data, which are not aligned.
    FreeBsd,
    /// As LLVM writes it for Apple's linker: data filled up to a multiple of 8.
    Darwin,
    Microsoft,
    /// Without an index.
    None,
}

const STYLES: [Style; 10] = [
    Style::Gnu,
    Style::Gnu64,
    Style::Bsd,
    Style::BsdSorted,
    Style::Bsd64,
    Style::BsdBig,
    Style::FreeBsd,
    Style::Darwin,
    Style::Microsoft,
    Style::None,
];

impl Style {
    fn is_bsd(self) -> bool {
        use Style::*;
        [Bsd, BsdSorted, Bsd64, BsdBig, FreeBsd, Darwin].contains(&self)
    }
}

/// Name, date, owner, group, mode, and data.
type Member = (&'static str, u32, u32, u32, u32, Vec<u8>);

fn header(name: &str, member: &Member, size: usize) -> Vec<u8> {
    let (_, date, owner, group, mode, _) = member;
    format!("{name:<16}{date:<12}{owner:<6}{group:<6}{mode:<8o}{size:<10}`\n").into_bytes()
}

/// The archive, with a symbol for each member but the first, which has two.
fn archive(style: Style, members: &[Member]) -> Vec<u8> {
    let names: Vec<String> = (0..=members.len()).map(|number| format!("symbol_{number}")).collect();
    let names = names.join("\0") + "\0";
    let of = |symbol: usize| symbol.saturating_sub(1);
    let count = members.len() + 1;

    let mut long_names = String::new();
    let end_of_name = if style == Style::Microsoft { "\0" } else { "/\n" };
    let mut fields = Vec::new();
    for (name, ..) in members {
        fields.push(if style.is_bsd() || name.len() < 16 {
            format!("{name}/")
        } else {
            let at = long_names.len();
            long_names = long_names + name + end_of_name;
            format!("/{at}")
        });
    }
    let special = |name: &str, data: Vec<u8>| ("", 0, 0, 0, 0, data, name.to_owned());
    // Once for the offsets, once with them.
    let mut offsets = vec![0; members.len()];
    for _ in 0..2 {
        let mut file = b"!<arch>\n".to_vec();
        let four = |n: usize| (n as u32).to_be_bytes().to_vec();
        let eight = |n: usize| (n as u64).to_be_bytes().to_vec();
        let reversed = |mut bytes: Vec<u8>| {
            bytes.reverse();
            bytes
        };
        let system_v = |number: &dyn Fn(usize) -> Vec<u8>| {
            let offsets = (0..count).flat_map(|symbol| number(offsets[of(symbol)]));
            [number(count), offsets.collect(), names.clone().into_bytes()].concat()
        };
        let bsd = |number: &dyn Fn(usize) -> Vec<u8>| {
            let width = number(0).len();
            let mut strings = names.clone().into_bytes();
            strings.resize(strings.len().next_multiple_of(8), 0);
            let pairs = (0..count).flat_map(|symbol| {
                let at = names.match_indices('\0').nth(symbol).unwrap().0 - 8;
                [number(at), number(offsets[of(symbol)])].concat()
            });
            let size = number(count * 2 * width);
            [size, pairs.collect(), number(strings.len()), strings].concat()
        };
        let mut put =
            |(_, date, owner, group, mode, data, field): (_, _, _, _, _, Vec<u8>, String)| {
                let member = ("", date, owner, group, mode, Vec::new());
                file.extend(header(&field, &member, data.len()));
                file.extend(&data);
                if file.len() % 2 == 1 {
                    file.push(b'\n');
                }
            };
        let named = |name: &str, index: Vec<u8>| {
            let mut front = name.as_bytes().to_vec();
            front.resize(12, 0);
            special("#1/12", [front, index].concat())
        };
        match style {
            Style::Gnu => put(special("/", system_v(&four))),
            Style::Gnu64 => put(special("/SYM64/", system_v(&eight))),
            Style::Bsd | Style::Darwin => put(named("__.SYMDEF", bsd(&|n| reversed(four(n))))),
            Style::BsdSorted => put(special("__.SYMDEF SORTED", bsd(&|n| reversed(four(n))))),
            Style::Bsd64 => put(named("__.SYMDEF_64", bsd(&|n| reversed(eight(n))))),
            Style::BsdBig | Style::FreeBsd => put(special("__.SYMDEF", bsd(&four))),
            Style::Microsoft => {
                put(special("/", system_v(&four)));
                let little = |n: usize| reversed(four(n));
                let numbers = (0..count).flat_map(|symbol| (of(symbol) as u16 + 1).to_le_bytes());
                let second = [
                    little(members.len()),
                    offsets.iter().flat_map(|&at| little(at)).collect(),
                    little(count),
                    numbers.collect(),
                    names.clone().into_bytes(),
                ];
                put(special("/", second.concat()));
            }
            Style::None => {}
        }
        if !long_names.is_empty() {
            put(special("//", long_names.clone().into_bytes()));
        }
        let mut starts = Vec::new();
        for (member, field) in members.iter().zip(&fields) {
            starts.push(file.len());
            let (name, .., contents) = member;
            let mut front = Vec::new();
            let mut contents = contents.clone();
            if style.is_bsd() && !(style == Style::FreeBsd && name.len() < 16) {
                front = name.as_bytes().to_vec();
                while style != Style::FreeBsd && !(file.len() + 60 + front.len()).is_multiple_of(8)
                {
                    front.push(0);
                }
            }
            if style == Style::Darwin {
                contents.resize(contents.len().next_multiple_of(8), b'\n');
            }
            let field = match front.len() {
                0 if style == Style::FreeBsd => (*name).to_owned(),
                0 => field.clone(),
                len => format!("#1/{len}"),
            };
            file.extend(header(&field, member, front.len() + contents.len()));
            file.extend(front);
            file.extend(contents);
            if file.len() % 2 == 1 {
                file.push(b'\n');
            }
        }
        if offsets == starts {
            return file;
        }
        offsets = starts;
    }
    panic!("the offsets do not settle")
}

/// Members of all kinds, with bundles of these sizes in some of them.
fn members(sizes: [u32; 3], with_gfx906: bool) -> Vec<Member> {
    let bundle = |seed: u32, size: u32| {
        let (first, second) = (code(seed, size), code(seed + 1, 21));
        let mut entries: Vec<(&str, &[u8])> =
            vec![(HOST, b""), (GFX906, &first), (GFX1100, &second)];
        entries.retain(|(id, _)| with_gfx906 || *id != GFX906);
        bundle(&entries, 1)
    };
    vec![
        ("host.txt", 1_700_000_000, 1000, 100, 0o100_644, b"the host".to_vec()),
        ("kernels.hipfb", 7, 0, 0, 0o644, bundle(1, sizes[0])),
        ("a name that is much too long.hipfb", 0, 0, 0, 0o755, bundle(4, sizes[1])),
        ("host.txt", 8, 999_999, 0, 0o600, b"another host".to_vec()),
        ("kernels.hipfb", 9, 1, 2, 0o644, bundle(7, sizes[2])),
        ("last, and as long as the other one.txt", 9, 1, 2, 0o644, b"odd".to_vec()),
    ]
}

const SIZES: [[u32; 3]; 5] =
    [[100, 200, 300], [101, 200, 301], [99, 1, 3], [8000, 33_001, 9], [1, 2, 4]];

#[test]
fn an_edited_archive_is_the_archive_of_the_edited_members() {
    for style in STYLES {
        for sizes in SIZES {
            let file = archive(style, &members(sizes, true));
            let out = remove(&file, &[GFX906]).unwrap();
            assert!(out == archive(style, &members(sizes, false)), "{style:?} {sizes:?}");
            assert!(remove(&out, &[GFX906]).unwrap() == out, "{style:?} {sizes:?}");
        }
    }
}

#[test]
fn other_readers_agree_about_the_index() {
    for style in STYLES {
        let file = archive(style, &members(SIZES[1], true));
        let out = remove(&file, &[GFX906]).unwrap();
        let symbols = |file: &[u8]| {
            let archive = ArchiveFile::parse(file).unwrap();
            let Some(symbols) = archive.symbols().unwrap() else { return Vec::new() };
            symbols
                .map(|symbol| {
                    let symbol = symbol.unwrap();
                    let member = archive.member(symbol.offset()).unwrap();
                    let name = String::from_utf8_lossy(symbol.name()).into_owned();
                    (name, member.name().to_vec(), member.date(), member.mode(), member.uid())
                })
                .collect()
        };
        // It reads no index of the other byte order.
        if ![Style::BsdBig, Style::FreeBsd].contains(&style) {
            assert_eq!(symbols(&out), symbols(&file), "{style:?}");
            assert_eq!(symbols(&out).len(), if style == Style::None { 0 } else { 7 }, "{style:?}");
        }
        let is_other = |(_, bytes): &&(String, Vec<u8>)| !bytes.is_empty();
        assert_eq!(images(&out).iter().filter(is_other).count(), 3, "{style:?}");
    }
}

#[test]
fn decompressing_restores_archives() {
    for style in STYLES {
        let compressible = |members: &[Member]| {
            let mut members = members.to_vec();
            for (name, .., contents) in &mut members {
                if name.ends_with("hipfb") {
                    let image = [code(3, 1001), vec![1; 5000]].concat();
                    *contents = bundle(&[(HOST, b""), (GFX906, &image)], 1);
                }
            }
            members
        };
        let file = archive(style, &compressible(&members(SIZES[0], true)));
        let compress = |_: &_, edit: &mut fat_edit::Edit| {
            edit.compress(fat_edit::CompressOptions::default());
        };
        let decompress = |_: &_, edit: &mut fat_edit::Edit| edit.decompress();
        let options = fat_edit::EditOptions::default;
        let compressed = editing::plan_with(&file, options(), &[], compress).unwrap().1;
        assert!(compressed.len() < file.len() / 3, "{style:?}");
        let back = editing::plan_with(&compressed, options(), &[], decompress).unwrap().1;
        assert!(back == file, "{style:?}");
    }
}

#[test]
fn real_archives_are_edited() {
    for name in ["libhip.a", "libbundles.a", "hip.lib"] {
        let file = example(name);
        let all = images(&file);
        let devices = all.iter().filter(|(id, _)| !id.starts_with("host-"));
        for (id, _) in devices.clone() {
            let keep = |contents: &fat_edit::EditableFile, edit: &mut fat_edit::Edit| {
                for image in contents.images() {
                    let is_kept = image.id().is_none_or(|i| i == id || i.starts_with("host-"));
                    if !is_kept {
                        edit.remove(image.index());
                    }
                }
            };
            let options = fat_edit::EditOptions::default().with_allow_empty(true);
            let (plan, out) = editing::plan_with(&file, options, &[], keep).unwrap();
            let is_left = |(i, _): &&(String, Vec<u8>)| i == id || i.starts_with("host-");
            if plan.containers().iter().all(|change| change.size_after > 0) {
                assert!(images(&out).iter().eq(all.iter().filter(is_left)), "{name} {id}");
            }
            let (old, new) =
                (ArchiveFile::parse(&*file).unwrap(), ArchiveFile::parse(&*out).unwrap());
            let names = |archive: ArchiveFile<'_>| {
                archive.members().map(|m| m.unwrap().name().to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(names(old), names(new));
        }
    }
}

#[test]
fn archives_in_archives_are_edited() {
    let inner = |with| archive(Style::Gnu, &members(SIZES[2], with));
    let around = |with| {
        let mut members = members(SIZES[1], with);
        members[3] = ("inner.a", 0, 0, 0, 0o644, inner(with));
        archive(Style::Bsd, &members)
    };
    assert!(remove(&around(true), &[GFX906]).unwrap() == around(false));
}

#[test]
fn uneditable_archives_are_refused() {
    let message = |file: &[u8]| remove(file, &[GFX906]).unwrap_err().to_string();
    // An index that does not know its members.
    let members = members(SIZES[0], true);
    for (style, at) in
        [(Style::Gnu, 72), (Style::Bsd, 88), (Style::Microsoft, 72), (Style::Bsd64, 96)]
    {
        let mut file = archive(style, &members);
        file[at] ^= 2;
        file[at + 1] ^= 2;
        file[at + 2] ^= 2;
        let text = message(&file);
        assert!(
            text.ends_with("the symbol index names a place where no member is"),
            "{style:?} {text}"
        );
    }
    let mut file = archive(Style::Gnu, &members);
    file[68] = 1;
    assert!(message(&file).ends_with("the symbol index is cut short"), "{}", message(&file));
    let thin = example("libhip-thin.a");
    let error = survey(&mut Cursor::new(&thin), &fat_object::Options::default()).unwrap_err();
    assert!(error.to_string().contains("thin"), "{error}");
}

#[test]
fn damaged_archives_cause_no_panic() {
    for style in [Style::Gnu, Style::Bsd, Style::Microsoft, Style::Darwin] {
        judge(&archive(style, &members(SIZES[4], true)), oracles::edits::check);
    }
}
