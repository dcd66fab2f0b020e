"""Writes docs/files.md: every source file with the first sentence of its opening comment.

python scripts/generate_file_map.py
python scripts/generate_file_map.py --check      # exit code 1 if the page is not current
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "files.md"
FOLDERS = {
    "rust/core/src": "Vocabularies and algorithms. Knows nothing of Python; only `gguf` knows files.",
    "rust/python/src": "The Python extension module `ggtok._ggtok`: conversions, the GIL, error mapping.",
    "python/ggtok": "The Python package: GGUF metadata, the public API, the command line.",
}


def opening(path: Path) -> str:
    """The first sentence of the comment that opens a file, or an empty string if there is none."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        comment = ast.get_docstring(ast.parse(source)) or ""
    else:
        lines = re.match(r"(//!.*\n)*", source)
        comment = re.sub(r"^//! ?", "", lines[0] if lines else "", flags=re.MULTILINE)
    paragraph = " ".join(comment.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", paragraph)[0]
    # rustdoc's links to items have no meaning on the page.
    return re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", sentence)


def sources(folder: str) -> Iterator[Path]:
    """The source files of a folder; `model.rs` comes directly before the files of `model/`."""
    root = ROOT / folder
    files = [path for suffix in ("rs", "py") for path in root.rglob(f"*.{suffix}")]
    first = ("lib", "__init__")
    yield from sorted(files, key=lambda path: (path.stem not in first, path.relative_to(root).with_suffix("").parts))


def page() -> str:
    """The page as it should be. Raises ValueError for a file without an opening sentence."""
    sections = []
    for folder, about in FOLDERS.items():
        rows = []
        for path in sources(folder):
            sentence = opening(path)
            if not sentence.endswith("."):
                raise ValueError(f"{path.relative_to(ROOT)} does not open with a sentence that says what it is")
            name = path.relative_to(ROOT / folder).as_posix()
            cell = sentence.replace("|", "\\|")
            rows.append(f"| [`{name}`](../{folder}/{name}) | {cell} |\n")
        sections.append(f"## {folder}\n\n{about}\n\n| file | what it is |\n| --- | --- |\n{''.join(rows)}")
    return (
        "# Files\n\n"
        "Written by `python scripts/generate_file_map.py` from the sentence that opens each file. DO NOT EDIT.\n\n"
        "[Architecture](architecture.md) explains how the files work together.\n\n" + "\n".join(sections)
    )


def main() -> int:
    """Writes or checks."""
    try:
        current = page()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(current, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != current:
        print(f"docs/{PAGE.name} is not current: run python scripts/generate_file_map.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
