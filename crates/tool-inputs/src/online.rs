//! Files on web servers, by URL.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tool_kit::opened::{MaxInput, Opened};
use tool_kit::remote::is_url;

/// The options of commands that read files on servers.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Network {
    /// Read all members and all bytes of files on servers
    ///
    /// A FILE that starts with http:// or https:// is read from a server, in ranges: of a wheel or another zip file its directory
    /// and the members that may hold device code, by their names; of a library its headers and device sections. A note says what
    /// was not read. With this option, all is read, as of a local file.
    #[arg(long, hide_short_help = true)]
    scan: bool,
}

/// Requests to servers, and the bytes of contents that were received.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Received {
    /// Requests, redirected ones included.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The cost of a file on a server, and the part that was not read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note {
    /// The cost: `read 80.0 KiB of 1.2 MiB in 4 requests`.
    pub(crate) cost: String,
    /// The part that was not read; empty if all was.
    pub(crate) left_out: String,
}

/// A file on a server.
pub(crate) struct Online {
    url: String,
    #[cfg_attr(not(feature = "network"), allow(dead_code, reason = "nothing is read"))]
    network: Network,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The file, while somebody reads it.
    opened: Weak<Opened>,
    #[cfg(feature = "network")]
    counts: Option<tool_network::Counts>,
    note: Option<Note>,
    /// It is a library whose device code is in kernel packs.
    is_split: bool,
    /// It was read, and is not opened again.
    is_over: bool,
}

/// Prints it as a message does: the query may be a secret.
impl fmt::Debug for Online {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Online({})", self.name().display())
    }
}

/// Returns the name of a URL for messages and outputs: without its query, which may be a secret.
pub fn name_of_url(url: &str) -> PathBuf {
    Online::new(url, Network::default()).name()
}

impl Online {
    /// Returns the file that an argument names; `None` for a path.
    pub(crate) fn of_argument(argument: &Path, network: Network) -> Option<Arc<Self>> {
        let url = argument.to_str().filter(|_| is_url(argument))?;
        Some(Arc::new(Online::new(url, network)))
    }

    /// Creates a file on a server.
    pub(crate) fn new(url: &str, network: Network) -> Self {
        Online { url: url.to_owned(), network, state: Mutex::default() }
    }

    /// Returns the cost so far; `None` before the first answer.
    pub(crate) fn received(&self) -> Option<Received> {
        #[cfg(feature = "network")]
        if let Some(counts) = &self.state().counts {
            return Some(Received { requests: counts.requests(), bytes: counts.bytes() });
        }
        None
    }

    /// Returns the name for messages and outputs: the URL without its query, which may be a secret.
    pub(crate) fn name(&self) -> PathBuf {
        #[cfg(feature = "network")]
        if let Ok(url) = tool_network::Url::parse(&self.url) {
            return PathBuf::from(url.to_string());
        }
        let scheme = self.url.split_once("://").map_or("", |(scheme, _)| scheme);
        PathBuf::from(format!("{scheme}://..."))
    }

    /// Returns the place of the file: the URL without its query.
    pub(crate) fn place(&self) -> PathBuf {
        let url = self.url.split(['?', '#']).next();
        PathBuf::from(url.unwrap_or(&self.url))
    }

    /// Sets whether it is a library whose device code is in kernel packs.
    pub(crate) fn set_split(&self, is_split: bool) {
        self.state().is_split = is_split;
    }

    /// Returns the file, and asks for its first bytes if it is not open.
    pub(crate) fn open(&self, max: MaxInput) -> io::Result<Arc<Opened>> {
        let mut state = self.state();
        if let Some(opened) = state.opened.upgrade() {
            return Ok(opened);
        }
        if state.is_over {
            return Err(io::Error::other("the file on the server is not opened again"));
        }
        let opened = Arc::new(self.connect(&mut state, max)?);
        state.opened = Arc::downgrade(&opened);
        Ok(opened)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "network")]
    fn connect(&self, state: &mut State, max: MaxInput) -> io::Result<Opened> {
        use tool_kit::remote::Remote;
        use tool_network::{Contents, Limits, Url};

        let url = Url::parse(&self.url).map_err(io::Error::other)?;
        let limits = Limits::default().with_bytes(max.bytes());
        let tool_network::Remote { counts, contents } = tool_network::open(&url, &limits)?;
        state.counts = Some(counts);
        match contents {
            Contents::Ranges(ranges) => Opened::of_remote(Remote::new(ranges, self.network.scan)),
            Contents::Whole(mut stream) => Opened::of_server(&mut stream, max),
        }
    }

    #[cfg(not(feature = "network"))]
    fn connect(&self, _: &mut State, _: MaxInput) -> io::Result<Opened> {
        let text =
            "is a URL: expected a file, in a build without the feature network; download it first";
        Err(io::Error::other(text))
    }

    /// Makes the note about what was read.
    #[cfg(feature = "network")]
    pub(crate) fn end(&self, opened: &Opened) {
        use tool_kit::style::size;

        let mut state = self.state();
        state.is_over = true;
        let Some(counts) = &state.counts else { return };
        let (read, len) = (size(counts.bytes()), size(opened.len()));
        let requests = counts.requests();
        let requests = if requests == 1 { "1 request" } else { &format!("{requests} requests") };
        let whole = match opened.remote() {
            Some(_) => "",
            None => ": the server has no ranges",
        };
        let cost = format!("read {read} of {len} in {requests}{whole}");
        let mut left_out =
            opened.remote().map_or_else(String::new, tool_kit::remote::Remote::left_out);
        if state.is_split {
            let between = if left_out.is_empty() { "" } else { "; " };
            left_out = format!("{left_out}{between}kernel packs not looked for");
        }
        state.note = Some(Note { cost, left_out });
    }

    #[cfg(not(feature = "network"))]
    pub(crate) fn end(&self, _: &Opened) {}

    /// Takes the note about what was read.
    pub(crate) fn take_note(&self) -> Option<Note> {
        self.state().note.take()
    }
}
