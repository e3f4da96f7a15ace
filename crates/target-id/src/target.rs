//! What a code object is for, or what somebody asks for: kind, triple and target ID.

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
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// The offload kind, unless left open.
    #[must_use]
    pub fn kind(&self) -> Option<&OffloadKind> {
        self.kind.as_ref()
    }

    /// Whether the kind is that of the host's own code, [`OffloadKind::Host`].
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == Some(OffloadKind::Host)
    }

    /// The triple, unless left open.
    #[must_use]
    pub fn triple(&self) -> Option<&Triple> {
        self.triple.as_ref()
    }

    /// The target ID as written, maybe empty.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The target ID, read as one of the triple if there is a triple.
    ///
    /// # Errors
    ///
    /// As [`TargetId::parse`] and [`TargetId::parse_for`];
    /// [`Error::EmptyProcessor`] if there is no target ID.
    pub fn target_id(&self) -> Result<TargetId, Error> {
        match &self.triple {
            Some(triple) => TargetId::parse_for(triple, &self.id),
            None => TargetId::parse(&self.id),
        }
    }
}

/// With kind and triple, the bundle entry ID as `clang-offload-bundler` writes it:
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
    fn displays_the_parts_there_are() {
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
    fn the_triple_decides_the_family() {
        let id = |triple, id| Target::new(None, Some(Triple::parse(triple)), id).target_id();
        assert_eq!(id("amdgcn-amd-amdhsa", "tahiti").unwrap().processor(), "gfx600");
        assert_eq!(id("nvptx64-nvidia-cuda", "tahiti").unwrap().processor(), "tahiti");
        assert_eq!(Target::new(None, None, "tahiti").target_id().unwrap().processor(), "gfx600");
        assert_eq!(Target::new(None, None, "").target_id(), Err(Error::EmptyProcessor));
    }
}
