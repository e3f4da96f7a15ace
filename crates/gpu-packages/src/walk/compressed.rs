//! The walk over a compressed file: a tar file, or one that is its only member.

use std::io::{self, Read};

use super::delivery::{deliver, finish};
use super::{HEAD, PackagePlace, Walker};
use crate::codec::{Codec, Decoded, decoded};
use crate::error::Error;
use crate::member::{Member, MemberKind};
use crate::package::PackageKind;
use crate::path::MemberPath;
use crate::reading::given;
use crate::tar::{TarReader, is_tar};
use crate::visitor::Sink;

/// Compressed bytes that are read to see if they hold a tar file: more than a block of bzip2.
const PROBE: u64 = 2 << 20;

impl Walker {
    /// Walks over a compressed tar file, or a compressed file that the sink wants to enter. Others are members like others.
    pub(super) fn maybe_compressed(
        &self,
        codec: Codec,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut probed = head.to_vec();
        let mut start = Vec::new();
        let tee = Tee { reader: contents, log: &mut probed, left: PROBE };
        // The walk itself meets what is wrong after the first bytes.
        if let Ok(decoder) = codec.decoder(head.chain(tee)) {
            let _ = self.allowance.count(decoder).take(HEAD as u64).read_to_end(&mut start);
        }
        let kind = kind_of_contents(&start, &member.path, sink);
        let Some(kind) = kind.filter(|&kind| sink.package(&member.path, kind)) else {
            return deliver(member, &probed, contents, sink);
        };
        let decoder = codec.decoder(probed.chain(contents));
        let result = decoder.and_then(|reader| {
            let mut decoder = self.allowance.count(Decoded { reader, codec });
            self.stream(kind, &mut decoder as &mut dyn Read, inner, sink)
        });
        sink.leave(&result);
        finish(result, &member.path, sink)
    }

    /// Walks over a tar file that is a layer of another package.
    pub(super) fn compressed_tar(
        &self,
        reader: &mut dyn Read,
        package: PackageKind,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let decoder = decoded(reader)?;
        let place = &PackagePlace { at: None, ..place.clone() };
        if decoder.codec == Codec::None {
            return self.tar(TarReader::new(decoder), package, place, sink);
        }
        let mut decoder = self.allowance.count(decoder);
        self.tar(TarReader::new(&mut decoder as &mut dyn Read), package, place, sink)
    }

    /// Hands over the contents of a compressed file.
    pub(super) fn compressed(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (path, kind) = (place.path.join(b"contents"), MemberKind::File);
        let member = Member::new(path, PackageKind::Compressed, kind, 0, 0);
        self.file(&member, reader, place, sink)
    }
}

/// Returns the kind of a compressed file by the first bytes of its contents: `None` if the sink does not enter it.
pub(super) fn kind_of_contents(
    head: &[u8],
    path: &MemberPath,
    sink: &mut dyn Sink,
) -> Option<PackageKind> {
    if is_tar(head) {
        Some(PackageKind::Tar)
    } else {
        sink.compressed(path, head).then_some(PackageKind::Compressed)
    }
}

/// A reader that keeps what it reads.
struct Tee<'a> {
    reader: &'a mut dyn Read,
    log: &'a mut Vec<u8>,
    left: u64,
}

impl Read for Tee<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = Read::take(&mut *self.reader, self.left).read(buf)?;
        self.left -= read as u64;
        self.log.extend_from_slice(given(buf, read)?);
        Ok(read)
    }
}
