"""Prints the architectures of each wheel, and checks a split: no host wheel has device code, and each device wheel has one GPU.

    python architectures.py dist/*.whl
    python architectures.py --split host.whl device-gfx942.whl device-gfx1100.whl

Wheels of ROCm are split into one without device code and one for each GPU; kernel packs and loose code objects count.
"""

from __future__ import annotations

import argparse
import collections
import sys

import offload


def architectures(wheel: str) -> dict[str, int]:
    """Returns the bytes of code for each target, as stored."""
    sizes: collections.Counter[str] = collections.Counter()
    for image in offload.images(wheel):
        if image.kind != "host" and image.size > 0:
            sizes[image.target or "(unnamed)"] += image.stored_estimate
    return dict(sizes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", nargs="+")
    parser.add_argument("--split", action="store_true", help="the first wheel is the host's, the others are for one GPU each")
    arguments = parser.parse_args()
    status = 0
    for number, wheel in enumerate(arguments.wheels):
        try:
            found = architectures(wheel)
        except (offload.OffloadError, OSError) as error:
            print(error, file=sys.stderr)
            status = 1
            continue
        print(f"{wheel}: {', '.join(f'{name} ({size:,} bytes)' for name, size in sorted(found.items())) or 'no device code'}")
        processors = {name.split(":")[0] for name in found}
        if arguments.split and len(processors) != (0 if number == 0 else 1):
            print(f"{wheel}: expected {'no GPU' if number == 0 else 'one GPU'}, found {len(processors)}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
