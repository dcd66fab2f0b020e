"""Writes the list of files that a text of cached pieces passes, in docs/architecture.md.

python scripts/generate_hit.py
python scripts/generate_hit.py --check      # exit code 1 if the page is not current

A program that encodes a text twice is compiled without optimization, so that no call is left out or moved. Valgrind's
callgrind runs it, and collects only the second call, which finds everything in the cache. It names the file of each
instruction. Files outside the core do not count. Needs cargo and valgrind, on a processor with AVX2.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "rust" / "core"
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- hit:begin -->\n", "\n<!-- hit:end -->"

PROGRAM = """\
use ggtok_core::{Encoder, Tokenizer};

const TEXT: &str = "What is LoRA? It is what it is, and it is known: 12 words.";

#[inline(never)]
fn hit(encoder: &mut Encoder<&Tokenizer>) -> usize {
    encoder.encode(TEXT).expect("ids").len()
}

fn main() {
    let tok = Tokenizer::from_file(std::env::args().nth(1).expect("a file")).expect("a vocabulary");
    let mut encoder = tok.encoder();
    let len = encoder.encode(TEXT).expect("ids").len();
    assert_eq!(hit(&mut encoder), len);
}
"""
MANIFEST = f"""\
[package]
name = "hit"
edition = "2024"

[dependencies]
ggtok-core = {{ path = "{CORE}", default-features = false, features = ["gguf"] }}

[profile.dev]
debug = "line-tables-only"

[workspace]
"""


def files() -> list[str]:
    """The files of the core that the second call passes, in the order of their names."""
    folder = ROOT / "target" / "hit"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "src" / "main.rs").write_text(PROGRAM, encoding="utf-8")
    shutil.copy(ROOT / "Cargo.lock", folder)
    build = ["cargo", "build", "--quiet", "--target-dir", "target"]
    subprocess.run(build, cwd=folder, check=True)
    profile = folder / "callgrind.out"
    collect = ["--collect-atstart=no", "--toggle-collect=hit::hit*", "--compress-strings=no"]
    model = ROOT / "python/ggtok/vocabularies/bpe.gguf"
    run = [
        "valgrind",
        "--tool=callgrind",
        *collect,
        f"--callgrind-out-file={profile}",
        str(folder / "target/debug/hit"),
        str(model),
    ]
    subprocess.run(run, check=True, capture_output=True)
    # A line that names a file is followed by the costs of lines in it, or by a call from it.
    passed = re.findall(r"^f[lie]=(.*)$", profile.read_text(encoding="utf-8"), re.MULTILINE)
    source = f"{CORE / 'src'}/"
    return sorted({path.removeprefix(source) for path in passed if path.startswith(source)})


def page() -> str:
    """The page with the list as it is now."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    names = [f"`{name}`" for name in files()]
    text = (
        f"A text of cached pieces passes {len(names)} files of the core, here in the order of their names:"
        f" {', '.join(names[:-1])} and {names[-1]}."
    )
    lines = textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    return before + start + "\n".join(lines) + end + after


def main() -> None:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif text != PAGE.read_text(encoding="utf-8"):
        sys.exit("docs/architecture.md is not current: run python scripts/generate_hit.py")


if __name__ == "__main__":
    main()
