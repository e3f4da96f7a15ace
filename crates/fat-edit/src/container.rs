//! Changes to one container.

use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::Source;
use ccob::{Header, Method, ReadOptions, Version, WriteOptions};
use fat_object::{BundleForm, Compression, ContainerKind, Error, PathStep};
use object_edit::{Input, Output, copy_of, is_copy_of, of_bytes, reader};
use offload_binary::FormatVersion;

use crate::compress::Job;
use crate::decompress::{Decompress, Stored};
use crate::edit::BundleEdit;
use crate::error::Problem;
use crate::inputs::Sources;
use crate::nv_fatbin::{self, Asked, Form};
use crate::offload_form::Treatment;
use crate::plan::Change;
use crate::planner::{Otherwise, Planner, Step};
use crate::rebuild::malformed;
use crate::survey::Node;
use crate::write::refused;
use crate::{binary, bundle, dispatch, text};

impl Otherwise {
    pub(super) fn unless_better(self, compressed: Vec<u8>) -> (Change, Output) {
        let change = match self {
            Otherwise::Smaller(change, plain) if compressed.len() as u64 >= plain.size() => {
                return (change, plain);
            }
            Otherwise::Smaller(..) => Change::Compressed,
            Otherwise::Always(change) => change,
        };
        (change, of_bytes(compressed))
    }
}

impl Planner<'_> {
    /// Plans the edit of a container. `alone` means that it lies in no section and has no neighbours.
    pub(super) fn container(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
        alone: bool,
    ) -> Result<Step, Problem> {
        if !self.touches(node) {
            return Ok(Step::Done(Change::Kept, copy_of(&node.range)));
        }
        match node.kind() {
            ContainerKind::Bundle => self.bundle(source, node, path),
            ContainerKind::Ccob => self.compressed_bundle(source, node, path, alone),
            ContainerKind::OffloadBinary => match node.compression {
                None => self.binary(source, node, path),
                Some(compression) => self.compressed_package(source, node, path, compression),
            },
            ContainerKind::NvFatbin => self.fatbinary(source, node, path),
            _ => Err(Problem::unsupported(path, "device code in containers of this kind")),
        }
    }

    fn bundle(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
    ) -> Result<Step, Problem> {
        let wishes = self.wishes(node);
        let empty = self.is_emptied(node, &wishes, path)?;
        let new = match self.form(node) {
            Some(BundleForm::Text(_)) => text::rebuild(source, &node.range, &wishes, &self.images),
            _ => bundle::rebuild(source, &node.range, &wishes, empty).map(Some),
        };
        let Some(new) = new.map_err(|error| error.of(node, path))? else {
            return Ok(Step::Removed);
        };
        let change = changed(&new, node);
        let BundleEdit::Compress(options) = self.bundle_edit(node) else {
            return Ok(Step::Done(change, new));
        };
        let data = self.bytes(source, &new)?;
        let job = Job {
            data,
            write: written(options.write.clone()),
            enough: None,
            is_offload_binary: false,
        };
        Ok(Step::Compress(job, Otherwise::Smaller(change, new)))
    }

    fn compressed_bundle(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
        alone: bool,
    ) -> Result<Step, Problem> {
        let damaged = |error: ccob::Error| Problem::damaged(path, node.location, error.into());
        let available = node.range.end - node.range.start;
        let header = Header::parse(&source.peek(&node.range, 32)?, available).map_err(damaged)?;
        let size = header.uncompressed_size();
        if size == 0 {
            // The survey finds fault with that.
            return Err(Problem::input_changed());
        }
        let edit = self.bundle_edit(node);
        let max = self.most_of(edit);
        if size > max {
            return Err(damaged(ccob::Error::too_large(size, max)));
        }
        let allow_findings = self.edit.options.allow_findings;
        let later = Decompress {
            stored: node.range.clone(),
            size,
            form: Stored::Bundle,
            alone,
            path: path.to_vec(),
            max,
            allow_findings,
        };
        let is_wished = self.is_wished(node);
        if let (BundleEdit::Decompress, false) = (edit, is_wished) {
            let plain = Output::from_input(self.derived_from(later), 0..size);
            return Ok(Step::Done(Change::Decompressed, plain));
        }
        if is_wished && node.children.is_empty() {
            let kind = "images of compressed bundles that the survey passed over";
            return Err(Problem::unsupported(path, kind));
        }

        let options = ReadOptions::default().with_max_decompressed(max);
        let options = options.with_verify_hash(!self.contents.verified && !allow_findings);
        let stored = source.range(&node.range)?;
        let data = ccob::decompress(&stored, &options).map_err(damaged)?.data;
        drop(stored);
        if node.children.is_empty() {
            later.check_contents(&data)?;
        }
        let data = Arc::new(data);
        let mut inner = Source::of_shared(Arc::clone(&data));
        let window = 0..inner.len();
        let new = self.containers(&mut inner, &node.children, path)?;
        let is_removed = !new.is_empty() && new.values().all(Option::is_none);
        let new = dispatch::file(self, &mut inner, &window, &node.children, path, &new)?;
        if is_removed {
            return Ok(Step::Removed);
        }
        let is_unchanged = is_copy_of(&new, &window);

        match edit {
            BundleEdit::Decompress => {
                later.check_kind(&self.head(&mut inner, &new)?)?;
                let splices = decompressed_later(self.derived_from(later), &new);
                Ok(Step::Done(Change::Decompressed, splices))
            }
            BundleEdit::Compress(options) if options.recompress => {
                let data = if is_unchanged {
                    drop(inner);
                    Arc::unwrap_or_clone(data)
                } else {
                    self.bytes(&mut inner, &new)?
                };
                let job = Job {
                    data,
                    write: written(options.write.clone()),
                    enough: None,
                    is_offload_binary: false,
                };
                Ok(Step::Compress(job, Otherwise::Always(Change::Recompressed)))
            }
            _ if is_unchanged => Ok(Step::Done(Change::Kept, copy_of(&node.range))),
            _ => {
                let data = self.bytes(&mut inner, &new)?;
                let is_smaller = new.size() < window.end;
                let options = WriteOptions::default()
                    .with_version(header.version())
                    .with_method(header.method());
                let enough = is_smaller.then_some(available);
                let job = Job { data, write: written(options), enough, is_offload_binary: false };
                Ok(Step::Compress(job, Otherwise::Always(Change::Edited)))
            }
        }
    }

    fn fatbinary(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
    ) -> Result<Step, Problem> {
        let wishes = self.wishes(node);
        let edit = self.bundle_edit(node);
        let form = match edit {
            BundleEdit::Keep => Form::Kept,
            BundleEdit::Decompress => Form::Plain,
            BundleEdit::Compress(options) => Form::compressed(options),
        };
        let max = self.most_of(edit);
        let allow_findings = self.edit.options.allow_findings;
        let derived = &mut self.derived;
        let mut later = |stored: Range<u64>, size: u64| {
            let (form, path) = (Stored::FatbinEntry, path.to_vec());
            derived.push(Decompress {
                stored,
                size,
                form,
                alone: false,
                path,
                max,
                allow_findings,
            });
            Input::Derived(derived.len() - 1)
        };
        let container = node.container.and_then(|index| self.contents.containers.get(index));
        let old_images = container.map_or(&[][..], |of| self.contents.images_in(of));
        let asked = Asked { wishes: &wishes, old_images, images: &self.images, form, max };
        let new = nv_fatbin::rebuild(source, &node.range, &asked, &mut later);
        let new = new.map_err(|error| error.of(node, path))?;
        let change = match form {
            _ if is_copy_of(&new, &node.range) => Change::Kept,
            Form::Kept => Change::Edited,
            Form::Plain => Change::Decompressed,
            Form::Compressed { again: false, .. } => Change::Compressed,
            Form::Compressed { again: true, .. } => Change::Recompressed,
        };
        Ok(Step::Done(change, new))
    }

    fn binary(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
    ) -> Result<Step, Problem> {
        let wishes = self.wishes(node);
        let new = binary::rebuild(source, &node.range, &wishes);
        // One of version 1 goes with its image.
        let Some(new) = new.map_err(|error| error.of(node, path))? else {
            return Ok(Step::Removed);
        };
        self.is_emptied(node, &wishes, path)?;
        let change = changed(&new, node);
        let BundleEdit::Compress(options) = self.bundle_edit(node) else {
            return Ok(Step::Done(change, new));
        };
        let treatment = self.editable(node).and_then(|old| old.treatment(options));
        let Some(treatment @ (Treatment::Compress | Treatment::Upgrade)) = treatment else {
            return Ok(Step::Done(change, new));
        };
        let mut data = self.bytes(source, &new)?;
        if treatment == Treatment::Upgrade {
            data = offload_binary::convert(&data, FormatVersion::V3)
                .map_err(|error| malformed(error).of(node, path))?;
        }
        let job = Job { data, write: options.write.clone(), enough: None, is_offload_binary: true };
        Ok(Step::Compress(job, Otherwise::Smaller(change, new)))
    }

    fn compressed_package(
        &mut self,
        source: &mut Source<'_>,
        node: &Node,
        path: &[PathStep],
        compression: Compression,
    ) -> Result<Step, Problem> {
        let size = compression.uncompressed_size();
        let edit = self.bundle_edit(node);
        let max = self.most_of(edit);
        if size > max {
            let error = ccob::Error::too_large(size, max);
            return Err(malformed(Error::of_offload_binary_stream(error)).of(node, path));
        }
        let later = Decompress {
            stored: node.range.clone(),
            size,
            form: Stored::OffloadBinary,
            alone: false,
            path: path.to_vec(),
            max,
            allow_findings: self.edit.options.allow_findings,
        };
        let is_wished = self.is_wished(node);
        let recompressed = match edit {
            BundleEdit::Decompress if !is_wished => {
                let plain = Output::from_input(self.derived_from(later), 0..size);
                return Ok(Step::Done(Change::Decompressed, plain));
            }
            BundleEdit::Compress(options) if options.recompress => Some(options.write.clone()),
            _ => None,
        };
        let data = later.read(source.reader()).map_err(refused)?;
        let mut inner = Source::of_bytes(&data);
        let window = 0..inner.len();
        let wishes = self.wishes(node);
        let new = binary::rebuild(&mut inner, &window, &wishes);
        let Some(new) = new.map_err(|error| error.of(node, path))? else {
            return Ok(Step::Removed);
        };
        self.is_emptied(node, &wishes, path)?;
        let (write, change, enough) = match recompressed {
            _ if matches!(edit, BundleEdit::Decompress) => {
                let plain = decompressed_later(self.derived_from(later), &new);
                return Ok(Step::Done(Change::Decompressed, plain));
            }
            Some(write) => (write, Change::Recompressed, None),
            None if is_copy_of(&new, &window) => {
                return Ok(Step::Done(Change::Kept, copy_of(&node.range)));
            }
            None => {
                let method =
                    if compression.method() == "zlib" { Method::ZLIB } else { Method::ZSTD };
                let stored = node.range.end - node.range.start;
                let enough = (new.size() < window.end).then_some(stored);
                (WriteOptions::default().with_method(method), Change::Edited, enough)
            }
        };
        let data = self.bytes(&mut inner, &new)?;
        let job = Job { data, write, enough, is_offload_binary: true };
        Ok(Step::Compress(job, Otherwise::Always(change)))
    }

    /// Returns the contents of the bundle, as an input that is decompressed only to be written.
    fn derived_from(&mut self, bundle: Decompress) -> Input {
        self.derived.push(bundle);
        Input::Derived(self.derived.len() - 1)
    }

    /// Returns the new bytes in memory.
    fn bytes(&mut self, source: &mut Source<'_>, new: &Output) -> Result<Vec<u8>, Problem> {
        let len = usize::try_from(new.size()).map_err(|_| out_of_memory())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| out_of_memory())?;
        let mut inputs = Sources::new(self.images.readers, &self.derived);
        reader(new, source.reader(), &mut inputs).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the first of the new bytes.
    fn head(&mut self, source: &mut Source<'_>, new: &Output) -> Result<Vec<u8>, Problem> {
        let head = new.slice(0..crate::SNIFF_LEN as u64);
        self.bytes(source, &head)
    }
}

fn out_of_memory() -> std::io::Error {
    std::io::ErrorKind::OutOfMemory.into()
}

fn changed(new: &Output, node: &Node) -> Change {
    if is_copy_of(new, &node.range) { Change::Kept } else { Change::Edited }
}

/// Returns these options with version 2 in the place of version 1, which does not record the end that runtimes need.
fn written(options: WriteOptions) -> WriteOptions {
    match options.version() {
        Version::V1 => options.with_version(Version::V2),
        _ => options,
    }
}

/// Returns the layout over the decompressed data, with its parts decompressed when they are written.
fn decompressed_later(data: Input, new: &Output) -> Output {
    new.resolved(|out, input, range| {
        out.push_input(if *input == Input::File { data } else { *input }, range);
    })
}
