"""See and edit the GPU code in any file: libraries, programs, wheels, packages, directories.

>>> import offload
>>> for image in offload.images("libfoo.so"):
...     print(image.target, image.size)
>>> offload.match("foo.whl", "RX 7600").verdict
'yes'
>>> offload.thin("foo.whl", "small.whl", keep=["gfx1102"])
>>> pyarrow.table(offload.scan(["a.whl", "b.whl"], kernels=True))

Rules and words are those of the command line tool ``offload``, which the same wheel installs. Sizes and offsets are in
bytes. Other threads run while a function works, and Ctrl-C interrupts it.
"""

from ._errors import (
    DamagedError,
    InternalError,
    NotReadError,
    OffloadError,
    RefusedError,
    UnknownGpuError,
    UrlError,
)
from ._offload import (
    Answer,
    Compression,
    Finding,
    Image,
    Images,
    Report,
    Scan,
    SourceResult,
    Verdict,
    __version__,
    images,
    match,
    scan,
    thin,
)

__all__ = [
    "Answer",
    "Compression",
    "DamagedError",
    "Finding",
    "Image",
    "Images",
    "InternalError",
    "NotReadError",
    "OffloadError",
    "RefusedError",
    "Report",
    "Scan",
    "SourceResult",
    "UnknownGpuError",
    "UrlError",
    "Verdict",
    "__version__",
    "images",
    "match",
    "scan",
    "thin",
]
