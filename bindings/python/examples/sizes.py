"""Prints the bytes of device code by GPU, and the largest kernels.

    python sizes.py libfoo.so
"""

from __future__ import annotations

import collections
import sys

import offload


def main(path: str, most: int = 20) -> None:
    by_gpu: collections.Counter[str] = collections.Counter()
    stored: collections.Counter[str] = collections.Counter()
    kernels: collections.Counter[str] = collections.Counter()
    # The kernels of an image are read when they are asked for: the count says which images have some.
    for image in offload.images(path, kernels=True):
        name = f"{image.target or '-'} {image.image_format or ''}"
        by_gpu[name] += image.size
        stored[name] += image.stored_estimate
        if image.kernel_count:
            for kernel in image.kernels():
                kernels[str(kernel.get("demangled") or kernel["name"])] += int(kernel.get("code") or 0)
    for name, size in by_gpu.most_common():
        print(f"{size:14,} bytes, {stored[name]:14,} stored  {name}")
    for name, size in kernels.most_common(most):
        print(f"{size:14,} bytes  {name}")


if __name__ == "__main__":
    main(sys.argv[1])
