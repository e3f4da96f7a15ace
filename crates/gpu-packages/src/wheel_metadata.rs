//! Name, version and tags of a wheel, and the texts of wheels that belong to it.

use std::collections::HashSet;
use std::fmt;

use byte_parts::ReadSeek;

use crate::error::{Error, ErrorKind};
use crate::path::Shown;
use crate::text::fields;
use crate::wheel::{dist_info, read_member, within};
use crate::wheel_name::check_build;
use crate::zip::Zip;

/// The most bytes of `METADATA` and `WHEEL`.
const MOST_OF_TEXT: u64 = 16 << 20;

/// Name, version and tags of a wheel, as its metadata have them, whatever its file is called.
///
/// ```no_run
/// use std::fs::File;
/// use gpu_packages::{WheelMetadata, Zip};
///
/// let mut file = File::open("torch-2.10.0-cp313-cp313-linux_x86_64.whl")?;
/// let zip = Zip::read(&mut file)?;
/// let metadata = WheelMetadata::read(&zip, &mut file)?;
/// let name = format!("{}-device-gfx942", metadata.name());
/// assert_eq!(metadata.file_name(&name), "torch_device_gfx942-2.10.0-cp313-cp313-linux_x86_64.whl");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WheelMetadata {
    name: String,
    version: String,
    build: Option<String>,
    /// `PYTHON-ABI-PLATFORM`, at least one.
    tags: Vec<[String; 3]>,
    /// The tags in a file name.
    tag_set: String,
    /// The place and the bytes of `METADATA`.
    index: usize,
    text: Vec<u8>,
}

impl fmt::Debug for WheelMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WheelMetadata")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

impl WheelMetadata {
    /// Reads `METADATA` and `WHEEL`.
    ///
    /// # Errors
    ///
    /// [`NotAPackage`](ErrorKind::NotAPackage) unless the zip file has one `.dist-info` directory; [`Malformed`](ErrorKind::Malformed)
    /// if a file or a field is not there, a tag has not three parts, or a build tag is not one; [`Limit`](ErrorKind::Limit) for texts of more than 16 MiB;
    /// errors of [`Zip::open`].
    pub fn read(zip: &Zip, mut reader: impl ReadSeek) -> Result<Self, Error> {
        let directory = dist_info(zip).ok_or_else(|| {
            Error::new(ErrorKind::NotAPackage, "expected one .dist-info directory")
        })?;
        let mut read = |name: &str| {
            let path = within(directory, name);
            let named = |error: Error| error.while_reading(Shown(&path));
            let index = zip.find(&path).ok_or_else(|| {
                named(Error::new(ErrorKind::Malformed, "the wheel lacks this file"))
            })?;
            let text = read_member(zip, index, &mut reader, MOST_OF_TEXT).map_err(named)?;
            Ok::<_, Error>((index, text))
        };
        let ((index, text), (_, wheel)) = (read("METADATA")?, read("WHEEL")?);
        let malformed = |file: &str, what: String| {
            let error = Error::new(ErrorKind::Malformed, what);
            error.while_reading(Shown(&within(directory, file)))
        };
        let head = String::from_utf8_lossy(&text);
        let field = |name: &str| {
            let value = fields(&head, name).next().filter(|value| !value.is_empty());
            let value = value.filter(|value| !value.contains(['/', '\\']));
            value.map(str::to_owned).ok_or_else(|| {
                malformed("METADATA", format!("expected a field {name} without slashes"))
            })
        };
        let (name, version) = (field("Name")?, field("Version")?);
        let wheel = String::from_utf8_lossy(&wheel);
        let mut tags = Vec::new();
        for tag in fields(&wheel, "Tag") {
            let parts: Vec<String> = tag.split('-').map(str::to_owned).collect();
            let parts = <[String; 3]>::try_from(parts).ok().filter(|_| !tag.contains(['/', '\\']));
            tags.push(parts.ok_or_else(|| {
                let text = format!("expected a tag PYTHON-ABI-PLATFORM, found '{tag}'");
                malformed("WHEEL", text)
            })?);
        }
        if tags.is_empty() {
            return Err(malformed("WHEEL", "expected a field Tag".to_owned()));
        }
        let build = fields(&wheel, "Build").next().filter(|build| !build.is_empty());
        let build = build.map(str::to_owned);
        if let Some(build) = &build {
            check_build(build).map_err(|error| malformed("WHEEL", error.to_string()))?;
        }
        let tag_set = tag_set(&tags);
        Ok(WheelMetadata { name, version, build, tags, tag_set, index, text })
    }

    /// Returns the name of the distribution, as it is written there.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version of the distribution.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the index of the member `METADATA`.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the bytes of `METADATA`.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the directory `NAME-VERSION.dist-info` of a distribution with this name, and the version and the tags of this one.
    #[must_use]
    pub fn directory(&self, name: &str) -> String {
        format!("{}-{}.dist-info", escaped(name), escaped(&self.version))
    }

    /// Returns the file name of a wheel with this name, and the version, the build tag and the tags of this one. Several tags are one
    /// set (`py2.py3-none-any`) where they can be; otherwise the first one is there.
    #[must_use]
    pub fn file_name(&self, name: &str) -> String {
        let build = self.build.iter().map(|build| format!("-{build}")).collect::<String>();
        let (name, version) = (escaped(name), escaped(&self.version));
        format!("{name}-{version}{build}-{}.whl", self.tag_set)
    }

    /// Returns the text of the file `WHEEL` for a wheel with the tags of this one that is not pure Python.
    #[must_use]
    pub fn wheel_text(&self, generator: &str) -> String {
        let mut text =
            format!("Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: false\n");
        text.extend(self.build.iter().map(|build| format!("Build: {build}\n")));
        text.extend(self.tags.iter().map(|tag| format!("Tag: {}\n", tag.join("-"))));
        text
    }

    /// Returns `METADATA` with further lines at the end of its fields, before the description, with the line ends of the first line.
    ///
    /// ```
    /// # use std::io::Cursor;
    /// # use std::num::NonZeroUsize;
    /// # use gpu_packages::{NewWheel, WheelMetadata, Zip};
    /// # let mut wheel = NewWheel::new(Cursor::new(Vec::new()), "pkg-1.dist-info")?;
    /// # wheel.add_text("METADATA", "Name: pkg\nVersion: 1\n\nText.\n")?;
    /// # wheel.add_text("WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")?;
    /// # let bytes = wheel.finish()?.into_inner();
    /// # let metadata = WheelMetadata::read(&Zip::read(Cursor::new(&bytes))?, Cursor::new(&bytes))?;
    /// let text = metadata.with_lines(&["Provides-Extra: all".to_owned()]);
    /// assert_eq!(text, b"Name: pkg\nVersion: 1\nProvides-Extra: all\n\nText.\n");
    /// # Ok::<(), gpu_packages::Error>(())
    /// ```
    #[must_use]
    pub fn with_lines(&self, lines: &[String]) -> Vec<u8> {
        let (head, body) = self.text.split_at(self.head_len());
        let end: &[u8] =
            if head.split(|&byte| byte == b'\n').next().is_some_and(|line| line.ends_with(b"\r")) {
                b"\r\n"
            } else {
                b"\n"
            };
        let mut new = head.to_vec();
        if !new.is_empty() && !new.ends_with(b"\n") {
            new.extend_from_slice(end);
        }
        lines.iter().for_each(|line| new.extend([line.as_bytes(), end].concat()));
        new.extend_from_slice(body);
        new
    }

    /// Returns `METADATA` without the last lines of its fields that `is_left_out` says, the last one first; and the number of these
    /// lines.
    #[must_use]
    pub fn without_last_lines(
        &self,
        mut is_left_out: impl FnMut(&str) -> bool,
    ) -> (Vec<u8>, usize) {
        let (head, body) = self.text.split_at(self.head_len());
        let lines: Vec<&[u8]> = head.split_inclusive(|&byte| byte == b'\n').collect();
        let is_left_out = |line: &&&[u8]| {
            std::str::from_utf8(line).is_ok_and(|line| is_left_out(line.trim_end()))
        };
        let count = lines.iter().rev().take_while(is_left_out).count();
        let kept = lines.len() - count;
        let kept: Vec<u8> = lines.into_iter().take(kept).flatten().copied().collect();
        ([&*kept, body].concat(), count)
    }

    /// Returns the length of the fields, which a line without text ends.
    fn head_len(&self) -> usize {
        let lines = self.text.split_inclusive(|&byte| byte == b'\n');
        let is_field = |line: &&[u8]| !matches!(**line, [b'\n'] | [b'\r', b'\n']);
        lines.take_while(is_field).map(<[u8]>::len).sum()
    }
}

/// Returns the tags as one set where they can be; otherwise the first one.
fn tag_set(tags: &[[String; 3]]) -> String {
    let parts = |part: usize| {
        let mut seen = HashSet::new();
        let all = tags.iter().filter_map(|tag| tag.get(part)).map(String::as_str);
        all.filter(|tag| seen.insert(*tag)).collect::<Vec<_>>()
    };
    let [python, abi, platform] = [0, 1, 2].map(parts);
    let distinct: HashSet<_> = tags.iter().collect();
    let is_set = python.len() * abi.len() * platform.len() == distinct.len();
    match tags.first() {
        Some(first) if !is_set => first.join("-"),
        _ => [python, abi, platform].map(|part| part.join(".")).join("-"),
    }
}

/// Returns a part of a file name, in which `-` has a meaning.
fn escaped(part: &str) -> String {
    part.replace('-', "_")
}
