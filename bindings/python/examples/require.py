"""Fails if a wheel lacks code for a GPU: a step of CI.

    python require.py --gpu sm_90 --gpu gfx942 dist/*.whl
"""

from __future__ import annotations

import argparse
import sys

import offload


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="append", required=True)
    parser.add_argument("wheels", nargs="+")
    arguments = parser.parse_args()
    status = 0
    for wheel in arguments.wheels:
        for gpu in arguments.gpu:
            try:
                answer = offload.match(wheel, gpu)
            except (offload.OffloadError, OSError) as error:
                print(error, file=sys.stderr)
                status = 1
                continue
            print(f"{wheel}: {gpu}: {answer.verdict}")
            if not answer:
                print(answer.reason, file=sys.stderr)
            for finding in answer.findings:
                print(f"{finding.level}: {finding.file or gpu}: {finding.message}", file=sys.stderr)
            if not answer or not answer.ok:
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
