//! Text bundles, written again with the entries they keep and get.

use std::borrow::Cow;
use std::ops::Range;

use bundle_format::text::{TextBundle, to_vec};
use byte_parts::Source;
use object_edit::{Output, copy_of, of_bytes};

use crate::rebuild::{RebuildError, malformed};
use crate::wishes::{NewImages, Wish, Wishes};

/// Returns the text bundle that `range` is, with its entries as wished. Text outside of entries is removed, if
/// there is any. `None` if none are left.
pub(super) fn rebuild(
    source: &mut Source<'_>,
    range: &Range<u64>,
    wishes: &Wishes<'_>,
    images: &NewImages<'_>,
) -> Result<Option<Output>, RebuildError> {
    if wishes.are_none() {
        return Ok(Some(copy_of(range)));
    }
    let bytes = source.range(range)?;
    let bundle = TextBundle::parse(&bytes).map_err(malformed)?;
    if bundle.entries().len() != wishes.entries.len() {
        return Err(RebuildError::Changed);
    }
    let mut new = Vec::new();
    for (entry, wish) in bundle.entries().zip(&wishes.entries) {
        let content = match wish {
            Wish::Remove => continue,
            Wish::Keep => Cow::Borrowed(entry.payload()),
            Wish::Replace(image) => images.read(image)?.into(),
        };
        new.push((entry.id_str().map_err(malformed)?, content));
    }
    for (id, image) in &wishes.added {
        new.push((id, images.read(image)?.into()));
    }
    let new: Vec<(&str, &[u8])> = new.iter().map(|(id, content)| (*id, &content[..])).collect();
    if new.is_empty() {
        return Ok(None);
    }
    Ok(Some(of_bytes(to_vec(bundle.leader(), &new).map_err(malformed)?)))
}
