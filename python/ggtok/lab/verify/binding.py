"""llama.cpp's C API through ctypes, for any release since January 2025 (b4500 or so) on 64-bit machines.

1. `llama_model_params` has neither a size nor a version, and fields were added in front of the two that matter here:
   the pointer to overrides, and the flags after it, of which `vocab_only` is the first. `LAYOUTS` has the offsets.
2. The defaults tell the layout. The fields in front of the flags are pointers, and null, from before `LAYOUTS[0]` on;
   and one or more of the flags are set, each of them a byte. So the first word there that is not zero has the flags.
3. A wrong layout would lose overrides silently, or load all weights. So a vocabulary without tensors is opened twice,
   with and without an override that shows in an answer. Unless both answers are right, the library is refused.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import GgtokError, LibraryError

Overrides = Mapping[str, bool | int | float | str]

LAYOUTS = (56, 64, 72)
"""Offsets of `vocab_only`: in b4798, in b5671 to b10566, and from b10809 on. The pointer to overrides is 8 bytes
before."""

NUM_FLAGS = 4
"""The flags that every release has at least; what follows them may be padding, in which any byte can be."""

NUM_WORDS = 32
"""Twice as many words of 8 bytes as the largest `llama_model_params` has."""

STRING = 128
"""Bytes of an override's key, and of its value if that is a string, with the zero at the end."""

PROBE = Path(__file__).parents[2] / "vocabularies" / "spm.gguf"
PROBE_KEY, PROBE_ID = "tokenizer.ggml.bos_token_id", 5
"""A vocabulary without tensors, and an override that `llama_vocab_bos` shows."""


class Params(ctypes.Structure):
    """`llama_model_params` as words; two of them are set."""

    _fields_ = [("words", ctypes.c_uint64 * NUM_WORDS)]


class OverrideValue(ctypes.Union):
    """The value of an override."""

    _fields_ = [
        ("int", ctypes.c_int64),
        ("float", ctypes.c_double),
        ("bool", ctypes.c_bool),
        ("str", ctypes.c_char * STRING),
    ]


class Override(ctypes.Structure):
    """`llama_model_kv_override`."""

    _fields_ = [("tag", ctypes.c_int), ("key", ctypes.c_char * STRING), ("value", OverrideValue)]


TAGS = ("int", "float", "bool", "str")

_pointer, _int, _bool, _string = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_char_p
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [_pointer, _pointer]),
    "llama_model_default_params": (Params, []),
    "llama_model_load_from_file": (_pointer, [_string, Params]),
    "llama_model_free": (None, [_pointer]),
    "llama_model_get_vocab": (_pointer, [_pointer]),
    "llama_vocab_n_tokens": (_int, [_pointer]),
    "llama_vocab_get_attr": (_int, [_pointer, _int]),
    "llama_vocab_is_eog": (_bool, [_pointer, _int]),
    "llama_vocab_bos": (_int, [_pointer]),
    "llama_tokenize": (_int, [_pointer, _string, _int, _pointer, _int, _bool, _bool]),
    "llama_detokenize": (_int, [_pointer, _pointer, _int, _pointer, _int, _bool, _bool]),
    "llama_token_to_piece": (_int, [_pointer, _int, _pointer, _int, _int, _bool]),
}
"""The functions that every release since b4500 has, with the types of their results and arguments."""

_QUIET = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
"""A log that is never freed: llama.cpp has one for the process, and calls it after the binding that set it is gone."""


class LlamaCpp:
    """A loaded library."""

    def __init__(self, path: str) -> None:
        """Raises `LibraryError` if the file is not a library, not llama.cpp, or of an unknown layout."""
        self.path = path
        if ctypes.sizeof(_pointer) != 8:
            raise LibraryError("the layout of its parameters is known on 64-bit machines only", path=path)
        if sys.platform == "win32":
            os.add_dll_directory(os.path.dirname(path))
        try:
            self._library = ctypes.CDLL(path, mode=getattr(os, "RTLD_GLOBAL", 0))
        except OSError as error:
            problem = str(error).removeprefix(f"{path}: ")
            raise LibraryError(f"it cannot be loaded: {problem}", path=path) from None
        self.calls = {name: self._function(name, *types) for name, types in FUNCTIONS.items()}
        self.calls["llama_log_set"](ctypes.cast(_QUIET, _pointer), None)
        self.calls["llama_backend_init"]()
        if (word := word_of_flags(self.calls["llama_model_default_params"]().words)) is None:
            raise LibraryError("its parameters have an unknown layout", path=path)
        self._flags = word
        self._check_layout()

    def optional(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """A function that not every release has; `None` if it is missing."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return None
        function.restype, function.argtypes = result, arguments
        return function

    def versions(self) -> dict[str, str | None]:
        """What the library says of itself: its `release`, where most builds have 0, and the version of `ggml`."""
        version = self.optional("ggml_version", _string, [])
        try:
            build = ctypes.c_int.in_dll(self._library, "LLAMA_BUILD_NUMBER").value
        except ValueError:
            build = 0
        ggml = None if version is None else version().decode("utf-8", "replace")
        return {"release": f"b{build}" if build > 0 else None, "ggml": ggml}

    def open(self, path: str | os.PathLike[str], overrides: Overrides) -> int:
        """A model of which only the vocabulary is open. Raises `GgtokError` if llama.cpp refuses the file."""
        params = self.calls["llama_model_default_params"]()
        entries = _entries(overrides)
        params.words[self._flags] |= int.from_bytes(b"\1", "little")  # the first byte of the flags
        if overrides:
            params.words[self._flags - 1] = ctypes.addressof(entries)
        model = self.calls["llama_model_load_from_file"](os.fsencode(path), params)
        if not model:
            raise GgtokError(f"llama.cpp refuses {os.fsdecode(path)}")
        return int(model)

    def _function(self, name: str, result: Any, arguments: list[Any]) -> Any:
        if (function := self.optional(name, result, arguments)) is None:
            raise LibraryError(f"it has no {name}: it is not llama.cpp, or older than January 2025", path=self.path)
        return function

    def _check_layout(self) -> None:
        answers = []
        for overrides in ({}, {PROBE_KEY: PROBE_ID}):
            try:
                model = self.open(PROBE, overrides)
            except GgtokError:
                raise LibraryError(
                    "it does not open a vocabulary without weights: the layout of its parameters is unknown",
                    path=self.path,
                ) from None
            answers.append(self.calls["llama_vocab_bos"](self.calls["llama_model_get_vocab"](model)))
            self.calls["llama_model_free"](model)
        if answers[0] == PROBE_ID or answers[1] != PROBE_ID:
            raise LibraryError("it ignores an override: the layout of its parameters is unknown", path=self.path)


def word_of_flags(defaults: Sequence[int]) -> int | None:
    """The index of the word that begins with `vocab_only`, by the default parameters; `None` if no layout fits."""
    word = next((offset // 8 for offset in LAYOUTS if defaults[offset // 8]), None)
    flags = b"" if word is None else defaults[word].to_bytes(8, "little")[:NUM_FLAGS]
    return word if flags and flags[0] == 0 and max(flags) == 1 else None


def _entries(overrides: Overrides) -> Any:
    """The overrides as llama.cpp takes them, with an empty one at the end."""
    entries = (Override * (len(overrides) + 1))()
    for entry, (key, value) in zip(entries, overrides.items(), strict=False):
        kind = type(value).__name__
        encoded = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else b""
        name = key.encode("utf-8", "surrogateescape")
        if max(len(name), len(encoded)) >= STRING:
            raise GgtokError(f"llama.cpp takes keys and strings of at most {STRING - 1} bytes: the override of {key}")
        entry.tag, entry.key = TAGS.index(kind), name
        setattr(entry.value, kind, encoded if isinstance(value, str) else value)
    return entries
