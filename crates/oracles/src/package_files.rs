//! Wheels, zip, tar, deb and rpm files, made from the fuzzer's bytes, and any bytes.

use std::io::{Cursor, Read};
use std::num::NonZeroUsize;

use arbitrary::{Result, Unstructured};
use gpu_packages::{
    Error, ErrorKind, Finding, Member, MemberKind, MemberPath, NewContents, Options, PackageKind,
    Record, Replacement, RewriteOptions, VariantMetadata, Visitor, WheelEdit, Zip, ZipEdit,
    rewrite_deb, rewrite_tar, verify, walk,
};

use crate::assert_message;

use samples::packages::{self, Around, Made};

/// Bytes that a walk may decompress.
const LIMIT: u64 = 4 << 20;

/// Packages in each other.
const DEPTH: usize = 5;

fn options() -> Options {
    Options::default().with_max_decompressed(LIMIT).with_max_held(1 << 20).with_max_depth(DEPTH)
}

/// All that a walk found.
#[derive(Default, PartialEq, Debug)]
struct Seen {
    members: Vec<(MemberPath, MemberKind, u64, Vec<u8>)>,
    packages: usize,
    findings: Vec<String>,
    bytes: u64,
}

impl Visitor for Seen {
    fn package(&mut self, path: &MemberPath, _: PackageKind) -> bool {
        assert!(path.names().len() < DEPTH);
        self.packages += 1;
        true
    }

    fn member(
        &mut self,
        member: &Member,
        contents: &mut dyn Read,
    ) -> std::result::Result<(), Error> {
        let mut bytes = Vec::new();
        let read = contents.read_to_end(&mut bytes);
        self.bytes += bytes.len() as u64;
        if read.is_ok() && member.kind() == MemberKind::File {
            assert_eq!(bytes.len() as u64, member.size(), "{}", member.path());
        }
        assert!(bytes.len() as u64 <= member.size(), "{}", member.path());
        self.members.push((member.path().clone(), member.kind(), member.size(), bytes));
        read?;
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        assert_message(&finding);
        self.findings.push(finding.to_string());
    }
}

fn seen(data: &[u8]) -> std::result::Result<(PackageKind, Seen), Error> {
    let mut seen = Seen::default();
    let kind = walk(Cursor::new(data), &options(), &mut seen)?;
    Ok((kind, seen))
}

/// Reads any bytes. Then makes a package of them, and checks that exactly its members are found, that a change leaves all
/// others as they are, and that every damage of the fuzzer is read within bounds.
pub fn check(data: &[u8]) {
    any(data);
    variant(data);
    if let Ok(record) = Record::parse(data) {
        assert_eq!(record.to_vec(), data, "a RECORD without a change");
    }
    let u = &mut Unstructured::new(data);
    let Ok(mut file) = made(u) else { return };
    any(&file);
    crate::fields::change_bytes(u, &mut file, 4);
    any(&file);
}

fn any(data: &[u8]) {
    let found = seen(data);
    let again = seen(data);
    match (&found, &again) {
        (Ok((kind, found)), Ok((other, again))) => {
            assert_eq!((kind, found), (other, again), "two walks");
            // Compressed tar files and what they hold count, too.
            assert!(found.bytes <= LIMIT + data.len() as u64 * 9);
            match kind {
                PackageKind::Tar => tar(data, found),
                PackageKind::Deb => deb(data),
                _ => {}
            }
        }
        (Err(error), Err(_)) => assert_message(error),
        _ => panic!("{found:?} {again:?}"),
    }
    if let Ok(verified) = verify(Cursor::new(data), &options()) {
        verified.findings.iter().for_each(assert_message);
    }
    match Zip::read(Cursor::new(data)) {
        Ok(zip) => zip_file(data, &zip),
        Err(error) => assert_message(&error),
    }
}

/// Reads the metadata of a variant: what is read is written and read again, and agrees with itself.
fn variant(data: &[u8]) {
    let Ok((metadata, faults)) = VariantMetadata::read(data) else { return };
    let json = metadata.to_json();
    let (again, _) = VariantMetadata::read(json.as_bytes()).expect("its own JSON");
    assert!(!faults.is_empty() || again == metadata, "{json}");
    let mut merged = metadata.clone();
    assert!(merged.merge(&metadata).is_empty() && merged == metadata);
}

/// Reads a member, if it can be.
fn read(data: &[u8], zip: &Zip, index: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = zip.open(index, Cursor::new(data)).ok()?.take(LIMIT);
    reader.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn zip_file(data: &[u8], zip: &Zip) {
    let findings = zip.check(Cursor::new(data)).expect("bytes in memory can be read");
    findings.iter().for_each(assert_message);
    let len = data.len() as u64;
    for member in zip.members() {
        assert!(member.offset() < len && member.stored_size() <= len - member.offset());
    }
    let write = |edit: &ZipEdit<'_>| -> std::result::Result<Vec<u8>, Error> {
        let rewrite = edit.plan(Cursor::new(data))?;
        let mut new = Vec::new();
        rewrite.write_to(Cursor::new(data), &mut new)?;
        assert_eq!(new.len() as u64, rewrite.size());
        Ok(new)
    };
    assert!(write(&ZipEdit::new(zip)).expect("a copy") == data, "a copy differs");
    let Some(index) = zip.members().len().checked_sub(1).map(|last| data.len() % (last + 1)) else {
        return;
    };
    let contents = &data[..data.len().min(500)];
    let new = match data.len() % 2 {
        0 => NewContents::store(contents),
        _ => NewContents::deflate(contents, 6, NonZeroUsize::MIN),
    };
    let new = new.expect("bytes in memory can be read");
    let mut edit = ZipEdit::new(zip);
    edit.replace(index, new.clone());
    match write(&edit) {
        Ok(new) => {
            let after = Zip::read(Cursor::new(&new)).expect("what was written can be read");
            let before = zip.members().iter().map(|member| member.name());
            assert!(before.eq(after.members().iter().map(|member| member.name())));
            let left = after.check(Cursor::new(&new)).expect("bytes in memory can be read");
            assert!(left.len() <= findings.len(), "{left:?} {findings:?}");
            // Each member costs at most its limit; few are enough.
            for at in (0..after.members().len()).take(20) {
                if at == index {
                    assert_eq!(read(&new, &after, at).as_deref(), Some(contents));
                } else {
                    assert_eq!(read(&new, &after, at), read(data, zip, at), "{at}");
                }
            }
        }
        Err(error) => {
            assert_message(&error);
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
    }
    if let Ok(mut edit) = WheelEdit::new(zip) {
        edit.replace(index, new).build_tag("1x").drop_signature(true);
        if let Ok(rewrite) = edit.plan(Cursor::new(data)) {
            let mut new = Vec::new();
            rewrite.write_to(Cursor::new(data), &mut new).expect("it was planned");
            Zip::read(Cursor::new(&new)).expect("what was written can be read");
        }
    }
}

fn tar(data: &[u8], found: &Seen) {
    // A damaged stream is an error here, a bomb takes long.
    if data.len() > 64 << 10 || found.bytes > 1 << 20 {
        return;
    }
    let mut new = Vec::new();
    let mut rest = LIMIT;
    let limited = |rest: &mut u64, name: &[u8]| {
        *rest = rest.saturating_sub(name.len() as u64 + 512);
        match *rest {
            0 => Err(Error::refused("enough")),
            _ => Ok(None::<Replacement<'_>>),
        }
    };
    if rewrite_tar(data, &mut new, &fast(), |name, _| limited(&mut rest, name)).is_ok() {
        let (_, again) = seen(&new).expect("what was written can be read");
        assert_eq!(found.members, again.members);
    }
}

fn fast() -> RewriteOptions {
    RewriteOptions::default().with_level(1).with_max_decompressed(2 * LIMIT)
}

fn deb(data: &[u8]) {
    let mut new = Vec::new();
    if rewrite_deb(Cursor::new(data), &mut new, &fast().with_drop_signature(true), |_, _| Ok(None))
        .is_ok()
    {
        assert!(new == data, "a copy differs");
    }
}

fn contents(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let len = u.int_in_range(0..=300)?;
    let byte = u.arbitrary::<u8>()?;
    Ok(if u.arbitrary()? { vec![byte; len * 20] } else { u.bytes(len.min(u.len()))?.to_vec() })
}

/// Returns a member of a tar file of a kind; a sparse file starts with a hole.
fn odd_member(name: &str, contents: &[u8], kind: u8, hole: usize) -> Vec<u8> {
    let size = contents.len();
    let mut member = packages::tar_header(name.as_bytes(), size as u64, kind, b"");
    if kind == b'S' {
        member[257..265].copy_from_slice(b"ustar  \0");
        member[386..410].copy_from_slice(format!("{hole:011o}\0{size:011o}\0").as_bytes());
        member[483..495].copy_from_slice(format!("{:011o}\0", hole + size).as_bytes());
        packages::sum(&mut member);
    }
    member.extend(packages::padded(contents));
    member
}

/// Makes a package, checks what is found in it, and returns it.
fn made(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let count = u.int_in_range(1..=4)?;
    let mut files = (0..count)
        .map(|index| Ok((format!("dir/{index}"), contents(u)?)))
        .collect::<Result<Vec<_>>>()?;
    let slices: Vec<_> = files.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect();
    let mut holes = vec![0; count];
    let (file, first) = match u.int_in_range(0..=6)? {
        0 => (packages::tar(&slices), 0),
        1 => (packages::gzip(&packages::tar(&slices)), 0),
        2 => (packages::deb(&slices, ".gz", packages::gzip), 3),
        3 => (packages::rpm(&packages::gzip(&packages::cpio(&slices))), 0),
        4 => (packages::zip(&packages::wheel(&slices), &Around::default()), 0),
        5 => {
            let mut tar = Vec::new();
            for ((name, contents), hole) in slices.iter().zip(&mut holes) {
                let kind = *u.choose(b"07SZDMVN")?;
                *hole = if kind == b'S' { u.int_in_range(0..=2000)? } else { 0 };
                tar.extend(odd_member(name, contents, kind, *hole));
            }
            tar.extend([0; 1024]);
            (tar, 0)
        }
        _ => {
            let mut members: Vec<_> =
                slices.iter().map(|(name, bytes)| Made::new(name, *bytes)).collect();
            for made in &mut members {
                made.method = *u.choose(&[0, 8])?;
                made.descriptor = *u.choose(&[0, 12, 16, 20, 24])?;
                made.is_zip64 = u.arbitrary()?;
                made.zeros = u.int_in_range(0..=4)?;
            }
            members[0].zeros = 0;
            let around =
                Around { is_zip64: u.arbitrary()?, comment: contents(u)?, ..Around::default() };
            (packages::zip(&members, &around), 0)
        }
    };
    for ((_, contents), hole) in files.iter_mut().zip(holes) {
        contents.splice(0..0, vec![0; hole]);
    }
    let (_, found) = seen(&file).expect("it is sound");
    // Contents may be packages, and a comment may look like the end of a zip file.
    if found.packages == 1 && found.findings.is_empty() {
        let found = found.members.iter().skip(first).take(count);
        for ((path, _, size, bytes), (name, contents)) in found.zip(&files) {
            assert_eq!((path.name(), *size), (name.as_bytes(), contents.len() as u64));
            assert!(bytes == contents, "{path}");
        }
    }
    Ok(file)
}
