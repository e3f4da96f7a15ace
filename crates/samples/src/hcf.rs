//! HCF containers as AdaptiveCpp writes them.

/// The marker between the text and the images.
pub const MARKER: &str = "__hipsycl_hcf_binary_appendix";

/// An image, and the kernels that it provides.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Name of its node.
    pub node: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Names of its kernels.
    pub kernels: Vec<String>,
}

impl Sample {
    /// Creates an image.
    #[must_use]
    pub fn new(node: &str, bytes: &[u8], kernels: &[&str]) -> Self {
        let kernels = kernels.iter().map(|&name| name.to_owned()).collect();
        Sample { node: node.to_owned(), bytes: bytes.to_vec(), kernels }
    }

    /// Creates an image with the first bytes of LLVM bitcode, for all GPUs.
    #[must_use]
    pub fn bitcode(kernels: &[&str]) -> Self {
        Sample::new("llvm-ir.global", b"BC\xc0\xde\x35\x14\0\0bitcode of a module", kernels)
    }
}

/// Returns the text, without the marker.
#[must_use]
pub fn text(images: &[Sample]) -> String {
    let mut text = "object-id=12345678901234567890\ngenerator=hipSYCL SSCP\n{.images\n".to_owned();
    let mut start = 0;
    for Sample { node, bytes, .. } in images {
        let size = bytes.len();
        text += &format!(
            "{{.{node}\nvariant=global-module\nformat=llvm-ir\n\
             {{.__binary\nstart={start}\nsize={size}\n}}.__binary\n\
             {{.exported-symbols\n{{.symbol\n}}.symbol\n}}.exported-symbols\n}}.{node}\n"
        );
        start += size;
    }
    text += "}.images\n{.kernels\n";
    for Sample { node, kernels, .. } in images {
        for kernel in kernels {
            text += &format!(
                "{{.{kernel}\n{{.image-providers\n{{.{node}\n}}.{node}\n}}.image-providers\n\
                 {{.parameters\n{{.0\nbyte-offset=0\ntype=pointer\n}}.0\n}}.parameters\n}}.{kernel}\n"
            );
        }
    }
    text + "}.kernels\n"
}

/// Returns a container of these images.
#[must_use]
pub fn hcf(images: &[Sample]) -> Vec<u8> {
    let mut file = (text(images) + MARKER).into_bytes();
    images.iter().for_each(|image| file.extend(&image.bytes));
    file
}
