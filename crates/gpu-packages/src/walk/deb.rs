//! The walk over a Debian package.

use std::io::{self, Read};

use super::delivery::{check_name, finish};
use super::{HEAD, PackagePlace, Walker};
use crate::ar;
use crate::codec::Codec;
use crate::deb_parts::{DebParts, Role, codec_fault, format_fault};
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::member::{Member, MemberKind};
use crate::package::PackageKind;
use crate::reading::{read_full, read_part};
use crate::visitor::Sink;

impl Walker {
    /// Walks over a Debian package.
    pub(super) fn deb(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut magic = [0; ar::MAGIC.len()];
        read_full(reader, &mut magic)?;
        let mut at = magic.len() as u64;
        let mut parts = DebParts::default();
        while let Some(header) = ar::next_header(reader, at)? {
            let mut contents = Bounded { reader, left: header.size };
            let data_at = at + ar::HEADER as u64;
            let path = place.path.join(&header.name);
            let member = Member::new(path, PackageKind::Deb, MemberKind::File, header.size, at);
            let (role, fault) = parts.next(&header.name);
            let mut head = [0; HEAD];
            let head = &*read_full(&mut contents, &mut head)?;
            let other = match role {
                Role::Control(codec) | Role::Data(codec) => codec_fault(codec, Codec::sniff(head)),
                Role::Other if header.name == b"debian-binary" => format_fault(head),
                Role::Other => None,
            };
            for text in fault.into_iter().chain(other) {
                let error = Error::at(ErrorKind::Malformed, at, format!("deb: {text}"));
                sink.finding(member.finding(FindingKind::Ambiguous, error));
            }
            let mut whole = head.chain(&mut contents);
            match role {
                Role::Data(_) => {
                    let result = self.compressed_tar(&mut whole, PackageKind::Deb, place, sink);
                    finish(result, &member.path, sink)?;
                }
                Role::Control(_) => {
                    let inner = PackagePlace { path: place.path.join(b"control.tar"), ..*place };
                    let result = self.compressed_tar(&mut whole, PackageKind::Deb, &inner, sink);
                    finish(result, &member.path, sink)?;
                }
                Role::Other => {
                    check_name(&member, &header.name, sink);
                    self.file(&member, &mut whole, place, sink)?;
                }
            }
            io::copy(&mut contents, &mut io::sink())?;
            at = data_at + header.size;
            // Members start at even places.
            let padding = at % 2;
            io::copy(&mut reader.take(padding), &mut io::sink())?;
            at += padding;
        }
        if !parts.is_whole() {
            let text = "deb: expected control.tar and data.tar";
            let error = Error::at(ErrorKind::Malformed, at, text);
            let (path, kind) = (place.path.clone(), FindingKind::Unread);
            sink.finding(Finding { path, kind, error });
        }
        Ok(())
    }
}

/// A member of an archive: it must have all its bytes.
struct Bounded<'a, R: ?Sized> {
    reader: &'a mut R,
    left: u64,
}

impl<R: Read + ?Sized> Read for Bounded<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read_part(self.reader, &mut self.left, buf, |left| {
            let text = format!("deb: a member ends {left} bytes too early");
            Error::new(ErrorKind::Truncated, text)
        })
    }
}
