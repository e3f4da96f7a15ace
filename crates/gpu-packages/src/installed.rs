//! Lists of installed files with sizes and hashes, and their change when files are edited.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Seek};
use std::ops::Range;

use serde_json::Value;

use crate::conda::CondaRow;
use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash, hash_reader};
use crate::record::{Record, Row};

/// Size and hashes of a file.
#[derive(Clone, Debug)]
pub struct FileHashes {
    size: u64,
    /// One for each algorithm that is needed.
    hashes: Vec<Hash>,
}

impl FileHashes {
    /// Reads a file once for each algorithm; without, only its size is known.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn of(mut file: impl Read + Seek, algorithms: &[Algorithm]) -> io::Result<Self> {
        let size = file.seek(io::SeekFrom::End(0))?;
        let mut hashes = Vec::new();
        for algorithm in algorithms {
            file.rewind()?;
            hashes.push(hash_reader(*algorithm, &mut file)?.1);
        }
        Ok(FileHashes { size, hashes })
    }

    /// Returns a file whose size alone is known.
    #[must_use]
    pub fn of_size(size: u64) -> Self {
        FileHashes { size, hashes: Vec::new() }
    }

    /// Returns a file of this size and with these hashes, each of another algorithm.
    #[must_use]
    pub fn of_hashes(size: u64, hashes: Vec<Hash>) -> Self {
        FileHashes { size, hashes }
    }

    pub(crate) fn hash(&self, algorithm: Algorithm) -> Option<&Hash> {
        self.hashes.iter().find(|hash| hash.algorithm() == algorithm)
    }

    pub(crate) fn needed(&self, algorithm: Algorithm) -> Result<&Hash, Error> {
        let needed = || Error::from(io::Error::other("a hash that was not computed"));
        self.hash(algorithm).ok_or_else(needed)
    }
}

/// A list of the files of an installed distribution: a `RECORD`, or a JSON file in `conda-meta`. A change keeps all bytes of
/// other rows.
///
/// ```
/// use std::io::Cursor;
/// use gpu_packages::{FileHashes, InstalledList};
///
/// let text = b"pkg/a.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\npkg/b.py,,\n";
/// let mut list = InstalledList::parse("RECORD", text.to_vec())?;
/// let new = FileHashes::of(Cursor::new("abc"), &list.algorithms(b"pkg/a.so"))?;
/// assert_eq!(list.faults(b"pkg/a.so", &new), ["RECORD has the size 0, found 3"]);
/// list.change(b"pkg/a.so", Some(&new))?;
/// list.change(b"pkg/b.py", None)?;
/// assert_eq!(list.to_vec(), b"pkg/a.so,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InstalledList(Text);

#[derive(Debug)]
enum Text {
    Python(Record),
    Conda { name: String, text: String, files: HashMap<String, CondaRow> },
}

impl InstalledList {
    /// Reads a list of this name: a file of conda's if it ends with `.json`, otherwise a `RECORD`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) for a text that is not JSON, and the kinds of [`Record::parse`] for a `RECORD`.
    pub fn parse(name: &str, text: Vec<u8>) -> Result<Self, Error> {
        if !name.ends_with(".json") {
            return Ok(InstalledList(Text::Python(Record::parse(&text)?)));
        }
        let malformed = |error: &dyn ToString| Error::new(ErrorKind::Malformed, error.to_string());
        let text = String::from_utf8(text).map_err(|error| malformed(&error))?;
        let list: Value = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
        let rows =
            list.pointer("/paths_data/paths").and_then(Value::as_array).into_iter().flatten();
        let rows = rows.filter_map(|row| CondaRow::of(row, "sha256_in_prefix"));
        let files = rows.map(|row| (row.path.clone(), row)).collect();
        Ok(InstalledList(Text::Conda { name: name.to_owned(), text, files }))
    }

    /// Returns the names of files beside the list that sign it, if they are there.
    #[must_use]
    pub fn signatures(&self) -> &'static [&'static str] {
        match self.0 {
            Text::Python(_) => &["RECORD.jws", "RECORD.p7s"],
            Text::Conda { .. } => &[],
        }
    }

    /// Returns the paths of all rows.
    #[must_use]
    pub fn paths(&self) -> Vec<Cow<'_, [u8]>> {
        match &self.0 {
            Text::Python(record) => record.rows().map(Row::into_path).collect(),
            Text::Conda { files, .. } => files.keys().map(|path| path.as_bytes().into()).collect(),
        }
    }

    /// Returns the algorithms of the hashes of a file, SHA-256 among them.
    #[must_use]
    pub fn algorithms(&mut self, path: &[u8]) -> Vec<Algorithm> {
        let mut algorithms = vec![Algorithm::Sha256];
        if let Text::Python(record) = &mut self.0 {
            let others = record.algorithms(path);
            algorithms.extend(others.into_iter().filter(|it| *it != Algorithm::Sha256));
        }
        algorithms
    }

    /// Returns how a file differs from its rows.
    #[must_use]
    pub fn faults(&mut self, path: &[u8], found: &FileHashes) -> Vec<String> {
        match &mut self.0 {
            Text::Python(record) => {
                let rows = record.find(path);
                rows.filter_map(|row| row.fault(found.size, found.hash(row.algorithm()))).collect()
            }
            Text::Conda { name, files, .. } => {
                let row = std::str::from_utf8(path).ok().and_then(|path| files.get(path));
                let fault =
                    row.and_then(|row| row.fault(found.size, found.hash(Algorithm::Sha256)));
                fault.map(|fault| format!("{name} {fault}")).into_iter().collect()
            }
        }
    }

    /// Gives the rows of a file its new size and hashes; removes them if it is gone. A list of conda's keeps files that are gone.
    ///
    /// # Errors
    ///
    /// A hash is lacking or of an unknown algorithm; a list of conda's that is not written as conda does.
    pub fn change(&mut self, path: &[u8], new: Option<&FileHashes>) -> Result<(), Error> {
        match (&mut self.0, new) {
            (Text::Python(record), None) => _ = record.remove(path),
            (Text::Python(record), Some(new)) => {
                record.replace(path, new.size, |algorithm| new.needed(algorithm).cloned())?;
            }
            (Text::Conda { .. }, None) => {}
            (Text::Conda { text, files, .. }, Some(new)) => {
                let row = std::str::from_utf8(path).ok().and_then(|path| files.get(path));
                if let Some(row) = row {
                    change_object(text, row, new.size, new.needed(Algorithm::Sha256)?)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the text with the changes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        match &self.0 {
            Text::Python(record) => record.to_vec(),
            Text::Conda { text, .. } => text.as_bytes().to_vec(),
        }
    }
}

/// Replaces size and hash of a row in JSON.
fn change_object(json: &mut String, row: &CondaRow, size: u64, hash: &Hash) -> Result<(), Error> {
    let quoted = Value::from(row.path.as_str()).to_string();
    let Some((object, mut new)) = object_around(json, &format!("\"_path\": {quoted}")) else {
        let text = format!("no entry of {quoted} in the usual form");
        return Err(Error::new(ErrorKind::Unsupported, text));
    };
    if let Some(old) = &row.hash {
        let place = "\"sha256_in_prefix\": ";
        let (old, hash) = (format!("{place}\"{old}\""), format!("{place}\"{}\"", hash.to_hex()));
        new = new.replacen(&old, &hash, 1);
    }
    if let Some(old) = row.size {
        let place = "\"size_in_bytes\": ";
        new = new.replacen(&format!("{place}{old}"), &format!("{place}{size}"), 1);
    }
    json.replace_range(object, &new);
    Ok(())
}

/// Returns the innermost object of JSON around this text, which has no objects in it, and its range.
fn object_around(json: &str, text: &str) -> Option<(Range<usize>, String)> {
    let at = json.find(text)?;
    let start = json.get(..at)?.rfind('{')?;
    let end = at + json.get(at..)?.find('}')? + 1;
    Some((start..end, json.get(start..end)?.to_owned()))
}

/// Notes of what files of an [`InstalledList`] are about to become, written before they get their names: after an interrupted run
/// they tell which files that run wrote. The text has the form of a `RECORD`.
///
/// ```
/// use std::io::Cursor;
/// use gpu_packages::{Algorithm, FileHashes, InstalledNotes};
///
/// let new = FileHashes::of(Cursor::new("abc"), &[Algorithm::Sha256])?;
/// let mut text = InstalledNotes::line(b"pkg/a.so", Some(&new))?;
/// text.extend(InstalledNotes::line(b"pkg/b.so", None)?);
/// // The last note was written in part: its file was not replaced.
/// text.extend_from_slice(b"\"pkg/c.so\",sha256=");
/// let notes = InstalledNotes::parse(&text)?;
/// assert!(notes.has(b"pkg/a.so", &new) && notes.mentions(b"pkg/b.so") && !notes.mentions(b"pkg/c.so"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct InstalledNotes {
    /// `None` for a file that is about to be deleted.
    notes: BTreeMap<Vec<u8>, Option<(u64, Hash)>>,
}

/// Stands in the place of the hash of a file that is about to be deleted.
const DELETED: &str = "deleted";

impl InstalledNotes {
    /// Reads notes.
    ///
    /// # Errors
    ///
    /// Errors of [`Record::parse`].
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let record = Record::parse(text.split_at(end).0)?;
        let notes = record.rows().filter_map(|row| {
            let note = match (row.hash(), row.size()) {
                (Some(hash), Some(size)) => Some((size, hash)),
                _ if row.hash_field() == DELETED.as_bytes() => None,
                _ => return None,
            };
            Some((row.path().to_vec(), note))
        });
        Ok(InstalledNotes { notes: notes.collect() })
    }

    /// Returns the text of a note about a file: `None` if it is about to be deleted.
    ///
    /// # Errors
    ///
    /// The hash of SHA-256 is lacking.
    pub fn line(path: &[u8], new: Option<&FileHashes>) -> Result<Vec<u8>, Error> {
        let mut line = vec![b'"'];
        for &byte in path {
            line.push(byte);
            if byte == b'"' {
                line.push(byte);
            }
        }
        let rest = match new {
            None => format!("\",{DELETED},\n"),
            Some(new) => format!("\",{},{}\n", new.needed(Algorithm::Sha256)?, new.size),
        };
        line.extend_from_slice(rest.as_bytes());
        Ok(line)
    }

    /// Returns the paths that there are notes about.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.notes.keys().map(Vec::as_slice)
    }

    /// Returns whether there is a note about this path.
    #[must_use]
    pub fn mentions(&self, path: &[u8]) -> bool {
        self.notes.contains_key(path)
    }

    /// Returns whether there is a note that this file is about to be deleted.
    #[must_use]
    pub fn deletes(&self, path: &[u8]) -> bool {
        self.notes.get(path).is_some_and(Option::is_none)
    }

    /// Returns whether a file is what its note says.
    #[must_use]
    pub fn has(&self, path: &[u8], found: &FileHashes) -> bool {
        let Some(Some((size, hash))) = self.notes.get(path) else { return false };
        *size == found.size && found.hash(hash.algorithm()) == Some(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_conda_keep_other_bytes() {
        let row = |path: &str, hash: &str, size: u64| {
            format!(
                "{{\"_path\": \"{path}\", \"sha256_in_prefix\": \"{hash}\", \"size_in_bytes\": {size}}}"
            )
        };
        let abc = Hash::of(Algorithm::Sha256, b"abc").to_hex();
        let text = |row: &str| {
            format!(
                "{{\n  \"name\": \"foo\",\n  \"paths_data\": {{\"paths\": [{row},\n {}]}} }}",
                "{\"_path\": \"b\"}"
            )
        };
        let old = text(&row("lib/a.so", &"00".repeat(32), 7));
        let mut list = InstalledList::parse("foo.json", old.into()).unwrap();
        let new = FileHashes::of(io::Cursor::new("abc"), &list.algorithms(b"lib/a.so")).unwrap();
        assert_eq!(list.faults(b"lib/a.so", &new), ["foo.json has the size 7, found 3"]);
        assert!(list.faults(b"b", &new).is_empty());
        list.change(b"lib/a.so", Some(&new)).unwrap();
        list.change(b"lib/none.so", Some(&new)).unwrap();
        list.change(b"b", None).unwrap();
        assert_eq!(String::from_utf8(list.to_vec()).unwrap(), text(&row("lib/a.so", &abc, 3)));
        assert!(InstalledList::parse("foo.json", b"{".to_vec()).is_err());
    }
}
