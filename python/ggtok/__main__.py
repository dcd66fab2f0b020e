"""`python -m ggtok` is the command line."""

from ._cli import main

raise SystemExit(main())
