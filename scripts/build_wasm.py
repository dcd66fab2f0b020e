"""Builds the JavaScript package: the core as WebAssembly, with its classes, types and the embedded vocabularies.

    python scripts/build_wasm.py            # writes target/wasm/ggtok

Needs Rust for the target wasm32-unknown-unknown, which is one of:

- rustup: `rustup target add wasm32-unknown-unknown`;
- Debian: `apt install cargo-web rustc-web rust-web-src lld`, from whose source the standard library is built too.
  Debian has no rust-lld, so the newest `wasm-ld` that is installed links.

The command line tool of wasm-bindgen, of the version in Cargo.lock, is installed from crates.io into target/wasm.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "rust/wasm"
BUILD = ROOT / "target/wasm"
CARGO_HOME = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
TARGET = "wasm32-unknown-unknown"
PROFILE = "wasm"
DEBIAN = Path("/usr/bin/rustc")
LINKERS = ("rust-lld", *(f"wasm-ld-{version}" for version in range(25, 18, -1)), "wasm-ld")
NO_RUST = f"""\
Rust for {TARGET} is not installed. Install one of:
  rustup target add {TARGET}
  apt install cargo-web rustc-web rust-web-src lld        # Debian; some releases name a newer lld-22"""


def sysroot(rustc: str) -> Path | None:
    """Where a compiler has its libraries."""
    found = subprocess.run([rustc, "--print", "sysroot"], capture_output=True, text=True, check=False, cwd=ROOT)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def toolchain() -> tuple[str, list[str], dict[str, str]]:
    """A sentence about the installed Rust, and what cargo needs to use it: arguments and variables."""
    if not shutil.which("cargo"):
        sys.exit(NO_RUST)
    own = shutil.which(os.environ.get("RUSTC", "rustc"))
    root = sysroot(own) if own else None
    if root and (root / "lib/rustlib" / TARGET / "lib").is_dir():
        return f"the standard library for {TARGET} of {own}", [], {}
    root = sysroot(str(DEBIAN)) if DEBIAN.exists() else None
    source = root and root / "lib/rustlib/src/rust/library/std"
    if not source or not source.is_dir():
        sys.exit(NO_RUST)
    linker = next(filter(None, map(shutil.which, LINKERS)), None)
    if linker is None:
        sys.exit(f"There is no linker for {TARGET}: none of {', '.join(LINKERS)} is in PATH.\n{NO_RUST}")
    variables = {"RUSTC": str(DEBIAN), "RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": linker}
    return f"the source of the standard library in {root}", ["-Z", "build-std=std,panic_abort"], variables


def engine(*features: str) -> Path:
    """Builds the crate, with some options of cargo about its features."""
    sentence, arguments, variables = toolchain()
    print(f"building with {sentence}", flush=True)
    target = BUILD / "build"
    arguments += features
    command = ["cargo", "build", "--locked", "-p", "ggtok-wasm", "--profile", PROFILE, "--target", TARGET, *arguments]
    # Messages of panics name the files of sources, but not folders of this machine.
    remapped = {CARGO_HOME / "registry/src": "crates", CARGO_HOME: "cargo", ROOT: "ggtok"}
    flags = [f"--remap-path-prefix={path}={name}" for path, name in sorted(remapped.items())]
    variables |= {"CARGO_TARGET_DIR": str(target), "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags)}
    subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=True)
    return target / TARGET / PROFILE / "ggtok_wasm.wasm"


def bindgen() -> Path:
    """The tool of wasm-bindgen, which is installed if it is not there."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    version = next(package["version"] for package in packages if package["name"] == "wasm-bindgen")
    tools = BUILD / f"tools-{version}"
    tool = tools / "bin/wasm-bindgen"
    if not tool.exists():
        print(f"installing wasm-bindgen {version}", flush=True)
        # Without the default features, which are for running tests in browsers.
        command = ["cargo", "install", "-q", "wasm-bindgen-cli", "--version", version, "--no-default-features"]
        command += ["--bin", "wasm-bindgen", "--root", str(tools), "--target-dir", str(BUILD / "tools-build")]
        subprocess.run(command, cwd=ROOT, check=True)
        shutil.rmtree(BUILD / "tools-build")
    return tool


def manifest() -> dict[str, object]:
    """The package.json."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "name": "ggtok",
        "version": package["version"],
        "description": python["description"],
        "keywords": [*python["keywords"], "wasm"],
        "homepage": package["homepage"],
        "repository": {"type": "git", "url": f"git+{package['repository']}.git"},
        "license": re.sub(r"^(?=.* AND )(.*)$", r"(\1)", python["license"]),
        "author": package["authors"][0],
        "type": "module",
        "exports": {
            ".": {"types": "./ggtok.d.ts", "default": "./ggtok.js"},
            "./ggtok_bg.wasm": "./ggtok_bg.wasm",
            "./vocabularies/*": "./vocabularies/*",
            "./package.json": "./package.json",
        },
        "types": "./ggtok.d.ts",
        "sideEffects": False,
        "engines": {"node": ">=20"},
    }


def bind(binary: Path, folder: Path) -> None:
    """Writes an engine and its bindings into a folder."""
    command: list[str | Path] = [bindgen(), "--target", "web", "--no-typescript", "--experimental-reset-state-function"]
    command += ["--remove-name-section", "--remove-producers-section", "--out-dir", folder, "--out-name", "ggtok"]
    subprocess.run([*command, binary], check=True)
    (folder / "ggtok.js").rename(folder / "ggtok_bg.js")


def build(package: Path) -> None:
    """Writes the package into a new folder. The playground starts with the smaller engine, in the folder `core`."""
    new = package.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    bind(engine(), new)
    bind(engine("--no-default-features"), new / "core")
    shutil.copyfile(CRATE / "js/ggtok.js", new / "core/ggtok.js")
    for path in (*(CRATE / "js").iterdir(), CRATE / "README.md", ROOT / "LICENSE", ROOT / "THIRD-PARTY-NOTICES.md"):
        shutil.copyfile(path, new / path.name)
    (new / "vocabularies").mkdir()
    for path in (ROOT / "python/ggtok/vocabularies").glob("*.gguf"):
        shutil.copyfile(path, new / "vocabularies" / path.name)
    (new / "package.json").write_text(json.dumps(manifest(), indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(package, ignore_errors=True)
    new.rename(package)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    package = BUILD / "ggtok"
    build(package)
    for path in (package / "ggtok_bg.wasm", package / "core/ggtok_bg.wasm"):
        module = path.read_bytes()
        print(f"{path.relative_to(ROOT)}: {len(module):,} bytes, {len(gzip.compress(module, 9)):,} with gzip -9")


if __name__ == "__main__":
    main()
