//! Zip archives: any bytes, and what becomes of them when they are written again.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use gpu_packages::{Contents, Zip};

/// The most bytes of a member that are read, and the most members.
const MOST: u64 = 1 << 20;
const MEMBERS: usize = 64;

/// Reads an archive, and writes it again: as it is, with a changed member, and without one.
///
/// # Panics
///
/// A rule does not hold.
pub fn check(data: &[u8]) {
    let zip = match Zip::read(Cursor::new(data)) {
        Ok(zip) => zip,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // A record of the directory has 46 bytes.
    assert!(zip.members().len() <= data.len() / 46);
    let before = read(&zip, data);
    let Some(same) = rewritten(&zip, data, &BTreeMap::new()) else { return };
    assert_eq!(members(&same), before);
    let at = data.len() % zip.members().len().max(1);
    let Some(member) = zip.members().get(at) else { return };
    let mut contents = Contents::like(member, 6);
    contents.write_all(b"other").expect("memory takes bytes");
    let changed = BTreeMap::from([(at, Some(contents.finish().expect("memory takes bytes")))]);
    if let Some(new) = rewritten(&zip, data, &changed) {
        let after = members(&new);
        assert_eq!(after.len(), before.len());
        for (nth, (old, new)) in before.iter().zip(&after).enumerate() {
            assert_eq!(old.0, new.0);
            match nth == at {
                // An encrypted member may still be unreadable.
                true => assert!(new.1.as_deref().is_none_or(|bytes| bytes == b"other")),
                false => assert_eq!(old.1, new.1),
            }
        }
    }
    if let Some(new) = rewritten(&zip, data, &BTreeMap::from([(at, None)])) {
        let after = members(&new);
        let others = before.iter().enumerate().filter(|(nth, _)| *nth != at);
        if before.len() < MEMBERS {
            assert!(others.map(|(_, member)| member).eq(&after));
        }
    }
}

/// Returns the archive with changes, if it can be written.
fn rewritten(
    zip: &Zip,
    data: &[u8],
    changes: &BTreeMap<usize, Option<Contents>>,
) -> Option<Vec<u8>> {
    let parts = zip.rewrite(Cursor::new(data), changes).ok()?;
    Some(parts.to_vec(|_| data).expect("all parts lie in the archive"))
}

/// The path of a member, and its bytes if they can be read.
type Named = (String, Option<Vec<u8>>);

fn members(data: &[u8]) -> Vec<Named> {
    let zip = Zip::read(Cursor::new(data)).expect("what is written can be read");
    read(&zip, data)
}

fn read(zip: &Zip, data: &[u8]) -> Vec<Named> {
    let members = zip.members().iter().take(MEMBERS);
    members
        .map(|member| {
            let mut bytes = Vec::new();
            let read = zip
                .open(member, Cursor::new(data))
                .ok()
                .and_then(|reader| reader.take(MOST).read_to_end(&mut bytes).ok());
            assert!(bytes.len() as u64 <= member.size());
            if read.is_some() && member.size() < MOST {
                assert_eq!(bytes.len() as u64, member.size());
            }
            (member.path().to_owned(), read.map(|_| bytes))
        })
        .collect()
}
