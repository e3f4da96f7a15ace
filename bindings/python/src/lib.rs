//! The Python module `offload._offload`: the same libraries that the tool `offload` is made of. `python/offload` has what Python
//! programs import.
//!
//! No code here has a rule about device code of its own. `unsafe` is in code that the macros of `pyo3` generate.

#![deny(unsafe_code)]

mod answer;
mod argument;
mod fault;
mod image;
mod look;
mod source;
mod table;
mod thin;
mod value;
mod work;

use pyo3::prelude::*;
use tool_kit::temporary;

#[pymodule]
fn _offload(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Python has its own handlers.
    temporary::leave_signals();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<fault::Finding>()?;
    module.add_class::<image::Compression>()?;
    module.add_class::<image::Image>()?;
    module.add_class::<image::Images>()?;
    module.add_class::<answer::Answer>()?;
    module.add_class::<answer::Verdict>()?;
    module.add_class::<table::Scan>()?;
    module.add_class::<table::SourceResult>()?;
    module.add_class::<thin::Report>()?;
    module.add_function(wrap_pyfunction!(image::images, module)?)?;
    module.add_function(wrap_pyfunction!(answer::match_, module)?)?;
    module.add_function(wrap_pyfunction!(table::scan, module)?)?;
    module.add_function(wrap_pyfunction!(thin::thin, module)?)?;
    Ok(())
}
