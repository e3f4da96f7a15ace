//! Names the shared library by the version of its binary interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // OFFLOAD_ABI_VERSION.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liboffload.so.1");
    }
}
