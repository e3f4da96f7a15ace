//! The functions that the page calls, and the one that it has. Texts and answers pass through two buffers; a number of a function
//! is the size of the answer.

use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom};

use device_files::Fault;
use serde_json::{Value, json};

use crate::answers::{Dropped, products, report};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Reads at most `size` bytes of the file from `offset` to `buffer`. Returns how many; -1 if that fails.
    fn read(offset: f64, buffer: *mut u8, size: usize) -> i32;
}

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    name: String,
    size: u64,
    dropped: Dropped,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// The file that was dropped.
#[derive(Clone, Debug)]
struct Blob {
    size: u64,
    at: u64,
}

impl Read for Blob {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let size = buf.len().min(left);
        // Files of pages are smaller than 2^53 bytes.
        #[expect(clippy::cast_precision_loss, reason = "the size was such a number")]
        let offset = self.at as f64;
        // SAFETY: the page writes at most `size` bytes to the buffer, which has as many.
        let read = unsafe { read(offset, buf.as_mut_ptr(), size) };
        let read = usize::try_from(read).ok().filter(|&read| read <= size);
        let read = read.ok_or_else(|| {
            io::Error::other(format!(
                "the browser cannot read byte {:#x}: was the file changed?",
                self.at
            ))
        })?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Blob {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (self.size, by),
        };
        self.at = from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Answers with what `ask` makes of the state and the text that came in.
fn answer(ask: impl FnOnce(&mut State, &str) -> io::Result<Value>) -> usize {
    STATE.with_borrow_mut(|state| {
        let text = String::from_utf8_lossy(&std::mem::take(&mut state.input)).into_owned();
        let value = ask(state, &text).unwrap_or_else(|error| {
            let fault = Fault::of_io("", &error);
            json!({"error": fault.message, "offset": fault.offset})
        });
        state.output = value.to_string().into_bytes();
        state.output.len()
    })
}

/// Returns the place for a text of this size, for the next question.
#[unsafe(no_mangle)]
pub extern "C" fn input(size: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; size];
        state.input.as_mut_ptr()
    })
}

/// Returns the place of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// Reads the images of a file of this size, whose name is the text.
#[unsafe(no_mangle)]
pub extern "C" fn open(size: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size of the page"
    )]
    let size = size as u64;
    answer(|state, name| {
        *state = State { name: name.to_owned(), size, ..State::default() };
        state.dropped = Dropped::read(Blob { size, at: 0 })?;
        Ok(state.dropped.listing())
    })
}

/// Answers whether the file has code for the GPU that the text names.
#[unsafe(no_mangle)]
pub extern "C" fn judge() -> usize {
    answer(|state, gpu| Ok(state.dropped.judge(gpu)))
}

/// Makes the data of the report of the file.
#[unsafe(no_mangle)]
pub extern "C" fn account() -> usize {
    answer(|state, _| report(Blob { size: state.size, at: 0 }, &state.name))
}

/// Lists the products that a user may name.
#[unsafe(no_mangle)]
pub extern "C" fn gpus() -> usize {
    answer(|_, _| Ok(products()))
}
