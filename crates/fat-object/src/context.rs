//! The state of a walk from one container to the next: its budgets, and its path.

use std::collections::HashMap;
use std::sync::Arc;

use bundle_format::EntryId;
use byte_parts::Budget;
use target_id::Target;

use crate::error::Error;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::options::Options;
use crate::source::{Origin, Source};

/// Names may share bytes, and one name may stand above many images: copies of them, and looking for their ends, must
/// not add up to a multiple of the file. Honest names come to less than twice the bytes around them. Walks of small
/// files are not bounded.
const NAMES_FOR_EACH_BYTE: u64 = 4;
const NAMES_AT_LEAST: u64 = 1 << 26;

/// Longer IDs are not kept for the next bundle: memory is for what is walked.
const REMEMBERED: usize = 4096;

/// Returns the limit on the size of names for a file of this many bytes.
pub(crate) fn names_of(len: u64) -> Budget {
    let mut names = Budget::new(NAMES_AT_LEAST);
    names.grow(len, NAMES_FOR_EACH_BYTE);
    names
}

/// The result of decompressing.
pub(crate) type Outcome = Result<ccob::Decompressed, ccob::Error>;

/// Gives what the compressed bundle at an offset of the file came to, if somebody else decompresses it.
pub(crate) type Ahead<'r> = Box<dyn FnMut(u64) -> Option<Outcome> + 'r>;

pub(crate) struct Context<'r> {
    pub(crate) options: Options,
    pub(crate) ahead: Option<Ahead<'r>>,
    path: Vec<PathStep>,
    /// The same, once somebody keeps it: neighbours share it.
    shared_path: Option<Arc<[PathStep]>>,
    compressions: Vec<Compression>,
    /// Bytes that are held beside the walked file.
    held: u64,
    /// Total of bytes decompressed, or copied out of bitcode.
    pub(crate) decompressed: Budget,
    /// Bytes of names and of strings of offload binaries.
    pub(crate) names: Budget,
    /// Bytes of the files that thin archives name: the limit, and the size of the files.
    pub(crate) thin_members: Budget,
    pub(crate) thin_size: u64,
    /// Host files that were not searched.
    pub(crate) unsearched: usize,
    /// `true` in such a file, at any depth.
    pub(crate) in_thin_member: bool,
    /// Containers entered so far.
    pub(crate) entered: usize,
    /// The IDs of a bundle without fault that came before.
    sound_ids: Vec<String>,
    /// The targets of earlier IDs.
    targets: HashMap<String, Arc<Target>>,
}

impl<'r> Context<'r> {
    /// Counts the most that can have been decompressed before an error: the work was done, up to the damage.
    pub(crate) fn spend_on_failure(
        &mut self,
        error: &ccob::Error,
        uncompressed_size: u64,
        stored: u64,
    ) {
        // A block of Zstandard that repeats one byte: 128 KiB in 4 bytes. No stream gives more than a number can hold.
        const MAX_EXPANSION: u64 = 32 << 10;
        let cost = match error.kind() {
            ccob::ErrorKind::Stream
            | ccob::ErrorKind::EndsEarly
            | ccob::ErrorKind::Output
            | ccob::ErrorKind::Hash => uncompressed_size.min(stored.saturating_mul(MAX_EXPANSION)),
            // Found in headers.
            _ => 0,
        };
        self.decompressed.spend(self.decompressed.left().min(cost));
    }

    pub(crate) fn new(options: &Options, ahead: Option<Ahead<'r>>, source: &Source<'_>) -> Self {
        let mut cx = Context {
            options: options.clone(),
            ahead,
            path: Vec::new(),
            shared_path: None,
            compressions: Vec::new(),
            held: 0,
            decompressed: Budget::new(options.max_decompressed),
            names: names_of(0),
            thin_members: Budget::new(options.max_thin_bytes),
            thin_size: 0,
            unsearched: 0,
            in_thin_member: false,
            entered: 0,
            sound_ids: Vec::new(),
            targets: HashMap::new(),
        };
        cx.add_file(source);
        cx
    }

    /// Returns the containers around, from outside in.
    pub(crate) fn path(&self) -> &[PathStep] {
        &self.path
    }

    pub(crate) fn shared_path(&mut self) -> Arc<[PathStep]> {
        Arc::clone(self.shared_path.get_or_insert_with(|| self.path.as_slice().into()))
    }

    pub(crate) fn push(&mut self, step: PathStep) {
        self.path.push(step);
        self.shared_path = None;
    }

    pub(crate) fn pop(&mut self) {
        self.path.pop();
        self.shared_path = None;
    }

    /// Counts the names of all containers around, because a visitor that keeps their path keeps these names too.
    pub(crate) fn take_path(&mut self) -> Result<(), Error> {
        self.take_names(self.path.iter().map(|step| step.name().len() as u64).sum())
    }

    pub(crate) fn take_names(&mut self, len: u64) -> Result<(), Error> {
        if self.names.take(len) { Ok(()) } else { Err(Error::too_many_names(self.names.limit())) }
    }

    /// Returns whether the walk is directly inside a container of this kind.
    pub(crate) fn directly_in(&self, kind: ContainerKind) -> bool {
        self.path.last().is_some_and(|step| step.kind() == kind)
    }

    /// Returns whether all containers around are archives and universal files.
    pub(crate) fn is_outside(&self) -> bool {
        let is_file = |kind| matches!(kind, ContainerKind::Member | ContainerKind::Slice);
        self.path.iter().all(|step| is_file(step.kind()))
    }

    /// Raises the limits for a file that is not made of other data.
    pub(crate) fn add_file(&mut self, source: &Source<'_>) {
        self.decompressed.grow(source.len(), self.options.max_expansion);
        self.add_bytes(source.len());
    }

    /// Allows for the names in this many new bytes.
    pub(crate) fn add_bytes(&mut self, len: u64) {
        self.names.grow(len, NAMES_FOR_EACH_BYTE);
    }

    /// Returns how many further bytes may be held.
    pub(crate) fn room(&self) -> u64 {
        // More may be held: headers state the sizes.
        self.options.max_held().saturating_sub(self.held)
    }

    /// Returns how many bytes may be made now: held, and counted among [all](Self::decompressed).
    pub(crate) fn decompression_budget(&self) -> u64 {
        self.room().min(self.decompressed.left())
    }

    /// Returns the room for data of this size, which is to be decompressed.
    pub(crate) fn room_for(&self, uncompressed_size: u64) -> Result<u64, Error> {
        let room = self.room();
        // Too much at a time is what the decoder says.
        if uncompressed_size <= room && uncompressed_size > self.decompressed.left() {
            let limit = self.decompressed.limit();
            return Err(Error::decompressed_in_all(uncompressed_size, limit));
        }
        Ok(room)
    }

    /// Counts bytes that are held until they are [released](Self::release), with the compression of their holder. Returns
    /// the bytes that were held before.
    pub(crate) fn hold(&mut self, bytes: u64, compression: Option<Compression>) -> u64 {
        // Headers state the sizes, which may be too large for a number in total.
        let held = self.held.saturating_add(bytes);
        self.compressions.extend(compression);
        std::mem::replace(&mut self.held, held)
    }

    /// Goes back to the bytes that were held before.
    pub(crate) fn release(&mut self, held_before: u64, compression: Option<Compression>) {
        self.held = held_before;
        if compression.is_some() {
            self.compressions.pop();
        }
    }

    /// Returns the compression of the innermost compressed container around.
    pub(crate) fn compression_around(&self) -> Option<Compression> {
        self.compressions.last().copied()
    }

    /// Returns whether the walk is in the bytes of the file itself and holds nothing: threads work ahead on these
    /// bytes.
    pub(crate) fn is_in_file(&self, source: &Source<'_>) -> bool {
        source.origin() == Origin::File && self.held == 0
    }

    /// Returns the violations of the rules of composition in a bundle of these IDs. Remembers the last sound IDs, as
    /// most bundles of a library have the same.
    pub(crate) fn composition(&mut self, ids: &[String]) -> Vec<bundle_format::CompositionFinding> {
        if self.sound_ids == ids {
            return Vec::new();
        }
        let found = bundle_format::composition(ids.iter().map(String::as_str));
        if found.is_empty() && ids.iter().map(String::len).sum::<usize>() < REMEMBERED {
            ids.clone_into(&mut self.sound_ids);
        }
        found
    }

    /// Returns the target of an ID. Remembers it, as a file has few different IDs.
    pub(crate) fn target_of(&mut self, id: &str) -> Arc<Target> {
        if let Some(target) = self.targets.get(id) {
            return Arc::clone(target);
        }
        let target = Arc::new(match EntryId::parse(id) {
            Ok(id) => id.target(),
            Err(_) => Target::new(None, None, id),
        });
        if self.targets.len() < 64 && id.len() < REMEMBERED {
            self.targets.insert(id.to_owned(), Arc::clone(&target));
        }
        target
    }
}
