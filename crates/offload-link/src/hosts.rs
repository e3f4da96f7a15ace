//! The host objects of a link, whose symbols are read when somebody asks.

use std::fmt;
use std::sync::OnceLock;

use byte_parts::Source;

use crate::symbols::{Names, Symbols};

/// An input, or a member of an archive, as the host linker sees it.
#[derive(Debug)]
pub(crate) struct Host<'d> {
    /// `a.o`, or `libb.a(x.o)`.
    pub(crate) name: String,
    pub(crate) is_lazy: bool,
    pub(crate) symbols: HostSymbols<'d>,
}

/// The symbols of a host object. Symbols of a file are read with it, so that it need not stay open.
#[derive(Debug)]
pub(crate) enum HostSymbols<'d> {
    Read(Symbols),
    Unread(Unread<'d>),
}

/// A host object in memory.
pub(crate) struct Unread<'d> {
    pub(crate) bytes: &'d [u8],
    /// `false` for a member of an archive.
    pub(crate) is_input: bool,
}

/// Prints the length only.
impl fmt::Debug for Unread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unread").field("len", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The host objects of a link in the order of the inputs, and the names of symbols that were read.
#[derive(Debug, Default)]
pub(crate) struct Hosts<'d> {
    pub(crate) list: Vec<Host<'d>>,
    pub(crate) names: Names,
    late: OnceLock<Late>,
}

/// Symbols that were read when somebody asked.
#[derive(Debug)]
struct Late {
    /// The names of all symbols. Names that were read with the inputs come first and keep their numbers.
    names: Names,
    /// The symbols of each object; none for an object whose symbols were read before.
    symbols: Vec<Option<Symbols>>,
}

impl<'d> Hosts<'d> {
    /// Adds the objects of another list. Returns the number of the first, and the numbers of names by their numbers there.
    pub(crate) fn append(&mut self, other: Hosts<'d>) -> (usize, Vec<usize>) {
        let numbers = self.names.join(&other.names);
        let first = self.list.len();
        for mut host in other.list {
            if let HostSymbols::Read(Symbols::Known(known)) = &mut host.symbols {
                known.renumber(&numbers);
            }
            self.list.push(host);
        }
        self.late = OnceLock::new();
        (first, numbers)
    }

    /// Returns the symbols of all objects, and their names. Reads the missing ones.
    pub(crate) fn symbols(&self) -> (Vec<&Symbols>, &Names) {
        let late = self.late.get_or_init(|| self.read());
        let both = self.list.iter().zip(&late.symbols);
        let symbols = both.map(|(host, late)| match (&host.symbols, late) {
            (HostSymbols::Read(symbols), _) | (HostSymbols::Unread(_), Some(symbols)) => symbols,
            (HostSymbols::Unread(_), None) => &Symbols::Unknown,
        });
        (symbols.collect(), &late.names)
    }

    fn read(&self) -> Late {
        let mut names = self.names.clone();
        let mut read = |unread: &Unread<'_>| {
            let mut source = Source::of_bytes(unread.bytes);
            let all = 0..source.len();
            let read = if unread.is_input {
                Symbols::read_input(&mut source, &mut names)
            } else {
                Symbols::read(&mut source, &all, &mut names)
            };
            // Memory that lacks is all that can fail.
            read.unwrap_or(Symbols::Unknown)
        };
        let symbols = self.list.iter().map(|host| match &host.symbols {
            HostSymbols::Read(_) => None,
            HostSymbols::Unread(unread) => Some(read(unread)),
        });
        let symbols = symbols.collect();
        Late { names, symbols }
    }
}
