//! All tables of a file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;

use byte_parts::{Budget, Source};

use crate::records::records;
use crate::sycl_table::error::{Error, ErrorKind};
use crate::sycl_table::found::Tables;
use crate::sycl_table::memory::Memory;
use crate::sycl_table::reader::Reader;
use crate::sycl_table::wire::ImageSize;

impl Tables {
    /// Finds the tables of the host file in `window`, and reads them. An ELF or PE file of 64 bits, little-endian, can have
    /// some; for other files, and for files that are not linked, there are no images.
    ///
    /// `lists` are the sections `.tgtimg` of the file, in bytes from its start: addresses of images, and their sizes before
    /// compression. `names` bounds the bytes of names and values, of as many files as share it.
    ///
    /// ```
    /// use byte_parts::{Budget, Source};
    /// use fat_object::sycl_table::Tables;
    ///
    /// let file = b"not a linked file";
    /// let mut source = Source::of_bytes(file);
    /// let tables = Tables::read(&mut source, &(0..17), &[], &mut Budget::new(1 << 20))?;
    /// assert!(tables.images.is_empty() && tables.faults.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of reading. The [`faults`](Self::faults) are the errors in the file.
    pub fn read(
        source: &mut Source<'_>,
        window: &Range<u64>,
        lists: &[Range<u64>],
        names: &mut Budget,
    ) -> io::Result<Self> {
        let memory = Memory::read(source, window)?;
        let mut tables = Tables { images: Vec::new(), faults: Vec::new() };
        if let Some(found) = memory.unread
            && !lists.is_empty()
        {
            let message = format!(
                "tables of SYCL images are not read: expected a 64-bit little-endian ELF or PE file, found {found}"
            );
            tables.faults.push(Error::new(ErrorKind::Unsupported, message));
        }
        let len = window.end - window.start;
        let mut reader = Reader {
            source,
            memory: &memory,
            start: window.start,
            names,
            searched: Budget::new(len),
            // Without a limit for a file whose limit is too large for a number.
            records: Budget::new(len.saturating_mul(4).max(1 << 20)),
            texts: HashMap::new(),
            found: &mut tables,
        };
        reader.search(&memory.data)?;
        if reader.found.images.is_empty() {
            reader.search(&memory.constants)?;
        }
        tables.images.sort_by_key(|image| (image.range.start, image.range.end));
        tables.add_sizes(source, window, lists, &memory)?;
        // Each byte belongs to one image; tables may repeat some.
        let mut left = Budget::new(len);
        let images = tables.images.iter();
        let fitting = images.take_while(|image| left.take(image.range.end - image.range.start));
        let fitting = fitting.count();
        if fitting < tables.images.len() {
            tables.images.truncate(fitting);
            let message =
                format!("SYCL images overlap: they exceed the {len} bytes of the file in total");
            tables.faults.push(Error::new(ErrorKind::Limit, message));
        }
        Ok(tables)
    }

    /// Adds the sizes before compression that lists record, and the fault of images that no table describes.
    fn add_sizes(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        lists: &[Range<u64>],
        memory: &Memory,
    ) -> io::Result<()> {
        let mut sizes = HashMap::new();
        let mut undescribed = Vec::new();
        for list in lists {
            let Some(list) = memory.section(source, window, list)? else { continue };
            for slot in records::<ImageSize>(&list) {
                let (address, size) = (slot.address.get(), slot.size.get());
                if (address, size) == (0, 0) || sizes.insert(address, size).is_some() {
                    continue;
                }
                undescribed.push(address);
            }
        }
        for image in &mut self.images {
            image.uncompressed_size = sizes.get(&image.address).copied();
        }
        let described: HashSet<_> = self.images.iter().map(|image| image.address).collect();
        undescribed.retain(|address| !described.contains(address));
        if let Some(&address) = undescribed.first() {
            let count = undescribed.len();
            let message = format!(
                "section .tgtimg lists {count} SYCL images that no table describes, the first at address {address:#x}"
            );
            self.faults.push(Error::new(ErrorKind::Undescribed, message));
        }
        Ok(())
    }
}
