//! Objects that device code is put into and taken out of, and whose names change.

use fat_edit::{HOST_PLACEHOLDER, object_bundle, remove_bundle_sections};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use object_edit::{Renames, embed, rename};

use crate::assert_message;

const IDS: [&str; 2] = ["host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"];

/// Checks that entries can be added and removed again, and that the rest is then unchanged.
pub fn check(data: &[u8]) {
    let host = remove_bundle_sections(data);
    if let Err(error) = &host {
        assert_message(error);
    }
    check_names(data);
    match embed(data, data) {
        Ok(object) => assert!(object.len() > data.len()),
        Err(error) => assert_message(&error),
    }
    let image = b"device code";
    let sizes = [(IDS[0], HOST_PLACEHOLDER.len() as u64), (IDS[1], image.len() as u64)];
    let bundle = match object_bundle(data, &sizes) {
        Ok(bundle) => bundle,
        Err(error) => return assert_message(&error),
    };
    let object = bundle.to_vec(&[HOST_PLACEHOLDER, image]).expect("these sizes were laid out");
    assert_eq!(object.len() as u64, bundle.total_size());
    let mut ranges = bundle.contents_ranges();
    for contents in [HOST_PLACEHOLDER, image] {
        let range = ranges.next().expect("two entries");
        assert_eq!(&object[range.start as usize..range.end as usize], contents);
    }
    let restored = remove_bundle_sections(&object);
    match (host, restored) {
        (Ok(host), Ok(restored)) => assert!(host == restored, "another host comes back"),
        (Err(_), Err(_)) => {}
        (host, restored) => panic!("{:?} became {:?}", host.map(drop), restored.map(drop)),
    }
}

/// Checks that the names change that should, as the `object` crate reads them, and nothing else.
fn check_names(data: &[u8]) {
    let old = Names::of(data);
    let first = |names: Option<&Vec<Vec<u8>>>, default: &str| {
        let mut names = names.into_iter().flatten().filter_map(|name| str::from_utf8(name).ok());
        names.find(|name| !name.is_empty()).unwrap_or(default).to_owned()
    };
    let section = first(old.as_ref().map(|old| &old.sections), ".text");
    let symbol = first(old.as_ref().map(|old| &old.symbols), "main");
    let renames = Renames::new().with_section(&section, "other").with_symbol(&symbol, "another");
    let renamed = match rename(data, &renames) {
        Ok(renamed) => renamed,
        Err(error) => return assert_message(&error),
    };
    let Some(old) = old else { return };
    let new = Names::of(&renamed).expect("what was read before is read after");
    assert!(old.contents == new.contents, "contents changed");
    let is = |old: &[u8], new: &[u8], from: &str, to: &str| {
        new == if old == from.as_bytes() { to.as_bytes() } else { old }
    };
    let is_section = |old: &[u8], new: &[u8]| {
        let of_relocations = [".rela", ".rel", ".crel"].into_iter().any(|start| {
            let old = old.strip_prefix(start.as_bytes());
            old == Some(section.as_bytes()) && new == format!("{start}other").as_bytes()
        });
        of_relocations || is(old, new, &section, "other")
    };
    let all = |old: &[Vec<u8>], new: &[Vec<u8>], is: &dyn Fn(&[u8], &[u8]) -> bool| {
        old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is(old, new))
    };
    assert!(all(&old.sections, &new.sections, &is_section), "other names of sections");
    let is_symbol = |old: &[u8], new: &[u8]| is(old, new, &symbol, "another");
    assert!(all(&old.symbols, &new.symbols, &is_symbol), "other names of symbols");
    assert!(old.places == new.places, "symbols moved");
}

/// The names in an ELF object and the things named, as the `object` crate reads them.
struct Names {
    sections: Vec<Vec<u8>>,
    contents: Vec<Vec<u8>>,
    symbols: Vec<Vec<u8>>,
    /// Section, value and size of each symbol.
    places: Vec<(Option<usize>, u64, u64)>,
}

impl Names {
    /// Reads an object; `None` for other files and where a part cannot be read.
    fn of(data: &[u8]) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        if file.format() != object::BinaryFormat::Elf {
            return None;
        }
        let mut names =
            Names { sections: vec![], contents: vec![], symbols: vec![], places: vec![] };
        for section in file.sections() {
            names.sections.push(section.name_bytes().ok()?.to_vec());
            if section.kind() != SectionKind::Metadata {
                names.contents.push(section.data().ok()?.to_vec());
            }
        }
        for symbol in file.symbols() {
            names.symbols.push(symbol.name_bytes().ok()?.to_vec());
            let section = symbol.section_index().map(|index| index.0);
            names.places.push((section, symbol.address(), symbol.size()));
        }
        Some(names)
    }
}
