"""Builds the wheels of one platform into dist/: one for the stable ABI, and one for free-threaded CPython.

python scripts/build_wheels.py                                            # for this machine, with its own linker
python scripts/build_wheels.py --target aarch64-unknown-linux-gnu         # manylinux2014, linked by Zig
python scripts/build_wheels.py --target aarch64-unknown-linux-musl        # musllinux_1_2, linked by Zig

Zig brings the symbols of every glibc, so a wheel for any Linux is built on any other and needs no container. Needs
maturin, for Linux ziglang too, and the target (`rustup target add TARGET`). maturin knows the layout of free-threaded
CPython, so it need not be installed. No wheel may name a folder of the machine that built it: paths in panics are
remapped, and each wheel is searched for those that are left.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO_HOME = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
FREE_THREADED = "3.14t"


def rust_flags() -> str:
    """Flags that keep the folders of this machine out of the binary, as CARGO_ENCODED_RUSTFLAGS wants them."""
    remapped = {CARGO_HOME / "registry" / "src": "crates", CARGO_HOME: "cargo", ROOT: "ggtok"}
    # rustc takes the last prefix that fits.
    flags = [f"--remap-path-prefix={path}={name}" for path, name in sorted(remapped.items())]
    return "\x1f".join([*os.environ.get("RUSTFLAGS", "").split(), *flags])


def compatibility(target: str) -> str:
    """The platform tag of a wheel for Linux, by the oldest libc it runs on. For ppc64le Zig has none before 2.19."""
    if "musl" in target:
        return "musllinux_1_2"
    return "manylinux_2_24" if target.startswith("powerpc64le") else "manylinux2014"


def build(target: str | None, arguments: list[str], out: Path) -> None:
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(out), *arguments]
    if target:
        command += ["--target", target]
    if target and "linux" in target:
        command += ["--zig", "--compatibility", compatibility(target)]
    # maturin finds Zig by the commands that its package installs next to this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "CARGO_ENCODED_RUSTFLAGS": rust_flags()}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def named_folders(wheel: Path) -> list[str]:
    """The folders of this machine that a wheel names. The SBOM may name them: cargo's ids contain the checkout's."""
    with zipfile.ZipFile(wheel) as archive:
        contents = b"\n".join(archive.read(name) for name in archive.namelist() if "/sboms/" not in name)
    folders = {str(folder) for folder in (ROOT, CARGO_HOME, Path.home())} - {"/"}
    return sorted(folder for folder in folders if folder.encode() in contents)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--target", help="a Rust target; without it the wheels are for this machine")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to put the wheels")
    parser.add_argument("--stable-only", action="store_true", help="no wheel for free-threaded CPython")
    options = parser.parse_args(arguments)
    build(options.target, [], options.out)
    if not options.stable_only:
        build(options.target, ["--interpreter", FREE_THREADED], options.out)
    named = {wheel.name: folders for wheel in options.out.glob("*.whl") if (folders := named_folders(wheel))}
    for name, folders in named.items():
        print(f"{name} names folders of this machine: {', '.join(folders)}", file=sys.stderr)
    return int(bool(named))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
