//! The work on one layer of an image: decisions about its files, and the new layer.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use device_select::LooseImage;
use fat_object::FileFormat;
use gpu_packages::{
    Algorithm, Error, FileHashes, Hasher, ImageLayer, LayerMembers, NewLayer, Original,
    Replacement, RewriteOptions, Unopened,
};

use crate::job::Job;
use crate::package::{new_bytes, text};
use crate::report::FileRow;
use crate::words::{explain, of_package as of};
use tool_inputs::image_files::ImageFile;
use tool_kit::failure::Failure;
use tool_kit::retried::Retried;
use tool_kit::store::{Keep, TOO_SMALL};

/// A layer with the decisions about its files.
pub(super) struct Looked {
    pub(super) members: LayerMembers,
    pub(super) files: Vec<Looking>,
    /// Packages in the layer, which are not looked into.
    pub(super) packages: Vec<usize>,
}

/// The decision about a file of a layer.
pub(super) struct Looking {
    pub(super) member: usize,
    /// The file before the edit.
    pub(super) old: FileHashes,
    pub(super) size: u64,
    pub(super) fate: Fate,
    /// The loose image that it is, if databases and loose images for other GPUs go.
    pub(super) loose: Option<LooseImage>,
}

/// The fate of a file of a layer.
pub(super) enum Fate {
    /// It is edited: its hashes after that if it changes, and its row in the report.
    Planned(Box<Result<(Option<FileHashes>, FileRow), Failure>>),
    /// It is a file of a kernel database that goes.
    Goes,
    /// It is not a file that is edited.
    Stays,
}

/// New contents of the members of a layer.
pub(super) enum New {
    /// The file is edited.
    Edited,
    /// A list with this text.
    List(Vec<u8>),
    /// The file goes.
    Removed,
}

impl Job<'_> {
    /// Looks into a layer. `name` comes before the paths of its files.
    pub(super) fn look(
        &self,
        (layer, file): (&ImageLayer, &ImageFile),
        name: &str,
    ) -> Result<Looked, Failure> {
        let looked = self.editor.keep.or_all(|keep| self.look_once((layer, file), name, keep))?;
        file.opened.check()?;
        Ok(looked)
    }

    fn look_once(
        &self,
        (layer, file): (&ImageLayer, &ImageFile),
        name: &str,
        keep: Keep<'_>,
    ) -> Result<Option<Looked>, Failure> {
        let options = self.editor.options.limits.for_package(file.size());
        let (mut files, mut packages) = (Vec::new(), Vec::new());
        let (mut is_too_small, mut stopped) = (false, None);
        let look = |member: usize, path: &[u8], original: &mut Original<'_>| {
            let path = text(path);
            let is_edited = FileFormat::sniff(original.head()).may_hold_code();
            let databases = self.editor.databases;
            let database = databases.and_then(|it| it.database(&path));
            let databases =
                databases.filter(|_| database.is_some() || LooseImage::may_start(original.head()));
            if !is_edited && databases.is_none() {
                let mut unopened = Unopened::default();
                unopened.note(&path, original.head());
                packages.extend((!unopened.packages.is_empty()).then_some(member));
                return Ok(());
            }
            let keep = if databases.is_some() { Keep::All } else { keep };
            let look = || -> Result<_, Failure> {
                let mut hashed = Hashed::new(original);
                let store = Arc::new(self.store(&[], &mut hashed, keep)?);
                let (old, size) = (hashed.finish(), store.size());
                let mut loose = None;
                if let Some(databases) = databases {
                    loose = databases.rule.loose(store.reader(), &self.walk())?;
                    if loose.is_none() && self.store_goes(database.as_ref(), &store)? {
                        return Ok(Looking { member, old, size, fate: Fate::Goes, loose });
                    }
                }
                if !is_edited {
                    return Ok(Looking { member, old, size, fate: Fate::Stays, loose });
                }
                let planned = self.plan_member((&format!("{name}:{path}"), ""), &store);
                let planned = planned.and_then(|(plan, row)| {
                    let Some(plan) = plan else { return Ok((None, row)) };
                    let mut new = Hashed::new(io::sink());
                    plan.write(store.reader(), &mut new)
                        .map_err(|error| explain(&error, self.editor.images))?;
                    Ok((Some(new.finish()), row))
                });
                is_too_small |= store.was_too_small();
                Ok(Looking { member, old, size, fate: Fate::Planned(Box::new(planned)), loose })
            };
            match look() {
                Ok(_) if is_too_small => return Err(Error::refused(TOO_SMALL)),
                Ok(file) => files.push(file),
                Err(failure) => {
                    stopped = Some(within(failure, &format!("{}:{path}", layer.file())));
                    return Err(Error::refused("a file cannot be read"));
                }
            }
            Ok(())
        };
        let reader = BufReader::with_capacity(1 << 16, file.reader());
        let members = layer.read(reader, file.size(), &options, look);
        if is_too_small {
            return Ok(None);
        }
        if let Some(failure) = stopped {
            return Err(failure);
        }
        Ok(Some(Looked { members: members.map_err(of)?, files, packages }))
    }

    /// Writes a layer again, with new contents of members. `of_output` names the output in an error of it.
    pub(super) fn write_layer(
        &self,
        (layer, file): (&ImageLayer, &ImageFile),
        new: &BTreeMap<usize, New>,
        (out, of_output): (&mut Retried<'_>, &OfOutput<'_>),
    ) -> Result<NewLayer, Failure> {
        let written = self.editor.keep.or_all(|keep| {
            out.restart()?;
            let out = Named { out: &mut *out, of_output };
            self.write_layer_once((layer, file), new, out, keep)
        })?;
        file.opened.check()?;
        Ok(written)
    }

    fn write_layer_once(
        &self,
        (layer, file): (&ImageLayer, &ImageFile),
        new: &BTreeMap<usize, New>,
        out: Named<'_, &mut Retried<'_>>,
        keep: Keep<'_>,
    ) -> Result<Option<NewLayer>, Failure> {
        let options = RewriteOptions::default()
            .with_level(self.editor.options.package_level)
            .with_threads(self.share.threads.count());
        let (mut stopped, mut is_too_small, mut status) = (None, false, None);
        let replace = |member: usize, path: &[u8], original: &mut Original<'_>| {
            match new.get(&member) {
                None => return Ok(None),
                Some(New::List(text)) => return Ok(Some(Replacement::from_bytes(text.clone()))),
                Some(New::Removed) => return Ok(Some(Replacement::removal())),
                Some(New::Edited) => {}
            }
            let mut edit = || -> Result<_, Failure> {
                let store = Arc::new(self.store(&[], original, keep)?);
                let planned = self.plan_member(("", ""), &store);
                is_too_small |= store.was_too_small();
                if is_too_small {
                    return Err(TOO_SMALL.to_owned().into());
                }
                let changed = || Failure::from("it was changed meanwhile".to_owned());
                let plan = planned?.0.ok_or_else(changed)?;
                let size = plan.size();
                let bytes = new_bytes(plan, Arc::clone(&store))?;
                status = Some((store, bytes.status(), text(path)));
                Ok(Replacement::new(size, bytes))
            };
            edit().map(Some).map_err(|failure| {
                stopped = Some(within(failure, &format!("{}:{}", layer.file(), text(path))));
                Error::refused("the edit of a file failed")
            })
        };
        let old = BufReader::with_capacity(1 << 16, file.reader());
        let out = BufWriter::with_capacity(1 << 16, out);
        let written = layer.rewrite(old, out, &options, replace);
        if is_too_small || status.as_ref().is_some_and(|(store, ..)| store.was_too_small()) {
            return Ok(None);
        }
        if let Some((_, status, path)) = status
            && let Some(error) = status.take_error()
        {
            let failure = explain(&error, self.editor.images);
            return Err(within(failure, &format!("{}:{path}", layer.file())));
        }
        if let Some(failure) = stopped {
            return Err(failure);
        }
        written.map(Some).map_err(of)
    }
}

/// Returns a failure about a member of a layer, with its name.
fn within(failure: Failure, name: &str) -> Failure {
    let named = |texts: Vec<String>| texts.iter().map(|text| format!(":{name}: {text}")).collect();
    match failure {
        Failure::Complaints(texts) => Failure::Complaints(named(texts)),
        Failure::Refused(texts) => Failure::Refused(named(texts)),
        failure => failure,
    }
}

/// Names the output in an error of it.
pub(super) type OfOutput<'o> = dyn Fn(io::Error) -> io::Error + Sync + 'o;

/// An output whose errors name it.
pub(super) struct Named<'o, W> {
    pub(super) out: W,
    pub(super) of_output: &'o OfOutput<'o>,
}

impl<W: Write> Write for Named<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => (self.of_output)(error),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(self.of_output)
    }
}

/// Bytes that are hashed while they are read or written, as lists of installed files have it.
struct Hashed<I> {
    inner: I,
    hashers: [Hasher; 2],
    size: u64,
}

impl<I> Hashed<I> {
    fn new(inner: I) -> Self {
        let hashers = [Algorithm::Sha256, Algorithm::Md5].map(Hasher::new);
        Hashed { inner, hashers, size: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.hashers.iter_mut().for_each(|hasher| hasher.update(bytes));
    }

    fn finish(self) -> FileHashes {
        FileHashes::of_hashes(self.size, self.hashers.map(Hasher::finish).into())
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.take(buf.get(..read).unwrap_or(&[]));
        Ok(read)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.take(bytes.get(..written).unwrap_or(&[]));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
