//! Room for section headers, and the size of the new file's headers.

use byte_parts::Source;
use object::pe::IMAGE_DIRECTORY_ENTRY_SECURITY;

use super::file::{File, MOST_SECTIONS, Section};
use crate::error::{Error, ErrorKind};
use crate::pod::LE;

const HEADER_SIZE: u64 = size_of::<Section>() as u64;

/// Room for section headers.
pub(super) struct Headers {
    /// SizeOfHeaders of the new file.
    pub(super) size: u64,
    /// Section headers that can still be added.
    left: u64,
    larger: Option<Larger>,
}

/// Headers that end where the memory of sections starts, or where no section header can end.
struct Larger {
    size: u64,
    /// Section headers that can be added then, above those of [`Headers::left`].
    further: u64,
}

impl Headers {
    /// Returns the room in a file whose table has `joined` headers fewer than now.
    pub(super) fn find(source: &mut Source<'_>, file: &File, joined: usize) -> Result<Self, Error> {
        let size = u64::from(file.optional.size_of_headers.get(LE));
        let (table_end, in_file) = (file.table_end(), file.file_alignment());
        let table_end_without = table_end - joined as u64 * HEADER_SIZE;
        let zeros_end = zeros_end(source, file, size)?;
        let largest = (file.table_at() + MOST_SECTIONS as u64 * HEADER_SIZE)
            .next_multiple_of(in_file)
            .min(size.next_multiple_of(file.section_alignment()));
        let is_resizable = zeros_end == size && size.is_multiple_of(in_file) && size <= largest;
        // Linkers write the smallest size: if that has no room for the table, an earlier edit grew the headers.
        let smallest = table_end_without.next_multiple_of(in_file);
        let was_grown = joined > 0 && size == largest && smallest < table_end;
        let size = if is_resizable && was_grown { smallest } else { size };
        // The file has no more, or it would not have been read.
        let most = (MOST_SECTIONS - (file.sections.len() - joined)) as u64;
        let until = |end: u64| ((end - table_end_without) / HEADER_SIZE).min(most);
        let left = until(zeros_end.min(size).max(table_end_without));
        let larger = (is_resizable && size < largest)
            .then(|| Larger { size: largest, further: until(largest) - left });
        Ok(Headers { size, left, larger })
    }

    /// Takes room for a header, and grows the headers if there is none.
    pub(super) fn take(&mut self) -> Result<(), Error> {
        if self.left == 0 {
            self.grow();
        }
        let no_header = || Error::new(ErrorKind::Limit, "no room for another section header");
        self.left = self.left.checked_sub(1).ok_or_else(no_header)?;
        Ok(())
    }

    /// Returns how many headers of these gains, the largest first, there is room for. Grows the headers if that makes
    /// the file smaller.
    pub(super) fn take_for(&mut self, gains: &[u64]) -> usize {
        if let Some(larger) = &self.larger {
            let fits = |n: &u64| (self.left..self.left + larger.further).contains(n);
            let gains = gains.iter().zip(0..).filter(|(_, n)| fits(n));
            if gains.map(|(gain, _)| gain).sum::<u64>() > larger.size - self.size {
                self.grow();
            }
        }
        let taken = usize::try_from(self.left).map_or(gains.len(), |left| left.min(gains.len()));
        self.left -= taken as u64;
        taken
    }

    fn grow(&mut self) {
        if let Some(larger) = self.larger.take() {
            self.size = larger.size;
            self.left += larger.further;
        }
    }
}

/// Returns the end of the zeros after the section table: other data may lie in the headers, such as bound imports.
fn zeros_end(source: &mut Source<'_>, file: &File, size: u64) -> Result<u64, Error> {
    let in_file = file.sections.iter().filter(|section| section.size_of_raw_data.get(LE) > 0);
    let contents = in_file.map(|section| section.pointer_to_raw_data.get(LE));
    let mut directories = file.directories.clone();
    if IMAGE_DIRECTORY_ENTRY_SECURITY < directories.len() {
        directories.remove(IMAGE_DIRECTORY_ENTRY_SECURITY);
    }
    let tables = directories.iter().map(|directory| directory.virtual_address.get(LE));
    let others = contents.chain(tables).map(u64::from).filter(|&at| at >= file.table_end());
    let end = others.fold(size.min(file.len()), u64::min).max(file.table_end());
    let start = file.window.start;
    let zeros = source.skip_zeros(&(start + file.table_end()..start + end))?;
    Ok(zeros - start)
}
