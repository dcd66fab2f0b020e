"""One file per command, imported when the command runs; `command` is what click calls."""
