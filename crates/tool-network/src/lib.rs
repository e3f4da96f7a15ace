//! Files on web servers, as the tools read them: ranges over HTTP, within limits of bytes, requests and time.
//!
//! [`open`] asks for the first bytes of a file. With ranges, the file is a [`byte_parts::Ranges`]; without, a stream of the whole file.
//!
//! - Only `http` and `https`. Redirects are followed, at most ten, never from `https` to `http`, and not from a public host to an
//!   address of this machine or of a local network. A place that a server redirected to and that refuses later (401, 403, 410) is asked
//!   for again.
//! - A URL is printed without its query, which may be a secret. A user name in it is refused.
//! - Each answer is checked: its range, length, encoding, and that the file is the same as at the first request.
//! - Connections that break are tried again, three times in a row.
//! - Proxies come from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
//! - Certificates are checked against Mozilla's list, or the file that `SSL_CERT_FILE` names.
#![forbid(unsafe_code)]

mod answer;
mod client;
mod guard;
mod limits;
mod session;
mod url;

pub use answer::{Answer, Served, Version};
pub use client::{Contents, Counts, Remote, open};
pub use limits::Limits;
pub use url::Url;
