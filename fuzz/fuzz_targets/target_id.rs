#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &str| offload_fuzz::ids::check_targets(data));
