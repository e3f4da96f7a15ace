//! `RECORD`, the list of the files of a wheel or an installed distribution.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;

use byte_parts::internal;

use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, Hash};
use crate::path::{MemberPath, Shown};
use crate::text::until;

/// A `RECORD`: CSV rows of path, hash and size.
///
/// The text is kept as it is, quotes, line ends and order included; [`replace`](Self::replace) changes fields of
/// single rows.
///
/// ```
/// use gpu_packages::{Algorithm, Hash, Record};
///
/// let mut record = Record::parse(b"pkg/a.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\npkg/b.py,,\r\n")?;
/// let row = record.rows().next().ok_or("it has rows")?;
/// assert_eq!((row.path(), row.size()), (&b"pkg/a.so"[..], Some(0)));
/// record.replace(b"pkg/a.so", 3, |algorithm| Ok(Hash::of(algorithm, b"abc")))?;
/// record.replace(b"pkg/b.py", 3, |algorithm| Ok(Hash::of(algorithm, b"abc")))?;
/// let expected = b"pkg/a.so,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\r\npkg/b.py,,\r\n";
/// assert_eq!(record.to_vec(), expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Record {
    text: Vec<u8>,
    /// The places of the rows in the text, with their line ends.
    rows: Vec<Range<usize>>,
    /// Made when it is needed.
    by_path: Option<ByPath>,
    /// By the index of the row.
    changes: BTreeMap<usize, Change>,
    /// New rows, with line ends.
    added: Vec<u8>,
}

/// The rows in the order of the hashes of their paths. A search reads no row of another path, however long that is: the key of the
/// hashes is random.
#[derive(Clone)]
struct ByPath {
    key: RandomState,
    /// Hashes and indices.
    rows: Vec<(u64, usize)>,
}

/// The change of a row.
#[derive(Clone)]
enum Change {
    Removed,
    /// New fields of hash and size.
    Replaced(Vec<u8>, Vec<u8>),
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

/// The value of a field, without quotes, and its place.
type Field<'t> = (Cow<'t, [u8]>, Range<usize>);

/// A row of a [`Record`].
#[derive(Clone, Debug, Default)]
pub struct Row<'r> {
    path: Cow<'r, [u8]>,
    hash: Cow<'r, [u8]>,
    size: Cow<'r, [u8]>,
    /// The places of hash and size in the text; `None` if the row lacks them.
    fields: Option<(Range<usize>, Range<usize>)>,
}

impl<'r> Row<'r> {
    /// Reads the row that starts here, and returns where the next one does; `None` for a blank line.
    fn read(text: &'r [u8], start: usize) -> Result<(Option<Self>, usize), Error> {
        let mut fields: [Option<Field<'_>>; 3] = [const { None }; 3];
        let (mut at, mut places) = (start, fields.iter_mut());
        loop {
            let (value, end) = field(text, at)?;
            if let Some(place) = places.next() {
                *place = Some((value, at..end));
            }
            at = end;
            if text.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        at += match text.get(at..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        let [path, hash, size] = fields;
        let is_blank = hash.is_none() && path.as_ref().is_none_or(|(path, _)| path.is_empty());
        let places = match (&hash, &size) {
            (Some((_, hash)), Some((_, size))) => Some((hash.clone(), size.clone())),
            _ => None,
        };
        // A row may lack hash and size.
        let value = |field: Option<Field<'r>>| field.map(|(value, _)| value);
        let row = Row {
            path: value(path).unwrap_or_default(),
            hash: value(hash).unwrap_or_default(),
            size: value(size).unwrap_or_default(),
            fields: places,
        };
        Ok(((!is_blank).then_some(row), at))
    }

    /// Returns the path, without quotes.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns the path, without quotes, as long as the list lives.
    pub(crate) fn into_path(self) -> Cow<'r, [u8]> {
        self.path
    }

    /// Returns the field of the hash, `sha256=…`; empty if there is none.
    #[must_use]
    pub fn hash_field(&self) -> &[u8] {
        &self.hash
    }

    /// Returns the hash, base64 or hexadecimal; `None` if there is none, or one that cannot be read.
    #[must_use]
    pub fn hash(&self) -> Option<Hash> {
        let (algorithm, text) = self.split_hash()?;
        let algorithm = Algorithm::from_name(algorithm)?;
        Hash::from_hex(algorithm, text).or_else(|| Hash::from_base64(algorithm, text))
    }

    /// Returns whether the hash is in hexadecimal digits, which the specification of wheels does not allow.
    pub(crate) fn is_hexadecimal(&self) -> bool {
        let text = self.split_hash();
        let hash = text.and_then(|(name, text)| Hash::from_hex(Algorithm::from_name(name)?, text));
        hash.is_some()
    }

    fn split_hash(&self) -> Option<(&str, &str)> {
        std::str::from_utf8(&self.hash).ok()?.split_once('=')
    }

    /// Returns the size; `None` if there is none, or one that cannot be read.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        std::str::from_utf8(&self.size).ok()?.parse().ok()
    }

    /// Returns the algorithm of the hash; SHA-256 if there is none, or one that cannot be read.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.hash().map_or(Algorithm::Sha256, |hash| hash.algorithm())
    }

    /// Returns how a file with this size and hash differs from the row, if it does. Without a hash by the algorithm of the row only
    /// sizes are compared.
    ///
    /// ```
    /// use gpu_packages::Record;
    ///
    /// let record = Record::parse(b"pkg/a.so,,3\n")?;
    /// let row = record.rows().next().ok_or("it has a row")?;
    /// assert_eq!(row.fault(3, None), None);
    /// assert_eq!(row.fault(4, None).as_deref(), Some("RECORD has the size 3, found 4"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fault(&self, size: u64, hash: Option<&Hash>) -> Option<String> {
        match self.size() {
            Some(recorded) if recorded != size => {
                return Some(format!("RECORD has the size {recorded}, found {size}"));
            }
            None if !self.lacks_size() => {
                return Some("RECORD has a size that is not a number".into());
            }
            _ if self.hash.is_empty() => return None,
            _ => {}
        }
        match (self.hash(), hash) {
            (None, _) => {
                let field = Shown(&self.hash);
                Some(format!("RECORD has a hash that cannot be read: '{field}'"))
            }
            // A hash by another algorithm says nothing about this row.
            (Some(recorded), Some(hash))
                if recorded.algorithm() == hash.algorithm() && recorded != *hash =>
            {
                Some(format!("RECORD has the hash {recorded}, found {hash}"))
            }
            _ => None,
        }
    }

    /// Returns whether the field of the size is empty.
    #[must_use]
    pub fn lacks_size(&self) -> bool {
        self.size.is_empty()
    }
}

impl Record {
    /// Parses the text of a `RECORD`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) for quotes that do not end.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let mut rows = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (row, end) = Row::read(text, at)?;
            rows.extend(row.map(|_| at..end));
            at = end;
        }
        let (text, changes) = (text.to_vec(), BTreeMap::new());
        Ok(Record { text, rows, by_path: None, changes, added: Vec::new() })
    }

    /// Returns the number of bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the rows, as they were parsed.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|place| read(&self.text, place))
    }

    /// Returns the rows of a path.
    pub fn find(&mut self, path: &[u8]) -> impl Iterator<Item = Row<'_>> {
        let places = self.rows_of(path).into_iter().filter_map(|index| self.rows.get(index));
        places.map(|place| read(&self.text, place))
    }

    /// Returns the algorithms of the hashes in the rows of a path, each once: SHA-256 for a row without.
    pub fn algorithms(&mut self, path: &[u8]) -> Vec<Algorithm> {
        let mut algorithms = Vec::new();
        for row in self.find(path) {
            if !algorithms.contains(&row.algorithm()) {
                algorithms.push(row.algorithm());
            }
        }
        algorithms
    }

    /// Replaces size and hash in all rows of a path, and returns the number of such rows. The hash is asked for by the
    /// algorithm of the row. Empty fields stay empty, and hexadecimal hashes hexadecimal.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported) for an unknown algorithm, and errors of `hash`.
    pub fn replace(
        &mut self,
        path: &[u8],
        size: u64,
        mut hash: impl FnMut(Algorithm) -> Result<Hash, Error>,
    ) -> Result<usize, Error> {
        let indices = self.rows_of(path);
        for index in &indices {
            let Some(place) = self.rows.get(*index) else { continue };
            let row = read(&self.text, place);
            let mut new_hash = Vec::new();
            if !row.hash.is_empty() {
                let unknown = || {
                    let field = Shown(&row.hash);
                    let text = format!(
                        "RECORD row of {}: expected md5, sha256, sha384 or sha512 as algorithm, found '{field}'",
                        Shown(&row.path)
                    );
                    Error::new(ErrorKind::Unsupported, text)
                };
                let (name, text) = row.split_hash().ok_or_else(unknown)?;
                let algorithm = Algorithm::from_name(name).ok_or_else(unknown)?;
                let value = hash(algorithm)?;
                let value = match Hash::from_hex(algorithm, text) {
                    Some(_) => value.to_hex(),
                    None => value.to_base64(),
                };
                new_hash = format!("{name}={value}").into_bytes();
            }
            let new_size =
                if row.size.is_empty() { Vec::new() } else { size.to_string().into_bytes() };
            // A row that was removed stays so.
            if !matches!(self.changes.get(index), Some(Change::Removed)) {
                self.changes.insert(*index, Change::Replaced(new_hash, new_size));
            }
        }
        Ok(indices.len())
    }

    /// Removes all rows of a path, and returns their number.
    pub fn remove(&mut self, path: &[u8]) -> usize {
        let indices = self.rows_of(path);
        self.changes.extend(indices.iter().map(|index| (*index, Change::Removed)));
        indices.len()
    }

    /// Adds the row of a file that no row lists, as the last one.
    pub fn add(&mut self, path: &str, size: u64, hash: &Hash) {
        let end = if self.text.ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let before = if self.text.is_empty() || self.text.ends_with(b"\n") { "" } else { end };
        let before = if self.added.is_empty() { before } else { "" };
        let row = format!("{before}{},{hash},{size}{end}", quoted(path));
        self.added.extend_from_slice(row.as_bytes());
    }

    /// Returns the numbers of the rows of a path, if there are any.
    fn rows_of(&mut self, path: &[u8]) -> Vec<usize> {
        let Record { text, rows, by_path, .. } = self;
        let by_path = by_path.get_or_insert_with(|| {
            let key = RandomState::new();
            let hash = |place| key.hash_one(read(text, place).path());
            let mut rows: Vec<(u64, usize)> = rows.iter().map(hash).zip(0..).collect();
            rows.sort_unstable();
            ByPath { key, rows }
        });
        let wanted = by_path.key.hash_one(path);
        let start = by_path.rows.partition_point(|(hash, _)| *hash < wanted);
        let alike = by_path.rows.iter().skip(start).take_while(|(hash, _)| *hash == wanted);
        let is_of_path = |index: &usize| {
            let place = rows.get(*index);
            place.is_some_and(|place| read(text, place).path() == path)
        };
        alike.map(|(_, index)| *index).filter(is_of_path).collect()
    }

    /// Returns the text with the changes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len());
        let (mut rest, mut at) = (&self.text[..], 0);
        // Places follow each other.
        let mut replace = |place: &Range<usize>, new: &[u8]| {
            let (before, after) = rest.split_at(place.start - at);
            out.extend_from_slice(before);
            out.extend_from_slice(new);
            (rest, at) = (after.split_at(place.len()).1, place.end);
        };
        for (index, change) in &self.changes {
            let Some(place) = self.rows.get(*index) else { continue };
            let Change::Replaced(new_hash, new_size) = change else {
                replace(place, b"");
                continue;
            };
            let Row { hash, size, fields: Some(places), .. } = read(&self.text, place) else {
                continue;
            };
            for (place, old, new) in [(places.0, hash, new_hash), (places.1, size, new_size)] {
                if *new != *old {
                    replace(&place, new);
                }
            }
        }
        out.extend_from_slice(rest);
        out.extend_from_slice(&self.added);
        out
    }
}

/// Returns a field of a CSV row, in quotes where it needs these.
pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Returns the row at this place, where one was read before.
fn read<'r>(text: &'r [u8], place: &Range<usize>) -> Row<'r> {
    let row = Row::read(text, place.start).ok().and_then(|(row, _)| row);
    row.unwrap_or_else(|| {
        internal!("a row that cannot be read again");
        Row::default()
    })
}

/// Size and hash of the files of a wheel; no hash where it is not compared.
pub(crate) type Files<'f> = BTreeMap<&'f [u8], (u64, Option<&'f Hash>)>;

/// The result of [`compare_record`].
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) findings: Vec<Finding>,
    /// Number of files with the recorded hash.
    pub(crate) recorded: u64,
    /// Number of rows whose hash is in hexadecimal digits.
    pub(crate) hexadecimal: u64,
}

/// Compares the files of a wheel with its `RECORD` in this directory. Nothing is said of files whose contents are damaged.
pub(crate) fn compare_record(
    record: &Record,
    directory: &[u8],
    files: &Files<'_>,
    is_damaged: impl Fn(&[u8]) -> bool,
) -> Compared {
    let mut compared = Compared::default();
    let mut listed = HashSet::new();
    for row in record.rows() {
        let name = row.path();
        compared.hexadecimal += u64::from(row.is_hexadecimal());
        if !listed.insert(row.path.clone()) {
            compared.add(name, "RECORD lists it twice".into());
        }
        let Some((size, hash)) = files.get(name) else {
            if !is_damaged(name) {
                compared.add(name, "RECORD lists it, the wheel lacks it".into());
            }
            continue;
        };
        match row.fault(*size, *hash) {
            Some(fault) => compared.add(name, fault),
            None => compared.recorded += u64::from(!row.hash_field().is_empty()),
        }
    }
    let unlisted = files.keys().filter(|name| !listed.contains(**name));
    let is_exempt = |name: &[u8]| {
        let own = name.strip_prefix(directory);
        matches!(own, Some(b"/RECORD" | b"/RECORD.jws" | b"/RECORD.p7s"))
    };
    for name in unlisted.filter(|name| !is_exempt(name)) {
        compared.add(name, "RECORD does not list it".into());
    }
    compared
}

impl Compared {
    fn add(&mut self, name: &[u8], text: String) {
        let path = MemberPath::default().join(name);
        let error = Error::new(ErrorKind::Mismatch, text);
        self.findings.push(Finding { path, kind: FindingKind::Record, error });
    }
}

/// Returns the value of the field at a position, and where it ends.
fn field(text: &[u8], start: usize) -> Result<(Cow<'_, [u8]>, usize), Error> {
    let ends = |byte| matches!(byte, b',' | b'\n' | b'\r');
    let (_, rest) = text.split_at(start);
    if rest.first() != Some(&b'"') {
        let value = until(rest, ends);
        return Ok((value.into(), start + value.len()));
    }
    let mut value = Vec::new();
    let mut at = 1;
    loop {
        match rest.get(at..) {
            Some([b'"', b'"', ..]) => {
                value.push(b'"');
                at += 2;
            }
            Some([b'"', ..]) => break,
            Some([byte, ..]) => {
                value.push(*byte);
                at += 1;
            }
            _ => {
                let text = "RECORD: expected a closing quote, found the end";
                return Err(Error::at(ErrorKind::Malformed, start as u64, text));
            }
        }
    }
    at += 1;
    // Text after the closing quote belongs to the field, as Python's reader has it.
    let more = until(rest.split_at(at).1, ends);
    value.extend_from_slice(more);
    Ok((value.into(), start + at + more.len()))
}
