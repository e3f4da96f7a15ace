//! Files, and questions about them.

use std::ffi::{c_char, c_void};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::ptr;

use device_files::{ImageRow, ImageVisitor, Options};
use device_select::Device;
use serde_json::to_value;

use crate::text::{bytes, terminated};
use crate::{OffloadAnswers, OffloadError, free, guarded, object};

/// Reads bytes of a file: at most `size` bytes from `offset` to `buffer`. Returns how many, at least 1 before the end of the file; 0 at
/// the end; a negative number if reading failed.
pub type OffloadRead = Option<
    unsafe extern "C" fn(context: *mut c_void, offset: u64, buffer: *mut u8, size: usize) -> i64,
>;

/// Takes the next bytes of an image; returns false if it cannot.
pub type OffloadWrite =
    Option<unsafe extern "C" fn(context: *mut c_void, data: *const u8, size: usize) -> bool>;

/// Returns whether the bytes of an image are wanted. `row` is its row in the list `images` of offload_list.
pub type OffloadChoose = Option<unsafe extern "C" fn(context: *mut c_void, row: usize) -> bool>;

/// Takes the next bytes of the image in a row of the list `images`; returns false if it cannot.
pub type OffloadTake = Option<
    unsafe extern "C" fn(context: *mut c_void, row: usize, data: *const u8, size: usize) -> bool,
>;

/// A file, or a package of files: wheel, zip, tar, deb, rpm, conda, container image.
pub struct OffloadFile {
    source: FileSource,
    options: Options,
}

impl std::fmt::Debug for OffloadFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OffloadFile").finish_non_exhaustive()
    }
}

#[derive(Clone)]
enum FileSource {
    Memory(Cursor<&'static [u8]>),
    Function(FunctionReader),
}

/// A file that a function of the caller reads.
#[derive(Clone)]
struct FunctionReader {
    read: unsafe extern "C" fn(*mut c_void, u64, *mut u8, usize) -> i64,
    context: *mut c_void,
    size: u64,
    at: u64,
}

impl Read for FunctionReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let buf = match buf.get_mut(..left) {
            _ if left == 0 => return Ok(0),
            Some(buf) => buf,
            None => buf,
        };
        // SAFETY: `offload_open_reader` requires a function that writes at most `size` bytes to the buffer.
        let read = unsafe { (self.read)(self.context, self.at, buf.as_mut_ptr(), buf.len()) };
        let read = usize::try_from(read).ok().filter(|&read| read <= buf.len());
        let read = read.ok_or_else(|| {
            io::Error::other(format!("the read function failed at byte {:#x}", self.at))
        })?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for FunctionReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (self.size, by),
        };
        let at = from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        self.at = at;
        Ok(at)
    }
}

impl Read for FileSource {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            FileSource::Memory(reader) => reader.read(buf),
            FileSource::Function(reader) => reader.read(buf),
        }
    }
}

impl Seek for FileSource {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            FileSource::Memory(reader) => reader.seek(to),
            FileSource::Function(reader) => reader.seek(to),
        }
    }
}

/// A writer of the caller.
struct FunctionWriter {
    write: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> bool,
    context: *mut c_void,
}

impl Write for FunctionWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        // SAFETY: `offload_extract` requires a function that takes these bytes.
        let is_taken = unsafe { (self.write)(self.context, buf.as_ptr(), buf.len()) };
        if is_taken { Ok(buf.len()) } else { Err(io::Error::other("the write function failed")) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A consumer of images of the caller.
struct FunctionTaker {
    choose: OffloadChoose,
    take: unsafe extern "C" fn(*mut c_void, usize, *const u8, usize) -> bool,
    context: *mut c_void,
}

impl ImageVisitor for FunctionTaker {
    fn wants(&mut self, row: usize, _: &ImageRow) -> bool {
        // SAFETY: `offload_extract_each` requires a function that may be asked.
        self.choose.is_none_or(|choose| unsafe { choose(self.context, row) })
    }

    fn bytes(&mut self, row: usize, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: `offload_extract_each` requires a function that takes these bytes.
        let is_taken = unsafe { (self.take)(self.context, row, bytes.as_ptr(), bytes.len()) };
        if is_taken { Ok(()) } else { Err(io::Error::other("the take function failed")) }
    }
}

fn new_file(source: FileSource) -> *mut OffloadFile {
    Box::into_raw(Box::new(OffloadFile { source, options: Options::default() }))
}

/// Opens a file in memory. Nothing is copied or looked at.
///
/// @param data The bytes of the file. They must stay as they are until the file is freed.
/// @param size The number of bytes.
/// @return To be freed with offload_file_free; NULL if `data` is NULL and `size` is not 0.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_open_memory(
    data: *const u8,
    size: usize,
    error: *mut *mut OffloadError,
) -> *mut OffloadFile {
    let work = || {
        if data.is_null() && size > 0 || isize::try_from(size).is_err() {
            return Err(OffloadError::argument("data: no bytes"));
        }
        // SAFETY: the bytes stay as they are until the file is freed, and nothing that is made of the file refers to them.
        let data = unsafe { bytes(data, size) };
        Ok(new_file(FileSource::Memory(Cursor::new(data))))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, ptr::null_mut(), work) }
}

/// Opens a file that a function reads. Nothing is read yet.
///
/// @param read The function. It is called in the threads that ask questions about the file.
/// @param context The first argument of the function. It must be valid until the file is freed.
/// @param size The size of the file, at most INT64_MAX. No byte after it is asked for.
/// @return To be freed with offload_file_free; NULL if `read` is NULL, or the size too large.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_open_reader(
    read: OffloadRead,
    context: *mut c_void,
    size: u64,
    error: *mut *mut OffloadError,
) -> *mut OffloadFile {
    let work = || {
        let read = read.ok_or_else(|| OffloadError::argument("read: no function"))?;
        if i64::try_from(size).is_err() {
            return Err(OffloadError::argument("size: expected at most INT64_MAX bytes"));
        }
        Ok(new_file(FileSource::Function(FunctionReader { read, context, size, at: 0 })))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, ptr::null_mut(), work) }
}

/// Frees a file. Answers about it stay.
///
/// @pre `file` is NULL, or from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_file_free(file: *mut OffloadFile) {
    // SAFETY: as the caller promises.
    unsafe { free(file) };
}

/// Lists the images of a file, or of all members of a package.
///
/// The lists: `images` (the fields of `offload ls --json`: `member`, `index`, `kind`, `triple`, `target`, `offset`, `size`, ...),
/// `files` (`member`, `size`, `format`, `images`) and `findings`, the faults (`code`, `level`, `member`, `offset`, `message`). A damaged file is
/// not an error: its sound parts are listed, and the others are findings.
///
/// @param file A file of this library, not freed.
/// @return To be freed with offload_answers_free; NULL if reading failed.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_list(
    file: *const OffloadFile,
    error: *mut *mut OffloadError,
) -> *mut OffloadAnswers {
    // SAFETY: as the caller promises.
    let file = unsafe { object(file) };
    let work = || {
        let file = file.ok_or_else(|| OffloadError::argument("file: null"))?;
        let listing = device_files::list(file.source.clone(), &file.options)?;
        OffloadAnswers::new(|| to_value(&listing))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, ptr::null_mut(), work) }
}

/// Lists the kernels of a file, or of all members of a package, with their resources.
///
/// The lists: `kernels` (the fields of `offload kernels --json`: `member`, `name`, `demangled`, `target`, `code`, `registers`, ...) and `findings`.
///
/// A file whose images are all for other GPUs, or which has none, has a finding that says so.
///
/// @param file A file of this library, not freed.
/// @param gpu A GPU, as for offload_match, for the images that it loads, generic code among them; NULL for all images.
/// @return To be freed with offload_answers_free; NULL if reading failed, or the GPU is not known.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_kernels(
    file: *const OffloadFile,
    gpu: *const c_char,
    error: *mut *mut OffloadError,
) -> *mut OffloadAnswers {
    // SAFETY: as the caller promises.
    let (file, name) = unsafe { (object(file), terminated(gpu)) };
    let work = || {
        let file = file.ok_or_else(|| OffloadError::argument("file: null"))?;
        let gpu = if gpu.is_null() { None } else { Some(device(name)?) };
        let kernels = device_files::kernels(file.source.clone(), &file.options, gpu.as_ref())?;
        OffloadAnswers::new(|| to_value(&kernels))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, ptr::null_mut(), work) }
}

/// Judges whether a file, or a package, has code for a GPU, by the rules of its runtime.
///
/// The lists: `verdicts` (`gpu`, `answer`: `yes`, `partly`, `unknown` or `no`, `message`; one row, or of an archive with several
/// container images one for each, with its name as `image`), `answers` about each container (the fields of `offload match --json`) and
/// `findings`. Where an error among these may have kept code from being seen, the answer is not `no`, but `unknown`. An archive of
/// container images is judged by the files that each sees.
///
/// @param file A file of this library, not freed.
/// @param gpu A target ID or the name of a product, ending with a zero: `gfx90a:xnack+`, `sm_90`, `RX 7600`.
/// @return To be freed with offload_answers_free; NULL if reading failed, or the GPU is not known.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_match(
    file: *const OffloadFile,
    gpu: *const c_char,
    error: *mut *mut OffloadError,
) -> *mut OffloadAnswers {
    // SAFETY: as the caller promises.
    let (file, gpu) = unsafe { (object(file), terminated(gpu)) };
    let work = || {
        let file = file.ok_or_else(|| OffloadError::argument("file: null"))?;
        let gpu = device(gpu)?;
        let verdicts = device_files::judge(file.source.clone(), &file.options, &[gpu])?;
        OffloadAnswers::new(|| to_value(&verdicts))
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, ptr::null_mut(), work) }
}

/// Hands the bytes of an image to a function, piece by piece, decompressed.
///
/// The first of several members of one name is meant. Cost: each call reads the package up to the image; of a zip file only its
/// directory and the member. For several images use offload_extract_each.
///
/// @param file A file of this library, not freed.
/// @param member The field `member` of the image, ending with a zero; empty for a file that is not a package.
/// @param index The field `index` of the image.
/// @param write The function.
/// @param context The first argument of the function.
/// @return false if the file has no such image, it is damaged, or a function failed: then some bytes may have been handed over.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_extract(
    file: *const OffloadFile,
    member: *const c_char,
    index: usize,
    write: OffloadWrite,
    context: *mut c_void,
    error: *mut *mut OffloadError,
) -> bool {
    // SAFETY: as the caller promises.
    let (file, member) = unsafe { (object(file), terminated(member)) };
    let work = || {
        let file = file.ok_or_else(|| OffloadError::argument("file: null"))?;
        let member = member.ok_or_else(|| OffloadError::argument("member: not UTF-8"))?;
        let write = write.ok_or_else(|| OffloadError::argument("write: no function"))?;
        let mut writer = FunctionWriter { write, context };
        device_files::copy_image(file.source.clone(), &file.options, (member, index), &mut writer)?;
        Ok(true)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, false, work) }
}

/// Hands the bytes of many images to a function, piece by piece, decompressed, in the order of the list `images` of offload_list.
///
/// The row in that list names an image, so members of one name are apart. Cost: as offload_list, and each file with wanted images
/// is read once more, up to the last of them; a compressed member is not decompressed again. An image without bytes is not handed over.
///
/// @param file A file of this library, not freed.
/// @param choose A function that is asked about each image; NULL if all are wanted. It is asked about all images of a member before
///   the bytes of the first come.
/// @param take The function that takes bytes.
/// @param context The first argument of both functions.
/// @return false at the first image that is damaged, or if a function failed: then some bytes of it may have been handed over.
///
/// @pre `error` is NULL, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_extract_each(
    file: *const OffloadFile,
    choose: OffloadChoose,
    take: OffloadTake,
    context: *mut c_void,
    error: *mut *mut OffloadError,
) -> bool {
    // SAFETY: as the caller promises.
    let file = unsafe { object(file) };
    let work = || {
        let file = file.ok_or_else(|| OffloadError::argument("file: null"))?;
        let take = take.ok_or_else(|| OffloadError::argument("take: no function"))?;
        let mut taker = FunctionTaker { choose, take, context };
        device_files::copy_images(file.source.clone(), &file.options, &mut taker)?;
        Ok(true)
    };
    // SAFETY: as the caller promises.
    unsafe { guarded(error, false, work) }
}

/// Reads the name of a GPU.
fn device(name: Option<&str>) -> Result<Device, OffloadError> {
    let name = name.ok_or_else(|| OffloadError::argument("gpu: null, or not UTF-8"))?;
    Device::parse(name).map_err(|error| OffloadError::argument(format!("gpu: {error}")))
}
