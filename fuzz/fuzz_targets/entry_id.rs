#![no_main]

libfuzzer_sys::fuzz_target!(|data: &str| offload_fuzz::ids::check_entry_ids(data));
