"""Runs the command line, as `ggtok` and `python -m ggtok`. While it is imported, Ctrl-C ends the process at once."""

import _signal as signal  # type: ignore[import-not-found]  # built in; to import `signal` takes Python a millisecond
import os

_HANDLER = signal.getsignal(signal.SIGINT)  # not Python's where a shell lets its background jobs ignore Ctrl-C
if _HANDLER is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from . import cli  # noqa: E402


def main() -> int:
    """Runs one command, for which Ctrl-C is an exception again, and returns its exit code."""
    try:
        signal.signal(signal.SIGINT, _HANDLER)
        return cli.main()
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if _HANDLER is signal.default_int_handler else _HANDLER)


if __name__ == "__main__":
    raise SystemExit(main())
