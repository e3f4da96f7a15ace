#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    offload_fuzz::faults::check(data);
    offload_fuzz::faults::check_model(data);
});
