"""The tokenizer: what a GGUF file says is handed to the core, which does the work."""

from __future__ import annotations

import os

from . import _ggtok
from ._batch import Batch
from ._gguf import Metadata, Type
from ._vocab import Vocab
from .errors import GgtokError, GGUFError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from _typeshed import ReadableBuffer
    from typing_extensions import Self

    from ._gguf import Array, Scalar
    from ._prefix import Source

    Text: TypeAlias = str | ReadableBuffer

BUILTIN = ("bpe", "spm", "unigram", "wordpiece")

_SPECIAL = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "eot": "eot_token_id",
    "eom": "eom_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",
    "pad": "padding_token_id",
    "mask": "mask_token_id",
    "fim_pre": "fim_pre_token_id",
    "fim_suf": "fim_suf_token_id",
    "fim_mid": "fim_mid_token_id",
    "fim_pad": "fim_pad_token_id",
    "fim_rep": "fim_rep_token_id",
    "fim_sep": "fim_sep_token_id",
    "prefix": "prefix_token_id",
    "suffix": "suffix_token_id",
    "middle": "middle_token_id",
}
"""Slots of the core by their keys; the file format spells "seperator" so."""

_FLAGS = {
    "add_bos": "add_bos_token",
    "add_eos": "add_eos_token",
    "add_sep": "add_sep_token",
    "add_space_prefix": "add_space_prefix",
    "remove_extra_whitespaces": "remove_extra_whitespaces",
    "lowercase": "normalizer.lowercase",
    "strip_accents": "normalizer.strip_accents",
}


class Tokenizer(_ggtok.Tokenizer):
    """Text to tokens and back, exactly as llama.cpp does.

    Made by `Tokenizer.from_gguf` or `Tokenizer.builtin`. Immutable; threads may share it. Two tokenizers are equal if
    their vocabularies and settings are. Pickling carries the metadata along, not the path.

    Calls on texts beyond a few hundred bytes release the GIL. Encoding takes O(n log n) time at worst for n bytes, and
    O(n) for text made of words. A `str` with lone surrogates is encoded with `surrogatepass`; bytes that are not UTF-8
    are read as llama.cpp reads them.
    """

    __slots__ = ("__weakref__", "_digest", "_metadata", "vocab")

    _digest: bytes | None
    _metadata: Metadata
    vocab: Vocab
    """The tokens, special ids and flags."""

    def __new__(cls, *_: object, **__: object) -> Self:
        raise TypeError("use Tokenizer.from_gguf or Tokenizer.builtin")

    @classmethod
    def from_gguf(cls, source: Source, *, overrides: Mapping[str, Scalar] | None = None) -> Self:
        """Reads the tokenizer of a GGUF file from its metadata; tensors are not touched and may be missing.

        `source` is a path, the bytes of a file (anything bytes-like), or a readable binary file. `overrides` replaces
        metadata by key, like llama.cpp's `--override-kv`.

        Raises `GGUFError` for a damaged file or a key of the wrong type, `VocabularyError` for a damaged vocabulary,
        `UnsupportedError` for a tokenizer or pre-tokenizer that ggtok does not know, and `OSError` where the file
        cannot be read. Warns (`UserWarning`) where a byte-pair vocabulary names no pre-tokenizer.
        """
        return cls._of(Metadata.from_source(source, overrides))

    @classmethod
    def builtin(cls, name: str) -> Self:
        """One of the small vocabularies inside the package: `bpe`, `spm`, `unigram` or `wordpiece`.

        Raises `ValueError` for another name.
        """
        if name not in BUILTIN:
            raise GgtokError(f"there is no builtin vocabulary {name!r}: expected one of {', '.join(BUILTIN)}")
        return cls.from_gguf(os.path.join(os.path.dirname(__file__), "vocabularies", f"{name}.gguf"))

    @classmethod
    def _of(cls, metadata: Metadata) -> Self:
        core: dict[str, Any] = _definition(metadata)
        self = super().__new__(cls, core.pop("model"), **core)
        for name, value in (("_metadata", metadata), ("_digest", None), ("vocab", Vocab(self))):
            object.__setattr__(self, name, value)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a tokenizer is immutable")

    __delattr__ = __setattr__  # type: ignore[assignment]

    @property
    def metadata(self) -> Mapping[str, Scalar]:
        """The file's scalar metadata with overrides, read-only."""
        return self._metadata.scalars

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        threads: int | None = None,
        add_special: bool = True,
        parse_special: bool = False,
    ) -> Batch:
        """The tokens of several texts, in order, on `threads` threads (all cores by default).

        Raises `ValueError` for fewer than one thread, and otherwise as `encode`.
        """
        if threads is None:
            threads = _cores()
        if threads < 1:
            raise GgtokError(f"threads must be at least 1, not {threads}")
        return Batch(*self._encode_batch(texts, threads, add_special, parse_special))

    def _identity(self) -> bytes:
        """A digest of everything that makes this tokenizer: metadata and overrides."""
        if self._digest is None:
            from hashlib import blake2b

            digest = blake2b(self._metadata.data, digest_size=16)
            digest.update(repr(sorted(self._metadata.overrides.items())).encode("utf-8", "surrogatepass"))
            object.__setattr__(self, "_digest", digest.digest())
        return self._digest  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (type(self), self._metadata.data, self._metadata.overrides)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        name = self.metadata.get("general.name")
        pre = f", pre={self.vocab.pre!r}" if self.vocab.pre is not None else ""
        named = f" {name!r}" if isinstance(name, str) and name else ""
        return f"<ggtok.Tokenizer{named} kind={self.vocab.kind!r}{pre}, {len(self.vocab)} tokens>"


def _unpickled(cls: type[Tokenizer], data: bytes, overrides: dict[str, Scalar]) -> Tokenizer:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever pickled it has seen them
        return cls.from_gguf(data, overrides=overrides)


def _cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _definition(metadata: Metadata) -> dict[str, object]:
    """What the core needs to know, read with llama.cpp's rules."""
    model = metadata.read("tokenizer.ggml.model", "str")
    if model is None:
        raise GGUFError("the file names no tokenizer", key="tokenizer.ggml.model", expected="a key of this name")
    pre = metadata.read("tokenizer.ggml.pre", "str")
    architecture = metadata.read("general.architecture", "str") or ""

    def array(key: str, *types: Type) -> Array | None:
        return metadata.read_array(f"tokenizer.ggml.{key}", *types)

    def raw(array: Array | None) -> bytes | None:
        return None if array is None else array.tobytes()

    definition: dict[str, object] = {
        "model": model,
        "pre": pre,
        "tokens": None,
        "scores": None,
        "int_scores": False,
        "token_types": None,
        "merges": None,
        "charsmap": None,
        "vocab_size": metadata.read(f"{architecture}.vocab_size", "u32"),
        "special": {},
        "flags": {},
        "name": metadata.read("general.name", "str") or "",
        "architecture": architecture,
    }
    if model in ("none", "no_vocab"):
        return definition
    if model in ("gpt2", "hybriddna", "whitespace", "gemma4"):
        merges = array("merges", Type.STRING)
        definition["merges"] = None if merges is None else merges.strings()
        if not pre and model != "gemma4":
            import warnings

            message = "the file names no pre-tokenizer: the default is used, and the ids may differ from the model's"
            warnings.warn(f"{message}; converting the model again would help", stacklevel=4)
    if model == "t5":
        definition["charsmap"] = raw(array("precompiled_charsmap", Type.INT8, Type.UINT8))
    tokens = array("tokens", Type.STRING)
    scores = array("scores", Type.FLOAT32, Type.INT32)
    definition["tokens"] = None if tokens is None else tokens.strings()
    definition["scores"] = raw(scores)
    definition["int_scores"] = scores is not None and scores.type is Type.INT32
    definition["token_types"] = raw(array("token_type", Type.INT32))
    definition["special"] = _present(
        {slot: metadata.read(f"tokenizer.ggml.{key}", "u32") for slot, key in _SPECIAL.items()}
    )
    definition["flags"] = _present(
        {flag: metadata.read(f"tokenizer.ggml.{key}", "bool") for flag, key in _FLAGS.items()}
    )
    return definition


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
