//! The host objects of a link, and the numbers of symbols, which they get when a plan asks for them.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use byte_parts::Source;

use crate::symbols::{Known, Names, Symbols};

/// An input, or a member of an archive, as the host linker sees it.
#[derive(Debug)]
pub(crate) struct Host<'d> {
    /// `a.o`, or `libb.a(x.o)`.
    pub(crate) name: String,
    pub(crate) is_lazy: bool,
    pub(crate) symbols: UnnumberedSymbols<'d>,
}

/// The symbols of an object. Symbols of a file are read with it, so that it need not stay open.
#[derive(Debug)]
pub(crate) enum UnnumberedSymbols<'d> {
    Read(Symbols),
    Unread(Unread<'d>),
}

/// An object in memory.
#[derive(Clone, Copy)]
pub(crate) struct Unread<'d> {
    pub(crate) bytes: &'d [u8],
    /// `false` for a member of an archive, and for device code.
    pub(crate) is_input: bool,
}

/// Prints the length only.
impl fmt::Debug for Unread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unread").field("len", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The host objects of a link in the order of the inputs.
#[derive(Debug, Default)]
pub(crate) struct Hosts<'d> {
    pub(crate) list: Vec<Host<'d>>,
    numbered: OnceLock<NumberedSymbols>,
}

/// The symbols of objects, by numbers that they share.
#[derive(Debug)]
pub(crate) struct NumberedSymbols {
    pub(crate) names: Names,
    pub(crate) objects: Vec<Symbols<Known>>,
}

impl<'d> Hosts<'d> {
    /// Adds the objects of another list. Returns the number of the first.
    pub(crate) fn append(&mut self, other: Hosts<'d>) -> usize {
        let first = self.list.len();
        self.list.extend(other.list);
        self.numbered = OnceLock::new();
        first
    }

    /// Returns the symbols of all objects. Reads the missing ones.
    pub(crate) fn symbols(&self) -> &NumberedSymbols {
        let symbols = self.list.iter().map(|host| match &host.symbols {
            UnnumberedSymbols::Read(symbols) => Cow::Borrowed(symbols),
            UnnumberedSymbols::Unread(unread) => Cow::Owned(unread.read()),
        });
        self.numbered.get_or_init(|| NumberedSymbols::of(symbols))
    }
}

impl NumberedSymbols {
    /// Numbers the symbols of objects.
    pub(crate) fn of<'u>(objects: impl Iterator<Item = Cow<'u, Symbols>>) -> Self {
        let mut names = Names::default();
        let objects = objects.map(|symbols| symbols.number(&mut names)).collect();
        NumberedSymbols { names, objects }
    }
}

impl Unread<'_> {
    pub(crate) fn read(self) -> Symbols {
        let mut source = Source::of_bytes(self.bytes);
        let all = 0..source.len();
        let read = if self.is_input {
            Symbols::read_input(&mut source)
        } else {
            Symbols::read(&mut source, &all)
        };
        // Memory that lacks is all that can fail.
        read.unwrap_or(Symbols::Unknown)
    }
}
