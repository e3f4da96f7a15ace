//! The members of the archive around a Debian package, as dpkg reads them.

use crate::codec::Codec;
use crate::path::Shown;
use crate::text::until;

/// Use of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The tar file of the records, compressed by this codec.
    Control(Codec),
    /// The tar file of the installed files, compressed by this codec.
    Data(Codec),
    /// Another member, which dpkg does not read.
    Other,
}

/// A check of the members in their order: `debian-binary`, `control.tar`, `data.tar`. dpkg reads nothing after these.
#[derive(Default)]
pub(crate) struct DebParts {
    has_format: bool,
    has_control: bool,
    has_data: bool,
}

/// Returns the codec of an extension.
fn codec(extension: &[u8], is_data: bool) -> Option<Codec> {
    match extension {
        b"" => Some(Codec::None),
        b".gz" => Some(Codec::Gzip),
        b".xz" => Some(Codec::Xz),
        b".zst" => Some(Codec::Zstd),
        b".bz2" if is_data => Some(Codec::Bzip2),
        _ => None,
    }
}

impl DebParts {
    /// Returns the use of the next member. The text says why dpkg refuses it, or does not read it although its name says
    /// so.
    pub(crate) fn next(&mut self, name: &[u8]) -> (Role, Option<String>) {
        if !self.has_format {
            self.has_format = true;
            let is_right = name == b"debian-binary";
            return (
                Role::Other,
                (!is_right).then(|| "expected debian-binary as first member".into()),
            );
        }
        if name.starts_with(b"_") {
            return (Role::Other, None);
        }
        let fault = |text: &str| (Role::Other, Some(text.to_owned()));
        let rest = [&b"control.tar"[..], b"data.tar"].map(|start| name.strip_prefix(start));
        match rest {
            [Some(_), _] if self.has_control => fault("dpkg reads one control.tar: expected one"),
            [Some(_), _] if self.has_data => fault("expected control.tar before data.tar"),
            [_, Some(_)] if self.has_data => fault("dpkg reads the first data.tar: expected one"),
            [Some(extension), _] => match codec(extension, false) {
                Some(codec) => {
                    self.has_control = true;
                    (Role::Control(codec), None)
                }
                None => fault("dpkg does not know the compression that its name says"),
            },
            [_, Some(extension)] => match codec(extension, true) {
                Some(codec) => {
                    self.has_data = true;
                    let text = "expected control.tar before data.tar".to_owned();
                    (Role::Data(codec), Some(text).filter(|_| !self.has_control))
                }
                None => fault("dpkg does not know the compression that its name says"),
            },
            _ if !self.has_data => {
                let name = Shown(name);
                let text = format!("expected control.tar and data.tar, found {name} before them");
                (Role::Other, Some(text))
            }
            _ => (Role::Other, None),
        }
    }

    /// Returns whether there were both tar files.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_control && self.has_data
    }
}

/// Returns what is wrong with the contents of `debian-binary`, by their first bytes.
pub(crate) fn format_fault(contents: &[u8]) -> Option<String> {
    let line = until(contents, |byte| matches!(byte, b'\n' | 0));
    let minor = line.strip_prefix(b"2.");
    let is_known =
        minor.is_some_and(|minor| !minor.is_empty() && minor.iter().all(u8::is_ascii_digit));
    (!is_known).then(|| format!("expected format 2.0, found {}", Shown(line)))
}

/// Returns what is wrong with the compression of a tar file.
pub(crate) fn codec_fault(expected: Codec, found: Codec) -> Option<String> {
    (expected != found).then(|| format!("its name says {expected}, its contents {found}"))
}
