"""Texts of a trace: `bytes` if they are not UTF-8."""

from __future__ import annotations

from ...trace import Text


def to_bytes(text: Text) -> bytes:
    """The bytes of a text."""
    return text if isinstance(text, bytes) else text.encode("utf-8")


def to_text(text: bytes) -> Text:
    """Bytes as they are in a trace."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text
