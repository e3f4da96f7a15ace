"""Functions that the scripts of this directory share: programs that are run, failures, downloads."""

import glob
import os
import subprocess
import sys
import tempfile

FAILURES = []


def say(text):
    print(text, flush=True)


def fail(text):
    """Notes that something is wrong, and goes on."""
    FAILURES.append(text)
    say(f"WRONG: {text}")


def run(*command, **options):
    """Runs a program, and returns how it ended and the texts that it printed."""
    return subprocess.run(command, **{"capture_output": True, "text": True, **options})


def must(*command, **options):
    """Runs a program that must succeed, and returns what it printed: bytes with `text=False`."""
    done = run(*command, **options)
    if done.returncode != 0:
        printed = (shown(part)[-2000:] for part in (done.stdout, done.stderr))
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}: {''.join(printed)}")
    return done.stdout


def shown(printed):
    return printed.decode(errors="replace") if isinstance(printed, bytes) else printed or ""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files_below(place):
    return [os.path.join(directory, name) for directory, _, names in sorted(os.walk(place)) for name in sorted(names)]


def cannot(error):
    """Ends the script: the machine, not the tools, keeps it from comparing."""
    print(f"cannot be downloaded: {error}", file=sys.stderr)
    sys.exit(3)


def chooser(names, known=()):
    """Returns a function that says whether one of its arguments contains one of the names, or there are none. Ends the script with
    status 2 for a name that none of the known texts contains, if there are known ones."""
    for name in names:
        if known and not any(name in text for text in known):
            print(f"'{name}': expected a part of one of {', '.join(known)}", file=sys.stderr)
            sys.exit(2)
    return lambda *texts: not names or any(name in text for name in names for text in texts)


def arguments():
    """Returns the directory of the tools, the first argument if it is one, and the names after it."""
    words = sys.argv[1:]
    directory = words.pop(0) if words and os.path.isdir(words[0]) else "target/debug"
    return os.path.abspath(directory), words


def pip(*words, python=None):
    where = ["--python", python] if python else []
    return must(sys.executable, "-m", "pip", "--disable-pip-version-check", *where, *words)


VERSIONS = ("1", "2010", "2014", "_2_17", "_2_24", "_2_27", "_2_28", "_2_34", "_2_35")


def of_python(version):
    """Returns the options of pip for wheels of a version of Python, on Linux."""
    words = [part for glibc in VERSIONS for part in ("--platform", f"manylinux{glibc}_x86_64")]
    return ["--no-deps", "--only-binary", ":all:", "--python-version", version, *words]


def download_wheel(package, python, place):
    """Downloads a wheel into a new directory, and returns its path."""
    directory = tempfile.mkdtemp(dir=place)
    pip("download", "--quiet", *of_python(python), "--dest", directory, package)
    (wheel,) = glob.glob(os.path.join(directory, "*.whl"))
    return wheel


def download_debs(packages, place):
    """Downloads Debian packages into a new directory, and returns their paths by name."""
    directory = tempfile.mkdtemp(dir=place)
    command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *packages]
    if run(*command, cwd=directory).returncode != 0:
        must("apt-get", "update", "-qq")
        must(*command, cwd=directory)
    return {package: glob.glob(os.path.join(directory, package + "_*.deb"))[0] for package in packages}
