//! Images that a runtime may choose.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::io::{self, Read};

use fat_object::{ContainerKind, Disagreement, FileFormat, Image};
use target_id::{NvidiaArch, OffloadKind, Target};

use crate::fit::{Code, is_metadata};
use crate::needs::{Need, needs};
use crate::vendor::Vendor;

/// An image and what decides whether a device loads it.
#[derive(Clone, Debug)]
pub struct Candidate {
    index: usize,
    target: Target,
    stored_id: String,
    id: Option<String>,
    format: FileFormat,
    size: u64,
    container: ContainerKind,
    /// Presence of machine code; `None` if it is not known.
    holds_code: Option<bool>,
    /// The contradiction between the target and the image.
    disagreement: Option<Disagreement>,
    /// Kernels that a table of SYCL's, or an HCF container, says are in it; `None` if there is neither.
    kernels: Option<Vec<String>>,
    /// IP versions of the GPUs that an archive of machine code of SYCL's is for.
    gpus: Option<Vec<String>>,
    needs: Vec<Need>,
    is_metadata: bool,
}

/// Returns the format of an image in a SYCLBIN of version 2, which is an offload binary, and the target that it states: a
/// length of 64 bits and as many bytes of properties stand before it (intel/llvm, SYCLBIN design document).
fn behind_properties(image: &mut Image<'_, '_>) -> io::Result<(FileFormat, Option<Target>)> {
    let size = image.size();
    let mut reader = image.reader();
    let mut length = [0; 8];
    if size < length.len() as u64 {
        return Ok((FileFormat::Unknown, None));
    }
    reader.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > size - 8 {
        return Ok((FileFormat::Unknown, None));
    }
    io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    let mut head = Vec::new();
    reader.take(HEAD).read_to_end(&mut head)?;
    let format = FileFormat::sniff(head.get(..FileFormat::SNIFF_LEN).unwrap_or(&head));
    Ok((format, fat_object::image_target(&head)))
}

/// The first bytes of an image that tell its target.
const HEAD: u64 = 64 << 10;

/// Returns the target that an entry states, completed by what its image states.
fn completed(stated: &Target, own: &Target, format: FileFormat) -> Target {
    let id = match (stated.id(), NvidiaArch::parse(own.id())) {
        // PTX is compiled for newer GPUs, too.
        ("", Ok(arch)) if format == FileFormat::Ptx => arch.as_ptx().to_string(),
        ("", _) => own.id().to_owned(),
        (id, _) => id.to_owned(),
    };
    Target::new(stated.kind().cloned(), stated.triple().or(own.triple()).cloned(), &id)
}

impl Candidate {
    /// Describes an image in a container by the target that its entry names: one byte, whose contents are unknown; none for [`FileFormat::Empty`].
    ///
    /// PTX is loaded as code for `compute_80` where its entry says `sm_80`: name the former.
    #[must_use]
    pub fn new(container: ContainerKind, target: Target, format: FileFormat) -> Self {
        Candidate {
            index: 0,
            stored_id: target.id().to_owned(),
            target,
            id: None,
            format,
            size: u64::from(format != FileFormat::Empty),
            container,
            holds_code: None,
            disagreement: None,
            kernels: None,
            gpus: None,
            needs: Vec::new(),
            is_metadata: false,
        }
    }

    /// Describes an image that is being walked.
    pub(crate) fn of(image: &mut Image<'_, '_>) -> io::Result<Self> {
        let role =
            image.offload_binary_entry().and_then(|entry| entry.get("role")).map(<[u8]>::to_vec);
        let stated = image.loaded_as().into_owned();
        let (format, target) = match role.as_deref() {
            Some(b"ir" | b"native") => {
                let (format, own) = behind_properties(image)?;
                (format, own.map(|own| completed(&stated, &own, format)).unwrap_or(stated))
            }
            _ => (image.format(), stated),
        };
        Ok(Candidate {
            is_metadata: is_metadata(image),
            holds_code: image.holds_code()?,
            kernels: match (image.sycl(), image.hcf()) {
                (Some(sycl), _) => Some(sycl.kernels().map(str::to_owned).collect()),
                (None, Some(hcf)) => Some(hcf.kernels().map(str::to_owned).collect()),
                (None, None) => None,
            },
            // Nothing is known of damaged ones.
            gpus: match image.sycl() {
                Some(_) => image.archived_gpus().unwrap_or_default(),
                None => None,
            },
            needs: needs(image),
            index: image.index(),
            target,
            stored_id: image.target().id().to_owned(),
            id: image.id().map(str::to_owned),
            format,
            size: image.size(),
            container: image.container(),
            disagreement: image.disagreement().cloned(),
        })
    }

    /// Sets whether it is known to hold machine code, or known to hold none.
    #[must_use]
    pub fn with_code(mut self, holds_code: bool) -> Self {
        self.holds_code = Some(holds_code);
        self
    }

    /// Returns the software that loads it, if that is [known](needs).
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Returns its position among all images of the file.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn set_index(&mut self, index: usize) {
        self.index = index;
    }

    /// Returns the target [as it is loaded](fat_object::ImageInfo::loaded_as), which decides whether it fits.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the target ID as the container has it; empty if it has none.
    #[must_use]
    pub fn stored_id(&self) -> &str {
        &self.stored_id
    }

    /// Returns the bundle entry ID.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns its format.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the kind of its container.
    #[must_use]
    pub fn container(&self) -> ContainerKind {
        self.container
    }

    /// Returns whether it holds machine code; `None` if its contents were not read.
    #[must_use]
    pub fn holds_code(&self) -> Option<bool> {
        self.holds_code
    }

    pub(crate) fn kernels(&self) -> Option<&[String]> {
        self.kernels.as_deref()
    }

    /// Returns the target of its code: its [label](Self::label), and the target it really holds if that differs.
    pub(crate) fn code_for(&self) -> Cow<'_, str> {
        match &self.disagreement {
            Some(other) => Cow::Owned(other.marked(self.label())),
            None => Cow::Borrowed(self.label()),
        }
    }

    /// Returns whether it describes other images, or is the SYCLBIN around them.
    pub(crate) fn is_metadata(&self) -> bool {
        self.is_metadata || self.format == FileFormat::Syclbin
    }

    /// Returns whether it is known to hold no kernel.
    pub(crate) fn is_empty(&self) -> bool {
        self.holds_code == Some(false)
    }

    pub(crate) fn is_host(&self) -> bool {
        self.target.kind() == Some(&OffloadKind::Host)
    }

    pub(crate) fn code(&self) -> Code<'_> {
        Code {
            target: Cow::Borrowed(&self.target),
            format: self.format,
            size: self.size,
            container: self.container,
            disagreement: self.disagreement.as_ref(),
            is_registered: self.kernels.is_some() && self.container != ContainerKind::Hcf,
            gpus: self.gpus.as_deref(),
            needs: Cow::Borrowed(&self.needs),
            is_metadata: self.is_metadata,
        }
    }

    /// Returns the vendor whose runtimes load it, if the container shows it.
    pub(crate) fn vendor(&self) -> Option<Vendor> {
        self.code().vendor()
    }

    /// Returns its name in tables: its target ID, else its triple or kind.
    #[must_use]
    pub fn label(&self) -> &str {
        self.target.label().unwrap_or("(unnamed)")
    }
}
