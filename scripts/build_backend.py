"""The build backend: maturin, one build of a checkout at a time, with advice if a build fails because Rust is missing.

maturin moves the built module through one path in `target/`, and rewrites it there. Of two builds at once, one would
package what the other has moved or half written, so the second one waits.

Without `cargo`, maturin downloads a Rust toolchain for this one build. If that fails, its traceback says so, but not
what would help. pip shows our lines below it.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, where a file that is in use cannot be moved: the second build fails
    fcntl = None  # type: ignore[assignment]

import maturin  # type: ignore[import-not-found,import-untyped,unused-ignore]

HELP = """
ggtok could not be built from source: Rust (`cargo`) is not installed, and could not be downloaded.

  1. Most platforms need no Rust: `pip install --only-binary ggtok ggtok` takes a wheel, or says that there is none.
     An old pip does not know new wheels: `pip install --upgrade pip`.
  2. Otherwise install Rust 1.88 or newer, from https://rustup.rs or your system's packages, and run pip again.
"""


def __getattr__(name: str) -> Any:
    """A hook of maturin's, alone in the checkout, with advice if it fails."""
    hook: Callable[..., Any] = getattr(maturin, name)

    @functools.wraps(hook)
    def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            with Path("pyproject.toml").open("rb") as file:  # hooks run in the checkout
                if fcntl:
                    fcntl.flock(file, fcntl.LOCK_EX)
                return hook(*args, **kwargs)
        # maturin ends the process if cargo fails.
        except (Exception, SystemExit):
            if not shutil.which("cargo"):
                sys.excepthook(*sys.exc_info())
                print(HELP, file=sys.stderr, flush=True)
                raise SystemExit(1) from None
            raise

    return explained if callable(hook) else hook
