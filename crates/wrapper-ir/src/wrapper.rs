//! A wrapper: its images and options, and the description made of them.

use std::borrow::Cow;

use crate::OffloadKind;
use crate::abi::Abi;
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::object_format::ObjectFormat;
use crate::target::Target;

/// Describes registration code for device images.
///
/// ```
/// use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};
///
/// # fn main() -> Result<(), wrapper_ir::Error> {
/// let image = b"a device image";
/// let module = Wrapper::new(OffloadKind::OPENMP, Abi::Current, Target::new("x86_64-unknown-linux-gnu")?)
///     .with_image(Image::from_bytes(image))
///     .module()?;
/// let text = module.ir_to_string(&[image])?;
/// assert!(text.contains("call void @__tgt_register_lib(ptr @.omp_offloading.descriptor)"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Wrapper<'a> {
    pub(crate) kind: OffloadKind,
    pub(crate) abi: Abi,
    pub(crate) target: Target,
    pub(crate) images: Vec<Image<'a>>,
    pub(crate) options: Options<'a>,
}

/// The options of a [`Wrapper`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) retain: Option<bool>,
    pub(crate) image_align: Option<u64>,
    pub(crate) relocatable: bool,
    pub(crate) private_entries: Option<Cow<'a, str>>,
    pub(crate) weak_image_info: bool,
    pub(crate) llvm_code: bool,
    pub(crate) keep_packages: bool,
}

impl<'a> Wrapper<'a> {
    /// The kinds that there is registration code for: OpenMP with any number of images (`libomptarget`); CUDA and HIP
    /// with one fatbinary or bundle (`libcudart`, `libamdhip64`); SYCL with one offload binary of images (LLVM's SYCL
    /// runtime).
    pub const KINDS: [OffloadKind; 4] =
        [OffloadKind::OPENMP, OffloadKind::CUDA, OffloadKind::HIP, OffloadKind::SYCL];

    /// Creates a wrapper without images, for one of the [`KINDS`](Self::KINDS).
    #[must_use]
    pub fn new(kind: OffloadKind, abi: Abi, target: Target) -> Self {
        let kind = kind.current();
        Self { kind, abi, target, images: Vec::new(), options: Options::default() }
    }

    /// Appends an image.
    #[must_use]
    pub fn with_image(mut self, image: Image<'a>) -> Self {
        self.images.push(image);
        self
    }

    /// Appends images.
    #[must_use]
    pub fn with_images(mut self, images: impl IntoIterator<Item = Image<'a>>) -> Self {
        self.images.extend(images);
        self
    }

    /// Says that the linker keeps the entries of all host objects: they are in sections with
    /// `SHF_GNU_RETAIN`, or the program has none. The section of this module gets that flag too.
    ///
    /// By default the module does not claim this. `ld.lld --gc-sections` then fails to link it
    /// where no entry is retained, because entries that clang makes (up to release 24) are not:
    /// [`compiler_args`](crate::Module::compiler_args) has the arguments for them. With a wrong claim the link
    /// succeeds, and the program registers no kernel. LLVM 24's own modules always make it.
    ///
    /// [`Abi::Aomp`] and [`Abi::Llvm18`] have no section to flag.
    #[must_use]
    pub fn with_retain(mut self, retain: bool) -> Self {
        self.options.retain = Some(retain);
        self
    }

    /// Aligns images to `align` bytes, a power of two: up to 2³² in ELF, 8192 in COFF, 32768 in Mach-O. Otherwise
    /// to 8, for HIP to 4096.
    #[must_use]
    pub fn with_image_align(mut self, align: u64) -> Self {
        self.options.image_align = Some(align);
        self
    }

    /// Puts OpenMP images into `.llvm.offloading.relocatable`, so that they are not linked for
    /// the device again. Applies to generations that put them into `.llvm.offloading`.
    #[must_use]
    pub fn with_relocatable(mut self, relocatable: bool) -> Self {
        self.options.relocatable = relocatable;
        self
    }

    /// Registers the entries of a section of their own, whose name ends in `_` and `suffix`. The
    /// host objects have to have theirs there: [`Entries::with_private_entries`] puts them there,
    /// `clang-linker-wrapper -r` and `offload_link::RegisterOptions::host_object` rename it.
    ///
    /// [`Entries::with_private_entries`]: crate::Entries::with_private_entries
    #[must_use]
    pub fn with_private_entries(mut self, suffix: impl Into<Cow<'a, str>>) -> Self {
        self.options.private_entries = Some(suffix.into());
        self
    }

    /// Hands target IDs to AOMP's runtime only if it has the function for that, `__tgt_register_image_info`. Otherwise
    /// it is called as AOMP does; LLVM's own runtime, which has no such function, cannot be linked with.
    #[must_use]
    pub fn with_weak_image_info(mut self, weak: bool) -> Self {
        self.options.weak_image_info = weak;
        self
    }

    /// Makes the instructions of LLVM's modules where ours are better. It hands variables in managed memory to the CUDA
    /// runtime with six arguments, the signature of HIP's function; `__cudaRegisterManagedVar` has eight in CUDA's headers.
    /// And it reads 64-bit fields of entries as aligned to 4 bytes.
    #[must_use]
    pub fn with_llvm_code(mut self, llvm_code: bool) -> Self {
        self.options.llvm_code = llvm_code;
        self
    }

    /// Registers offload binaries as they are, unchecked, instead of the images in them.
    #[must_use]
    pub fn with_keep_packages(mut self, keep: bool) -> Self {
        self.options.keep_packages = keep;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let (kind, abi, format) = (self.kind, self.abi, self.target.format());
        if !is_supported(kind, abi, format) {
            return Err(Error::unsupported(abi, kind, format));
        }
        match (self.images.len(), kind) {
            (0, _) => {
                let text = format!("no device image to wrap for {kind}");
                return Err(Error::new(ErrorKind::Count, text));
            }
            (1, _) | (_, OffloadKind::OPENMP) => {}
            (found, _) => return Err(Error::single_image(kind, found)),
        }
        for (index, image) in self.images.iter().enumerate() {
            image.check(index, self.target.pointer_bits())?;
        }
        if abi != Abi::Aomp && self.images.iter().any(|image| image.target_id.is_some()) {
            let text =
                format!("abi {abi} does not register the target ids of images, only aomp does");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let limit = match format {
            ObjectFormat::Elf => 1 << 32, // LLVM's limit
            ObjectFormat::Coff => 1 << 13,
            ObjectFormat::MachO => 1 << 15,
        };
        if let Some(align) = self.options.image_align
            && !(align.is_power_of_two() && align <= limit)
        {
            return Err(Error::bad_align(align, limit));
        }
        if let Some(suffix) = &self.options.private_entries {
            check_suffix(suffix, format)?;
        }
        Ok(())
    }
}

/// Returns whether a private entries section can have this suffix.
pub(crate) fn check_suffix(suffix: &str, format: ObjectFormat) -> Result<(), Error> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if suffix.is_empty() || !suffix.bytes().all(valid) {
        let suffix = suffix.escape_debug();
        let text =
            format!("entries suffix \"{suffix}\" is not made of letters, digits and underscores");
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    if format != ObjectFormat::Elf {
        let text = format!("private entries need elf objects, the target has {format}");
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(())
}

/// Returns whether a release of LLVM has such code that works.
pub(crate) fn is_supported(kind: OffloadKind, abi: Abi, format: ObjectFormat) -> bool {
    let entries_on = match abi {
        Abi::Aomp => format == ObjectFormat::Elf,
        Abi::Llvm18 | Abi::Llvm19 | Abi::Llvm22 => format != ObjectFormat::MachO,
        Abi::Current | Abi::Llvm24 => true,
    };
    match kind {
        // Mach-O has no section of the name that images are put into.
        OffloadKind::OPENMP => entries_on && format != ObjectFormat::MachO,
        OffloadKind::CUDA | OffloadKind::HIP => entries_on && abi != Abi::Aomp,
        OffloadKind::SYCL => abi.has_common_entries() && format != ObjectFormat::MachO,
        _ => false,
    }
}

impl Abi {
    /// Returns the generation called `name`: `aomp`, `18`, `19`, `22`, `current` or `24`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownName`](crate::ErrorKind::UnknownName).
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|abi| abi.name() == name);
        named.ok_or_else(|| {
            let text = format!(
                "unknown wrapper abi \"{}\", expected aomp, 18, 19, 22, current or 24",
                name.escape_debug()
            );
            Error::new(ErrorKind::UnknownName, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapper(kind: OffloadKind, abi: Abi, triple: &str) -> Wrapper<'static> {
        Wrapper::new(kind, abi, Target::new(triple).unwrap())
    }

    const LINUX: &str = "x86_64-unknown-linux-gnu";
    const WINDOWS: &str = "x86_64-pc-windows-msvc";

    fn openmp(image: Image<'static>) -> Wrapper<'static> {
        wrapper(OffloadKind::OPENMP, Abi::Current, LINUX).with_image(image)
    }

    fn error(wrapper: &Wrapper<'_>) -> Error {
        wrapper.module().unwrap_err()
    }

    #[test]
    fn generations_have_names() {
        for abi in Abi::ALL {
            assert_eq!(Abi::from_name(abi.name()).unwrap(), abi);
        }
        let text = "unknown wrapper abi \"23\", expected aomp, 18, 19, 22, current or 24";
        assert_eq!(Abi::from_name("23").unwrap_err(), (ErrorKind::UnknownName, text));
    }

    #[test]
    fn unsupported_combinations_are_errors() {
        use ObjectFormat::{Coff, Elf, MachO};
        let image = || Image::from_bytes(b"x");
        for (kind, abi, triple, format) in [
            (OffloadKind::OPENMP, Abi::Current, "aarch64-apple-darwin", MachO),
            (OffloadKind::OPENMP, Abi::Aomp, WINDOWS, Coff),
            (OffloadKind::CUDA, Abi::Aomp, LINUX, Elf),
            (OffloadKind::HIP, Abi::Llvm19, "x86_64-apple-darwin", MachO),
            (OffloadKind::SYCL, Abi::Llvm19, LINUX, Elf),
        ] {
            let text =
                format!("abi {abi} has no registration code of kind {kind} for {format} objects");
            let wrapper = wrapper(kind, abi, triple).with_image(image());
            assert_eq!(error(&wrapper), (ErrorKind::Unsupported, &*text));
        }
        for kind in Wrapper::KINDS {
            let wrapper = wrapper(kind, Abi::Current, LINUX);
            let text = format!("no device image to wrap for {kind}");
            assert_eq!(error(&wrapper), (ErrorKind::Count, &*text));
            if kind != OffloadKind::OPENMP {
                let text = format!("{kind} registers exactly one device image, found 2");
                let several = wrapper.with_images([image(), image()]);
                assert_eq!(error(&several), (ErrorKind::SingleImage, &*text));
            }
        }
    }

    #[test]
    fn heads_must_match_their_images() {
        let short = openmp(Image::new(100, b"abc"));
        let short = error(&short);
        assert_eq!((short.kind(), short.image()), (ErrorKind::HeadTooShort, Some(0)));
        assert_eq!(short.head_needed(), Some(4));
        let long = openmp(Image::new(2, b"abc"));
        let text = "device image 0 has 2 bytes, less than its head of 3 bytes";
        assert_eq!(error(&long), (ErrorKind::Invalid, text));
        assert!(openmp(Image::new(3, b"abc")).module().is_ok());
    }

    #[test]
    fn an_image_too_large_for_the_address_space_is_an_error() {
        let narrow = wrapper(OffloadKind::OPENMP, Abi::Current, "i386-unknown-linux-gnu");
        let wrapper = narrow.with_image(Image::new(0x8000_0000, b"abcd"));
        let text = "device image 0 has 0x80000000 bytes, expected at most 0x7fffffff";
        assert_eq!(error(&wrapper), (ErrorKind::Limit, text));
        assert_eq!(error(&wrapper).image(), Some(0));
        assert!(openmp(Image::new(0x8000_0000, b"abcd")).module().is_ok());
    }

    #[test]
    fn target_ids_are_checked() {
        let image = Image::from_bytes(b"x");
        let named = image.clone().with_target_id("gfx90a");
        let text = "abi current does not register the target ids of images, only aomp does";
        assert_eq!(error(&openmp(named.clone())), (ErrorKind::Unsupported, text));
        let aomp = wrapper(OffloadKind::OPENMP, Abi::Aomp, LINUX);
        let text = "2 device images have 1 target ids, expected one each";
        let several = aomp.clone().with_images([named, image.clone()]);
        assert_eq!(error(&several), (ErrorKind::Count, text));
        for target_id in ["", "gfx90a\0"] {
            let wrapper = aomp.clone().with_image(image.clone().with_target_id(target_id));
            let target_id = target_id.escape_debug();
            let text = format!("device image 0 has the target id \"{target_id}\"");
            assert_eq!(error(&wrapper), (ErrorKind::Invalid, &*text));
            assert_eq!(error(&wrapper).image(), Some(0));
        }
    }

    #[test]
    fn malformed_alignments_are_errors() {
        let image = Image::from_bytes(b"x");
        for align in [0, 3, 1 << 33] {
            let wrapper = openmp(image.clone()).with_image_align(align);
            let text = format!(
                "device image alignment {align} is not a power of two from 1 to 4294967296"
            );
            assert_eq!(error(&wrapper), (ErrorKind::Invalid, &*text));
        }
        let coff = wrapper(OffloadKind::HIP, Abi::Current, WINDOWS).with_image(image);
        assert!(coff.clone().with_image_align(8192).module().is_ok());
        let error = error(&coff.with_image_align(16384));
        let text = "device image alignment 16384 is not a power of two from 1 to 8192";
        assert_eq!(error, (ErrorKind::Invalid, text));
    }

    #[test]
    fn private_entries() {
        let image = Image::from_bytes(b"x");
        for suffix in ["", "a.b", "a b", "\u{e4}"] {
            let wrapper = openmp(image.clone()).with_private_entries(suffix);
            let text = format!(
                "entries suffix \"{suffix}\" is not made of letters, digits and underscores"
            );
            assert_eq!(error(&wrapper), (ErrorKind::Invalid, &*text));
        }
        let coff = wrapper(OffloadKind::HIP, Abi::Current, WINDOWS).with_image(image.clone());
        let text = "private entries need elf objects, the target has coff";
        assert_eq!(error(&coff.with_private_entries("a")), (ErrorKind::Unsupported, text));

        let module = openmp(image).with_private_entries("1f").module().unwrap();
        let dummy = module.global("__dummy.llvm_offload_entries_1f").unwrap();
        assert_eq!(dummy.section.as_deref(), Some("llvm_offload_entries_1f"));
        assert!(module.global("__start_llvm_offload_entries_1f").is_some());
        assert!(module.global("__stop_llvm_offload_entries_1f").is_some());
    }

    #[test]
    fn entries_are_retained_on_request() {
        let image = Image::from_bytes(b"x");
        let module = openmp(image.clone()).with_retain(true).module().unwrap();
        assert!(module.retain && module.global("llvm.used").is_some());
        let module = openmp(image.clone()).module().unwrap();
        assert!(!module.retain && module.global("llvm.compiler.used").is_some());
        let newer = wrapper(OffloadKind::OPENMP, Abi::Llvm24, LINUX).with_image(image);
        assert!(!newer.module().unwrap().retain);
        assert!(newer.with_retain(true).module().unwrap().retain);
    }

    #[test]
    fn relocatable() {
        let wrapper = openmp(Image::from_bytes(b"x")).with_relocatable(true);
        let module = wrapper.module().unwrap();
        let section = module.global(".omp_offloading.device_image").unwrap().section.clone();
        assert_eq!(section.as_deref(), Some(".llvm.offloading.relocatable"));
    }
}
