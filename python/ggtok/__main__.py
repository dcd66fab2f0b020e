"""Runs the command line as `python -m ggtok`."""

from ._cli import main

raise SystemExit(main())
