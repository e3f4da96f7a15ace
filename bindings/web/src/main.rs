//! Writes the page: `offload-web-page MODULE.wasm PAGE.html`.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use device_report::{Front, write_front};
use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, page] = &arguments[..] else {
        eprintln!("offload-web-page: expected MODULE.wasm PAGE.html");
        return ExitCode::from(2);
    };
    match write(module, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("offload-web-page: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(module: &str, page: &str) -> io::Result<()> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&fs::read(module)?)?;
    let front = Front {
        title: "Which GPUs does this file serve?",
        body: include_str!("front/front.html"),
        style: include_str!("front/front.css"),
        script: concat!(include_str!("front/worker.js"), include_str!("front/front.js")),
        module: &packed.finish()?,
    };
    let mut out = BufWriter::new(File::create(page)?);
    write_front(&mut out, &front)?;
    out.flush()
}
