//! Errors of editing contents of sections.

use crate::error::{Error, ErrorKind};

impl Error {
    /// Creates the error of device code in another file.
    #[cold]
    pub(crate) fn moved_out(how: &str) -> Self {
        let message = format!("device code was moved out of this file ({how})");
        Self::new(ErrorKind::Refused, message)
    }

    /// Returns whether wrappers lead to another file. Nothing else is refused in reading them.
    pub(crate) fn is_moved_out(&self) -> bool {
        self.kind() == ErrorKind::Refused
    }

    #[cold]
    pub(crate) fn no_section_table() -> Self {
        let message = "no section headers: cannot tell what follows the device code";
        Self::new(ErrorKind::Unsupported, message)
    }

    #[cold]
    pub(crate) fn unsupported_elf(what: &str) -> Self {
        Self::new(ErrorKind::Unsupported, format!("unsupported ELF: {what}"))
    }

    #[cold]
    pub(crate) fn unsupported_pe(what: &str) -> Self {
        Self::new(ErrorKind::Unsupported, format!("unsupported PE: {what}"))
    }

    /// Creates the error of ELF program headers.
    #[cold]
    pub(crate) fn inconsistent_segments(what: &str) -> Self {
        Self::new(ErrorKind::Malformed, format!("inconsistent program headers: {what}"))
    }

    /// Creates the error of PE section headers.
    #[cold]
    pub(crate) fn inconsistent_sections(what: &str) -> Self {
        Self::new(ErrorKind::Malformed, format!("inconsistent section headers: {what}"))
    }

    #[cold]
    pub(crate) fn beyond_end(what: &str, start: u64, end: u64, available: u64) -> Self {
        let message = format!(
            "{what} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
        );
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn wrapper_target(wrapper: usize, address: u64, target: u64) -> Self {
        let message = format!(
            "wrapper {wrapper} at {address:#x}: points to {target:#x}, where no bundle starts"
        );
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn wrapper_section(address: u64, size: u64, what: &str) -> Self {
        Self::new(ErrorKind::Malformed, format!("wrappers at {address:#x}: {size} bytes, {what}"))
    }

    /// Creates the error of a pointer that cannot follow its bundle.
    #[cold]
    pub(crate) fn pointer_form(bundle: usize, address: u64, kind: u32) -> Self {
        let message = format!(
            "bundle {bundle} must move, but the relocation at {address:#x} has the unknown type {kind}"
        );
        Self::new(ErrorKind::Refused, message)
    }

    #[cold]
    pub(crate) fn foreign_reference(bundle: usize, address: u64) -> Self {
        let message = format!("bundle {bundle} must move, but {address:#x} may refer to it");
        Self::new(ErrorKind::Refused, message)
    }

    #[cold]
    pub(crate) fn no_wrapper(bundle: usize) -> Self {
        let message = format!("bundle {bundle} must move, but no wrapper leads to it");
        Self::new(ErrorKind::Refused, message)
    }

    #[cold]
    pub(crate) fn no_room(needed: u64, available: u64) -> Self {
        let message = format!(
            "needs {needed:#x} bytes, {available:#x} available; allow the file to grow to move it"
        );
        Self::new(ErrorKind::NoRoom, message)
    }

    #[cold]
    pub(crate) fn self_check(address: u64, what: &str) -> Self {
        let message = format!("self-check failed at address {address:#x}: {what}");
        Self::new(ErrorKind::Refused, message)
    }

    #[cold]
    pub(crate) fn relocation_place(section: u64, index: u64, place: u64) -> Self {
        let message = format!(
            "relocation {index} of section {section} applies to {place:#x}, outside of any contents"
        );
        Self::new(ErrorKind::Malformed, message)
    }

    #[cold]
    pub(crate) fn nothing_left() -> Self {
        Self::new(ErrorKind::NothingLeft, "no image would be left")
    }

    #[cold]
    pub(crate) fn no_device_code() -> Self {
        Self::new(ErrorKind::NoDeviceCode, "no device code found")
    }
}
