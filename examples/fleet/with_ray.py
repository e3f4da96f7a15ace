"""Scans a list of files with Ray Data: `python with_ray.py LIST OUT`, here or on the cluster of `RAY_ADDRESS`."""

import os
from pathlib import Path

import fleet
import ray


def main():
    args = fleet.arguments()
    work = fleet.work(args)
    if not work:
        return print("nothing is left")
    here = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": args.workers, "include_dashboard": False}
    ray.init(runtime_env={"py_modules": [str(Path(fleet.__file__))]}, logging_level="warning", **here)
    ray.data.DataContext.get_current().enable_progress_bars = False
    # A block for each part: a task whose worker dies is run again, and nothing else is.
    parts = ray.data.from_items(work, override_num_blocks=len(work))
    done = parts.map(fleet.scan_part, num_cpus=1, max_retries=-1)
    for part in done.iter_rows():
        print(f"{part['part']}: {part['done']} done, {part['failed']} failed", flush=True)


main()
