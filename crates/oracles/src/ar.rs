//! Archives of all kinds made from the fuzzer's bytes: long names, symbol indexes, members with the same name.

use arbitrary::{Result, Unstructured};

use crate::fields::Fields;
use crate::model::{self, File};
use crate::walks::Walk;
use crate::{archives, edits, hosts};

/// Members of one archive.
const MOST: usize = 5;
/// Symbols in its index.
const SYMBOLS: usize = 6;

/// The form of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// GNU's format, with this many bytes for an offset in the index.
    Gnu(usize),
    Bsd(usize),
    /// Apple's format: names and data are padded to multiples of eight.
    Apple(usize),
    Microsoft,
    Thin,
}

/// A member, and what it says.
struct Member {
    name: Vec<u8>,
    file: File,
}

/// An archive, and what is in it.
pub(crate) struct Archive {
    pub(crate) fields: Fields,
    kind: Kind,
    pub(crate) images: Vec<Vec<u8>>,
    members: Vec<(Vec<u8>, Vec<u8>)>,
    /// The positions of offsets in the index, and of the members that they refer to.
    symbols: Vec<(usize, usize)>,
    /// `true` if these are big-endian.
    big: bool,
    /// Number of tables before the counted members.
    tables: usize,
}

/// Makes an archive, and damages it if the fuzzer likes.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let Ok(mut archive) = archive(u, 2) else { return };
    let is_whole = archive.fields.damage(u).unwrap_or(1) == 0;
    let bytes = archive.fields.clone().into_bytes();
    let mut walk = Walk::new(&bytes);
    walk.run();
    if is_whole {
        check_walk(&archive, &bytes, &walk);
        check_index(&archive, &bytes);
    }
    match u.int_in_range(0..=3) {
        Ok(0) => archives::check(&bytes),
        Ok(_) if archive.kind != Kind::Thin => {
            let seed = u.arbitrary().unwrap_or_default();
            edits::check_seeded(&bytes, seed, &|after| {
                if is_whole {
                    check_index(&archive, after);
                }
            });
        }
        _ => {}
    }
}

fn check_walk(archive: &Archive, bytes: &[u8], walk: &Walk<'_>) {
    let names = archive.members.iter().map(|(name, _)| name);
    if archive.kind == Kind::Thin {
        assert!(walk.opened.iter().eq(names.filter(|name| !name.is_empty())));
        return;
    }
    assert_eq!(walk.errors, [""; 0]);
    assert!(walk.images == archive.images, "{:?} for {:?}", walk.images, archive.images);
    let found = walk.members.iter().map(|(name, range)| {
        (name.clone(), bytes[range.start as usize..range.end as usize].to_vec())
    });
    let found: Vec<_> = found.collect();
    assert!(found == archive.members, "{found:?} for {:?}", archive.members);
}

/// Checks that each offset in the index is the offset of the header of its member.
fn check_index(archive: &Archive, bytes: &[u8]) {
    let mut headers = Vec::new();
    let mut at = 8;
    while at < bytes.len() && archive.kind != Kind::Thin {
        headers.push(at);
        let size = str::from_utf8(&bytes[at + 48..at + 58]).expect("digits");
        at = (at + 60 + size.trim().parse::<usize>().expect("digits")).next_multiple_of(2);
    }
    let width = match archive.kind {
        Kind::Gnu(width) | Kind::Bsd(width) | Kind::Apple(width) => width,
        Kind::Microsoft => 4,
        Kind::Thin => return,
    };
    assert_eq!(headers.len(), archive.tables + archive.members.len());
    for &(place, member) in &archive.symbols {
        // Microsoft's second table is little-endian, and all others that are not the first.
        let number = &bytes[place..place + width];
        let little = number.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let big = number.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let is_second = archive.kind == Kind::Microsoft && place > headers[1];
        let offset = if archive.big && !is_second { big } else { little };
        assert_eq!(offset, headers[archive.tables + member], "{:?}", archive.kind);
    }
}

fn name(u: &mut Unstructured<'_>, kind: Kind) -> Result<Vec<u8>> {
    let short = [&b"a.o"[..], b"b.o", b"fifteen-bytes.o", b"with spaces", b"a"];
    let long =
        [&b"sixteen-bytes..o"[..], b"/usr/lib/a.o", b"dir/of/a.o", b"a-name-of-22-bytes.o  "];
    let is_long = u.arbitrary()?;
    let mut name = match kind {
        Kind::Gnu(_) | Kind::Microsoft | Kind::Thin if is_long => u.choose(&long)?.to_vec(),
        Kind::Bsd(_) | Kind::Apple(_) if is_long => u.choose(&long)?.to_vec(),
        Kind::Bsd(_) | Kind::Apple(_) => u.choose(&[&b"a.o"[..], b"b.o", b"a"])?.to_vec(),
        _ => u.choose(&short)?.to_vec(),
    };
    if is_long && u.ratio(1, 4)? {
        name.resize(name.len() + u.int_in_range(0..=300)?, b'x');
    }
    Ok(name)
}

/// Returns a file that can be a member.
fn member(u: &mut Unstructured<'_>, depth: usize) -> Result<File> {
    match u.int_in_range(0..=4)? {
        0 => Ok(File { bytes: b"text".repeat(u.int_in_range(0..=3)?), images: Vec::new() }),
        1 if depth > 0 => {
            let inner = archive(u, depth - 1)?;
            match inner.kind {
                Kind::Thin => Ok(File { bytes: Vec::new(), images: Vec::new() }),
                _ => Ok(File { bytes: inner.fields.into_bytes(), images: inner.images }),
            }
        }
        2 if depth > 0 => {
            let host = hosts::host(u, depth - 1)?;
            Ok(File { bytes: host.fields.into_bytes(), images: host.images })
        }
        _ => model::sequence(u, depth.min(1)),
    }
}

pub(crate) fn archive(u: &mut Unstructured<'_>, depth: usize) -> Result<Archive> {
    let width = *u.choose(&[4, 8])?;
    let kind = *u.choose(&[
        Kind::Gnu(width),
        Kind::Gnu(width),
        Kind::Bsd(width),
        Kind::Apple(width),
        Kind::Microsoft,
        Kind::Thin,
    ])?;
    let mut members = Vec::new();
    for _ in 0..u.int_in_range(0..=MOST)? {
        let name = name(u, kind)?;
        let mut file = member(u, depth)?;
        // Padding is a part of the member: of an archive and of WebAssembly it would be one that is damaged.
        let is_exact = file.bytes.starts_with(b"!<") || file.bytes.starts_with(b"\0asm");
        if matches!(kind, Kind::Apple(_)) && !is_exact {
            file.bytes.resize(file.bytes.len().next_multiple_of(8), b'\n');
        }
        members.push(Member { name, file });
    }
    let mut symbols = Vec::new();
    let has_index = u.arbitrary()?;
    while has_index && !members.is_empty() && symbols.len() < SYMBOLS && u.arbitrary()? {
        symbols.push(u.choose_index(members.len())?);
    }
    let has_table = has_index || u.arbitrary()?;
    Ok(write(kind, &members, has_index.then_some(&symbols), has_table, u.arbitrary()?))
}

/// The place of a name that does not fit in the header.
enum LongName {
    Header(Vec<u8>),
    /// Before the data.
    Front(Vec<u8>),
    /// In the table of names.
    Table(usize),
}

fn place(kind: Kind, name: &[u8], table: &mut Vec<u8>) -> LongName {
    match kind {
        Kind::Bsd(_) | Kind::Apple(_) if name.len() < 16 && !name.contains(&b'/') => {
            LongName::Header(name.to_vec())
        }
        Kind::Bsd(_) | Kind::Apple(_) => LongName::Front(name.to_vec()),
        _ if name.len() < 16 && !name.contains(&b'/') && kind != Kind::Thin => {
            LongName::Header([name, b"/"].concat())
        }
        _ => {
            let at = table.len();
            let end: &[u8] = if kind == Kind::Microsoft { b"\0" } else { b"/\n" };
            table.extend([name, end].concat());
            LongName::Table(at)
        }
    }
}

/// Appends a member: its header, a name before its data, the data and its padding. Returns where the data starts.
fn put_member(
    fields: &mut Fields,
    place: &LongName,
    kind: Kind,
    data: &Fields,
    is_thin: bool,
) -> usize {
    let mut front = Vec::new();
    match place {
        LongName::Header(name) => {
            fields.put(&[name, &b" ".repeat(16 - name.len())[..]].concat());
        }
        LongName::Front(name) => {
            front.clone_from(name);
            if matches!(kind, Kind::Apple(_)) {
                let at = fields.len() + 60;
                front.resize((at + name.len()).next_multiple_of(8) - at, 0);
            }
            fields.put(b"#1/").decimal(front.len(), 13, b' ');
        }
        LongName::Table(at) => {
            fields.put(b"/").decimal(*at, 15, b' ');
        }
    }
    fields.put(format!("{:<12}{:<6}{:<6}{:<8}", 0, 0, 0, 644).as_bytes());
    fields.decimal(front.len() + data.len(), 10, b' ').put(b"`\n").put(&front);
    let start = fields.len();
    if !is_thin {
        fields.append(data).pad(2, b'\n');
    }
    start
}

/// Returns an index of a fixed length, so that its members can be placed before they are known.
fn index(
    kind: Kind,
    big: bool,
    second: bool,
    symbols: &[usize],
    offsets: &[usize],
) -> (Fields, Vec<(usize, usize)>) {
    let mut fields = Fields::new(big);
    let mut places = Vec::new();
    let names: Vec<u8> =
        (0..symbols.len()).flat_map(|n| format!("symbol{n}\0").into_bytes()).collect();
    match kind {
        Kind::Bsd(width) | Kind::Apple(width) => {
            fields.number((symbols.len() * 2 * width) as u64, width);
            for (n, &member) in symbols.iter().enumerate() {
                fields.number(8 * n as u64, width);
                places.push((fields.len(), member));
                fields.number(offsets[member] as u64, width);
            }
            let len = names.len().next_multiple_of(8);
            fields.number(len as u64, width).put(&names).put(&vec![0; len - names.len()]);
        }
        _ if second => {
            fields.word(offsets.len());
            for (member, &offset) in offsets.iter().enumerate() {
                places.push((fields.len(), member));
                fields.word(offset);
            }
            fields.word(symbols.len());
            for member in symbols {
                fields.half(member + 1);
            }
            fields.put(&names);
        }
        _ => {
            let width = if let Kind::Gnu(width) = kind { width } else { 4 };
            fields.number(symbols.len() as u64, width);
            for &member in symbols {
                places.push((fields.len(), member));
                fields.number(offsets[member] as u64, width);
            }
            fields.put(&names);
        }
    }
    (fields, places)
}

fn write(
    kind: Kind,
    members: &[Member],
    symbols: Option<&Vec<usize>>,
    has_table: bool,
    flag: bool,
) -> Archive {
    let is_bsd = matches!(kind, Kind::Bsd(_) | Kind::Apple(_));
    // Symbols of BSD's form are in the order of the machine.
    let big = !is_bsd || flag;
    let mut table = Vec::new();
    let places: Vec<_> =
        members.iter().map(|member| place(kind, &member.name, &mut table)).collect();
    let mut offsets = vec![0; members.len()];
    let mut archive;
    // Once to know where everything is, once to write that down.
    let mut round = 0;
    loop {
        let mut fields =
            Fields::of(if kind == Kind::Thin { b"!<thin>\n" } else { b"!<arch>\n" }.to_vec());
        let mut found = Vec::new();
        let mut tables = 0;
        let mut put_index = |fields: &mut Fields, place: LongName, big, second| {
            let (index, places) =
                index(kind, big, second, symbols.map_or(&[], |s| &s[..]), &offsets);
            let start = put_member(fields, &place, kind, &index, false);
            found.extend(places.iter().map(|&(at, member)| (start + at, member)));
            tables += 1;
        };
        let in_header = |name: &[u8]| LongName::Header(name.to_vec());
        if symbols.is_some() || kind == Kind::Microsoft {
            match kind {
                Kind::Gnu(8) => put_index(&mut fields, in_header(b"/SYM64/"), big, false),
                Kind::Gnu(_) | Kind::Thin => put_index(&mut fields, in_header(b"/"), big, false),
                Kind::Microsoft => {
                    put_index(&mut fields, in_header(b"/"), true, false);
                    put_index(&mut fields, in_header(b"/"), false, true);
                }
                Kind::Bsd(width) | Kind::Apple(width) => {
                    let name: &[u8] = match (width, flag) {
                        (8, true) => b"__.SYMDEF_64",
                        (8, false) => b"__.SYMDEF_64 SORTED",
                        (_, true) => b"__.SYMDEF",
                        (_, false) => b"__.SYMDEF SORTED",
                    };
                    let place = match kind {
                        Kind::Bsd(_) if name.len() <= 16 && flag => in_header(name),
                        _ => LongName::Front(name.to_vec()),
                    };
                    put_index(&mut fields, place, big, false);
                }
            }
        }
        if !table.is_empty() || (has_table && !is_bsd) {
            put_member(&mut fields, &in_header(b"//"), kind, &Fields::of(table.clone()), false);
            tables += 1;
        }
        for (n, (member, place)) in members.iter().zip(&places).enumerate() {
            offsets[n] = fields.len();
            let data = Fields::of(member.file.bytes.clone());
            put_member(&mut fields, place, kind, &data, kind == Kind::Thin);
        }
        archive = Archive {
            fields,
            kind,
            images: members.iter().flat_map(|member| member.file.images.clone()).collect(),
            members: members
                .iter()
                .map(|member| (member.name.clone(), member.file.bytes.clone()))
                .collect(),
            symbols: found,
            big,
            tables,
        };
        round += 1;
        if round == 2 {
            return archive;
        }
    }
}
