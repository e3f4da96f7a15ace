//! The target of an image in the words of `target-id`, with the feature of this name.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};

use target_id::{Target, Triple};

use crate::binary::Entry;
use crate::image_entry::ImageEntry;
use crate::kinds::OffloadKind;

impl Entry<'_> {
    /// Returns the target of the image: the [offload kind](Self::offload_kind), and the values of `triple` and `arch`.
    ///
    /// The kind is open for [`NONE`](OffloadKind::NONE), the triple where it is missing or empty. The target ID is empty
    /// without an `arch`. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// ```
    /// use offload_binary::{FormatVersion, ImageEntry, OffloadBinary};
    /// use target_id::{OffloadKind, Target, Triple};
    ///
    /// let triple = Triple::parse("amdgcn-amd-amdhsa");
    /// let target = Target::new(Some(OffloadKind::Hip), Some(triple), "gfx90a:xnack-");
    /// let entry = ImageEntry::new(5).with_target(&target).ok_or("not a kind of offload binaries")?;
    /// let bytes = offload_binary::layout(FormatVersion::V1, &[entry])?.to_vec(&[b"image"])?;
    ///
    /// for entry in OffloadBinary::parse(&bytes)?.entries() {
    ///     assert_eq!(entry.target(), target);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn target(&self) -> Target {
        // A missing value is empty.
        let text = |key| self.get(key).map(String::from_utf8_lossy).unwrap_or_default();
        let triple = Some(text("triple")).filter(|text| !text.is_empty());
        Target::new(
            self.offload_kind().to_target_id(),
            triple.map(|text| Triple::parse(&text)),
            &text("arch"),
        )
    }
}

impl<'a> ImageEntry<'a> {
    /// Sets the offload kind of `target`, and adds its target ID and triple as the values of `arch` and `triple`, in the
    /// order of LLVM 22. An open kind is [`NONE`](OffloadKind::NONE), an open triple is left out.
    ///
    /// `None` for a kind that [offload binaries have no number for](OffloadKind::from_target_id).
    #[must_use]
    pub fn with_target(mut self, target: &'a Target) -> Option<Self> {
        self.offload_kind = match target.kind() {
            Some(kind) => OffloadKind::from_target_id(kind)?,
            None => OffloadKind::NONE,
        };
        let triple = target.triple().map(Triple::offload_binary_form);
        let strings = [("arch", Some(target.id())), ("triple", triple)];
        self.strings.extend(strings.into_iter().filter_map(|(key, value)| {
            Some((Cow::Borrowed(key.as_bytes()), Cow::Borrowed(value?.as_bytes())))
        }));
        Some(self)
    }
}

impl OffloadKind {
    /// Returns the number for a kind of bundle entry IDs; `hip` and `hipv4` have one. `None` for the host and for unknown
    /// kinds: offload binaries have no images for them.
    ///
    /// ```
    /// use offload_binary::OffloadKind;
    ///
    /// let hip = OffloadKind::from_target_id(&target_id::OffloadKind::HipV4);
    /// assert_eq!(hip, Some(OffloadKind::HIP));
    /// ```
    #[must_use]
    pub fn from_target_id(kind: &target_id::OffloadKind) -> Option<Self> {
        use target_id::OffloadKind::{Cuda, Hip, HipV4, OpenMp, Sycl};

        Some(match kind {
            OpenMp => Self::OPENMP,
            Cuda => Self::CUDA,
            Hip | HipV4 => Self::HIP,
            Sycl => Self::SYCL,
            _ => return None,
        })
    }

    /// Returns the kind of bundle entry IDs: `hip` for HIP, though bundles have code objects from version 4 on as `hipv4`.
    /// An unknown number becomes its digits; `None` for [`NONE`](Self::NONE).
    #[must_use]
    pub(crate) fn to_target_id(self) -> Option<target_id::OffloadKind> {
        (self != Self::NONE).then(|| target_id::OffloadKind::parse(&self.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_convert_in_both_directions() {
        for number in 0..20 {
            let kind = OffloadKind(number);
            let text = kind.to_target_id();
            match kind.name() {
                None => assert_eq!(text, Some(target_id::OffloadKind::Other(number.to_string()))),
                Some("none") => assert_eq!(text, None),
                Some(_) => {
                    let back = text.and_then(|text| OffloadKind::from_target_id(&text));
                    assert_eq!(back, Some(kind.current()));
                }
            }
        }
        for text in ["host", "none", "16", ""] {
            assert_eq!(
                OffloadKind::from_target_id(&target_id::OffloadKind::parse(text)),
                None,
                "{text}"
            );
        }
    }
}
