#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &str| oracles::ids::check_entry_ids(data));
