//! The target of a code object or a request: kind, triple and target ID.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use crate::error::Error;
use crate::kind::OffloadKind;
use crate::target_id::TargetId;
use crate::triple::Triple;

/// The parts of a bundle entry ID. Kind and triple may be left open, as in a user's request
/// for `gfx90a:xnack+`; what is left open matches anything.
///
/// The target ID is kept as written, because LLVM's first rule compares texts, and because
/// it need not be valid. It is empty for targets without one, such as hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    kind: Option<OffloadKind>,
    triple: Option<Triple>,
    id: String,
}

impl Target {
    /// Puts the parts together. Nothing is checked.
    #[must_use]
    pub fn new(kind: Option<OffloadKind>, triple: Option<Triple>, id: &str) -> Self {
        Self { kind, triple, id: id.to_owned() }
    }

    /// Returns the target that a code object of AMD's names as text, in `amdhsa.target` of its metadata and in
    /// `.amdgcn_target` of its assembly. The form differs from release to release; all are read. `None` for other
    /// texts.
    ///
    /// ```
    /// use target_id::Target;
    ///
    /// for text in [
    ///     "amdgcn-amd-amdhsa--gfx90a:xnack+",          // LLVM 22
    ///     "amdgcn-amd-amdhsa-unknown-gfx90a:xnack+",   // LLVM 23
    ///     "amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack+", // LLVM 24
    /// ] {
    ///     assert_eq!(Target::from_isa_name(text).ok_or(text)?.id(), "gfx90a:xnack+");
    /// }
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn from_isa_name(text: &str) -> Option<Self> {
        // Names of processors may hold dashes, so what counts is the fourth.
        let (fourth, _) = text.match_indices('-').nth(3)?;
        let id = text.get(fourth + 1..).filter(|id| !id.is_empty())?;
        let triple = Triple::parse(text.get(..fourth)?);
        triple.is_amdgpu().then(|| Self::new(None, Some(triple), id))
    }

    /// Returns the offload kind, unless left open.
    #[must_use]
    pub fn kind(&self) -> Option<&OffloadKind> {
        self.kind.as_ref()
    }

    /// Returns whether the kind is [`OffloadKind::Host`], the host's own code.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == Some(OffloadKind::Host)
    }

    /// Returns the triple, unless left open.
    #[must_use]
    pub fn triple(&self) -> Option<&Triple> {
        self.triple.as_ref()
    }

    /// Returns the target ID as written, maybe empty.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns a short name for people: the target ID, else `host`, the triple without an empty environment,
    /// or the kind. `None` if it has none of these.
    ///
    /// ```
    /// use target_id::{OffloadKind, Target, Triple};
    ///
    /// let label = |id| Target::new(None, Some(Triple::parse("spir64-unknown-unknown-")), id);
    /// assert_eq!(label("gfx906").label(), Some("gfx906"));
    /// assert_eq!(label("").label(), Some("spir64-unknown-unknown"));
    /// assert_eq!(Target::new(Some(OffloadKind::Host), None, "").label(), Some("host"));
    /// ```
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        let kind = || self.kind.as_ref().map(OffloadKind::as_str);
        let named = |text: &&str| !text.is_empty();
        match &*self.id {
            "" if self.is_host() => Some("host"),
            "" => self.triple_text().or_else(kind).filter(named),
            id => Some(id),
        }
    }

    /// Returns the triple as people write it, without the empty environment that bundle entry IDs carry; `None` if it has none.
    #[must_use]
    pub fn triple_text(&self) -> Option<&str> {
        self.triple.as_ref().map(Triple::offload_binary_form).filter(|text| !text.is_empty())
    }

    /// Returns the target ID, read as one of the triple if there is a triple.
    ///
    /// # Errors
    ///
    /// Every [`ErrorKind`](crate::ErrorKind) except
    /// `NotNvidiaArch`; [`EmptyProcessor`](crate::ErrorKind::EmptyProcessor) also if there is no target ID.
    pub fn target_id(&self) -> Result<TargetId, Error> {
        match &self.triple {
            Some(triple) => TargetId::parse_for(triple, &self.id),
            None => TargetId::parse(&self.id),
        }
    }
}

/// The bundle entry ID, with kind and triple, as `clang-offload-bundler` writes it:
/// `<kind>-<triple>-<target id>`, the triple in [`bundle_form`](Triple::bundle_form), the
/// target ID as written. Parts left open are left out.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind}-")?;
        }
        if let Some(triple) = &self.triple {
            write!(f, "{}-", triple.bundle_form())?;
        }
        f.write_str(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn present_parts_are_displayed() {
        let kind = || Some(OffloadKind::Hip);
        let triple = || Some(Triple::parse("amdgcn-amd-amdhsa"));
        assert_eq!(
            Target::new(kind(), triple(), "gfx906").to_string(),
            "hip-amdgcn-amd-amdhsa--gfx906"
        );
        assert_eq!(Target::new(None, triple(), "gfx906").to_string(), "amdgcn-amd-amdhsa--gfx906");
        assert_eq!(Target::new(kind(), None, "gfx906").to_string(), "hip-gfx906");
        assert_eq!(Target::new(None, None, "gfx906").to_string(), "gfx906");
        let host = Target::new(
            Some(OffloadKind::Host),
            Some(Triple::parse("x86_64-unknown-linux-gnu")),
            "",
        );
        assert!(host.is_host() && !Target::new(kind(), triple(), "").is_host());
        assert_eq!(host.to_string(), "host-x86_64-unknown-linux-gnu-");
    }

    #[test]
    fn texts_of_code_objects_are_read() {
        for (text, triple, id) in [
            ("amdgcn-amd-amdhsa--gfx906", "amdgcn-amd-amdhsa-", "gfx906"),
            ("amdgcn-amd-amdhsa--gfx9-4-generic", "amdgcn-amd-amdhsa-", "gfx9-4-generic"),
            (
                "amdgcn-amd-amdhsa-unknown-gfx90a:xnack-",
                "amdgcn-amd-amdhsa-unknown",
                "gfx90a:xnack-",
            ),
            (
                "amdgpu12.50s-amd-amdhsa-unknown-gfx1250-strict:xnack-",
                "amdgpu12.50s-amd-amdhsa-unknown",
                "gfx1250-strict:xnack-",
            ),
        ] {
            let expected = Target::new(None, Some(Triple::parse(triple)), id);
            assert_eq!(Target::from_isa_name(text), Some(expected));
        }
        for text in
            ["", "gfx906", "amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--gfx906", "a-b-c-d-e"]
        {
            assert_eq!(Target::from_isa_name(text), None, "{text}");
        }
    }

    #[test]
    fn the_triple_decides_the_family() {
        let id = |triple, id| Target::new(None, Some(Triple::parse(triple)), id).target_id();
        assert_eq!(id("amdgcn-amd-amdhsa", "tahiti").unwrap().processor(), "gfx600");
        assert_eq!(id("nvptx64-nvidia-cuda", "tahiti").unwrap().processor(), "tahiti");
        assert_eq!(Target::new(None, None, "tahiti").target_id().unwrap().processor(), "gfx600");
        assert_eq!(Target::new(None, None, "").target_id(), TargetId::parse(""));
    }
}
