//! Wishes for one container.

use std::io::{self, Read as _, SeekFrom};

use fat_object::FileFormat;

use crate::SNIFF_LEN;
use crate::edit::NewImage;
use crate::error::Problem;

/// A new image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Incoming {
    /// The number of the image.
    pub(super) number: usize,
    /// Bytes.
    pub(super) size: u64,
    /// Its format, by its first bytes.
    pub(super) format: FileFormat,
}

/// Wish for an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wish {
    Keep,
    Remove,
    Replace(Incoming),
}

/// Wishes for the entries of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes<'e> {
    /// In their order, all of them.
    pub(super) entries: Vec<Wish>,
    /// New ones after them, by their bundle entry IDs.
    pub(super) added: Vec<(&'e str, Incoming)>,
}

impl Wishes<'_> {
    /// Returns whether there are no wishes.
    pub(super) fn are_none(&self) -> bool {
        self.added.is_empty() && self.entries.iter().all(|wish| *wish == Wish::Keep)
    }

    /// Returns whether they are certain to change something. An empty image can replace an empty one.
    pub(super) fn change_something(&self) -> bool {
        let changes = |wish: &Wish| match wish {
            Wish::Keep => false,
            Wish::Remove => true,
            Wish::Replace(image) => image.size > 0,
        };
        !self.added.is_empty() || self.entries.iter().any(changes)
    }

    pub(super) fn remove_any(&self) -> bool {
        self.entries.contains(&Wish::Remove)
    }
}

/// The new images.
pub(super) struct NewImages<'a> {
    pub(super) readers: &'a [NewImage],
    images: Vec<Incoming>,
    /// Their first bytes.
    heads: Vec<Vec<u8>>,
}

impl<'a> NewImages<'a> {
    pub(super) fn new(readers: &'a [NewImage]) -> io::Result<Self> {
        let mut images = Vec::new();
        let mut heads = Vec::new();
        for (number, reader) in readers.iter().enumerate() {
            let mut reader = reader.reader();
            let size = reader.seek(SeekFrom::End(0))?;
            reader.seek(SeekFrom::Start(0))?;
            let mut head = Vec::new();
            (&mut *reader).take(SNIFF_LEN as u64).read_to_end(&mut head)?;
            images.push(Incoming { number, size, format: FileFormat::sniff(&head) });
            heads.push(head);
        }
        Ok(NewImages { readers, images, heads })
    }

    pub(super) fn get(&self, number: usize) -> Result<Incoming, Problem> {
        let available = self.images.len();
        self.images.get(number).copied().ok_or_else(|| Problem::no_new_image(number, available))
    }

    /// Returns the first bytes of an image.
    pub(super) fn head(&self, image: &Incoming) -> &[u8] {
        self.heads.get(image.number).map_or(&[], |head| head)
    }

    /// Returns all bytes of an image.
    pub(super) fn read(&self, image: &Incoming) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(reader) = self.readers.get(image.number) {
            let mut reader = reader.reader();
            reader.seek(SeekFrom::Start(0))?;
            (&mut *reader).take(image.size).read_to_end(&mut bytes)?;
        }
        if bytes.len() as u64 == image.size {
            Ok(bytes)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}
