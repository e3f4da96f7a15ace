//! Lists of installed files with sizes and hashes, corrected after files are edited: `RECORD` of Python distributions, and
//! `conda-meta` of conda's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::output::{How, Outputs};
use crate::permissions::NewPermissions;
use crate::stamp::Stamp;
use crate::{input, report};
use gpu_packages::{Algorithm, Hash, hash_reader};

/// A list of the files of one distribution.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    /// The distribution: `torch-2.10.0`.
    pub(crate) name: String,
    format: Format,
    text: String,
    /// The files in question that it lists.
    files: BTreeSet<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Python,
    Conda,
}

/// A file in a list of conda's.
#[derive(Debug)]
struct Listed {
    path: String,
    hash: Option<String>,
    size: Option<u64>,
}

/// Returns the lists that have some of these files, by their paths. Complains of lists that cannot be read.
pub(crate) fn find<'p>(files: impl IntoIterator<Item = &'p Path>) -> Vec<Record> {
    let mut by_directory: HashMap<PathBuf, BTreeMap<PathBuf, Format>> = HashMap::new();
    let mut lists: BTreeMap<PathBuf, (Format, BTreeSet<PathBuf>)> = BTreeMap::new();
    for file in files {
        let Some(file) = real(file) else { continue };
        for directory in file.ancestors().skip(1) {
            let known = by_directory.get(directory).cloned();
            let known = known.unwrap_or_else(|| lists_in(directory));
            for (list, format) in &known {
                let (_, files) = lists.entry(list.clone()).or_insert((*format, BTreeSet::new()));
                files.insert(file.clone());
            }
            by_directory.insert(directory.to_owned(), known);
        }
    }
    let records = lists.into_iter().filter_map(|(path, (format, files))| {
        match Record::read(path.clone(), format, &files) {
            Ok(record) => record,
            Err(error) => {
                report::warning(&format_args!("{}: {}", path.display(), report::reason(&error)));
                None
            }
        }
    });
    records.collect()
}

/// Returns these paths without links.
pub(crate) fn real_paths<'p>(files: impl IntoIterator<Item = &'p Path>) -> BTreeSet<PathBuf> {
    files.into_iter().filter_map(real).collect()
}

/// Returns the path without links; that of a file that is gone, too.
fn real(file: &Path) -> Option<PathBuf> {
    let parent = match file.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    Some(fs::canonicalize(parent).ok()?.join(file.file_name()?))
}

/// Returns the lists of files below a directory that lie in it.
fn lists_in(directory: &Path) -> BTreeMap<PathBuf, Format> {
    let entries = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let has_extension =
        |path: &Path, extension: &str| path.extension().is_some_and(|found| found == extension);
    let conda = entries(&directory.join("conda-meta"));
    let conda = conda.into_iter().filter(|path| has_extension(path, "json"));
    let python = entries(directory).into_iter().filter(|path| has_extension(path, "dist-info"));
    let python = python.map(|path| path.join("RECORD")).filter(|path| path.is_file());
    let python = python.map(|path| (path, Format::Python));
    python.chain(conda.map(|path| (path, Format::Conda))).collect()
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Record {
    /// Reads a list; `None` if it has none of the files.
    fn read(path: PathBuf, format: Format, wanted: &BTreeSet<PathBuf>) -> io::Result<Option<Self>> {
        let text = fs::read_to_string(&path)?;
        let name = match format {
            Format::Python => path.parent().and_then(Path::file_stem),
            Format::Conda => path.file_stem(),
        };
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        let mut record = Record { path, name, format, text, files: BTreeSet::new() };
        let base = record.base();
        let listed: Vec<PathBuf> = match format {
            Format::Python => {
                let rows = gpu_packages::Record::parse(record.text.as_bytes())?;
                rows.rows().map(|row| below(&base, &input::path(row.path()))).collect()
            }
            Format::Conda => {
                let listed = listed_by_conda(&record.text);
                listed.into_iter().map(|file| below(&base, Path::new(&file.path))).collect()
            }
        };
        record.files = listed.into_iter().filter(|path| wanted.contains(path)).collect();
        Ok((!record.files.is_empty()).then_some(record))
    }

    /// Returns whether it has this file, which is one of those in question.
    pub(crate) fn lists(&self, file: &Path) -> bool {
        real(file).is_some_and(|file| self.files.contains(&file))
    }

    /// Returns the directory that paths of the list are relative to.
    fn base(&self) -> PathBuf {
        self.path.ancestors().nth(2).unwrap_or(Path::new("")).to_owned()
    }

    /// Writes the list with the sizes and hashes that the files have now, and without those that are gone. Returns the number
    /// of files for which it was wrong.
    ///
    /// Files of which the size is right, and that are not among the `changed` ones, are not read.
    ///
    /// # Errors
    ///
    /// Those of reading and writing; a hash of an unknown kind.
    pub(crate) fn correct(&self, changed: &BTreeSet<PathBuf>) -> io::Result<usize> {
        let (text, count) = match self.format {
            Format::Python => self.corrected_rows(changed)?,
            Format::Conda => self.corrected_json(changed)?,
        };
        if count == 0 {
            return Ok(0);
        }
        let old = File::open(&self.path)?;
        let permissions = NewPermissions::of_input(&old.metadata()?);
        let how = How { new: permissions, replaces: Some(Stamp::of(&old)?) };
        let mut outputs = Outputs::default();
        outputs.write_new_or_print(&self.path, how, |out| out.write_all(text.as_bytes()))?;
        outputs.commit()?;
        Ok(count)
    }

    fn corrected_rows(&self, changed: &BTreeSet<PathBuf>) -> io::Result<(String, usize)> {
        let (base, mut count) = (self.base(), 0);
        let mut record = gpu_packages::Record::parse(self.text.as_bytes())?;
        let rows: Vec<(Vec<u8>, Option<u64>)> =
            record.rows().map(|row| (row.path().to_vec(), row.size())).collect();
        for (name, size) in rows {
            let path = below(&base, &input::path(&name));
            if !self.files.contains(&path) {
                continue;
            }
            let Ok(metadata) = fs::metadata(&path) else {
                record.remove(&name);
                count += 1;
                continue;
            };
            if changed.contains(&path) || size != Some(metadata.len()) {
                record
                    .replace(&name, metadata.len(), |algorithm| Ok(hashed(&path, algorithm)?.1))?;
                count += 1;
            }
        }
        let text = String::from_utf8(record.to_vec()).map_err(io::Error::other)?;
        Ok((text, count))
    }

    fn corrected_json(&self, changed: &BTreeSet<PathBuf>) -> io::Result<(String, usize)> {
        let (base, mut text, mut count) = (self.base(), self.text.clone(), 0);
        for listed in listed_by_conda(&self.text) {
            let path = below(&base, Path::new(&listed.path));
            let Some(size) = fs::metadata(&path).ok().filter(|_| self.files.contains(&path)) else {
                continue;
            };
            if !changed.contains(&path) && listed.size == Some(size.len()) {
                continue;
            }
            let (size, hash) = hashed(&path, Algorithm::Sha256)?;
            // Only these two values change, and the rest of the file keeps its bytes.
            let quoted = serde_json::to_string(&listed.path)?;
            let Some(object) = object_around(&text, &format!("\"_path\": {quoted}")) else {
                return Err(io::Error::other(format!("no entry of {quoted} in the usual form")));
            };
            let mut new = text.get(object.clone()).unwrap_or_default().to_owned();
            if let Some(old) = &listed.hash {
                let place = "\"sha256_in_prefix\": ";
                let (old, hash) =
                    (format!("{place}\"{old}\""), format!("{place}\"{}\"", hash.to_hex()));
                new = new.replacen(&old, &hash, 1);
            }
            if let Some(old) = listed.size {
                let place = "\"size_in_bytes\": ";
                new = new.replacen(&format!("{place}{old}"), &format!("{place}{size}"), 1);
            }
            count += usize::from(text.get(object.clone()) != Some(&new));
            text.replace_range(object, &new);
        }
        Ok((text, count))
    }
}

/// Returns a path below a directory, as the system spells it: parts that lead up and down again go.
fn below(base: &Path, path: &Path) -> PathBuf {
    let mut found = base.to_owned();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}

/// Returns size and hash of a file.
fn hashed(path: &Path, algorithm: Algorithm) -> io::Result<(u64, Hash)> {
    hash_reader(algorithm, &mut File::open(path)?)
}

/// Returns the files in a list of conda's.
fn listed_by_conda(text: &str) -> Vec<Listed> {
    let Ok(list) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let files = list.pointer("/paths_data/paths").and_then(Value::as_array);
    let listed = files.into_iter().flatten().filter_map(|file| {
        let hash = file.get("sha256_in_prefix").and_then(Value::as_str);
        Some(Listed {
            path: file.get("_path")?.as_str()?.to_owned(),
            hash: hash.map(str::to_owned),
            size: file.get("size_in_bytes").and_then(Value::as_u64),
        })
    });
    listed.collect()
}

/// Returns the range of the innermost object of JSON around this text, which has no objects in it.
fn object_around(json: &str, text: &str) -> Option<Range<usize>> {
    let at = json.find(text)?;
    let start = json.get(..at)?.rfind('{')?;
    let end = at + json.get(at..)?.find('}')? + 1;
    Some(start..end)
}
