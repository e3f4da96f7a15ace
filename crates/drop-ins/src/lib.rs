//! Tools in place of LLVM's, AMD's and NVIDIA's, with their words, options and exit status. Each binary is one call into this
//! library, which `offload` shares; its API is not stable.

#![forbid(unsafe_code)]

pub mod bundler;
pub mod drop_in;
pub mod fatbinary;
pub mod keep;
pub mod linker_wrapper;
pub mod llvm_cl;
pub mod manual;
pub mod packager;
pub mod roc_obj;
pub mod split_python_wheels;
pub mod wrapper;
