"""The tokenizers that are measured, each by one function that opens a vocabulary with the peer's own loader.

It raises `UnsupportedError` if the peer cannot represent the vocabulary. Peers are imported inside, with
`import_module`, so that this module can be read without their packages and type-checked without their types.
"""

from __future__ import annotations

import base64
import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from vocabularies import UnsupportedError, Vocabulary


@dataclass(frozen=True)
class Encoder:
    """One open vocabulary. No special tokens are added or parsed, if the peer can turn that off."""

    encode: Callable[[Any], Any]
    """The fastest call for one document; it may return any object that holds the ids."""
    encode_list: Callable[[Any], Any]
    """The fastest call that returns a list of ints."""
    ids: Callable[[Any], list[int]] = list
    """The result of `encode` as ids (never timed)."""
    text: Callable[[str], Any] = str
    """A text as `encode` takes it (never timed)."""
    decode: Callable[[Any], Any] | None = None
    """The fastest call from ids to text (str or bytes)."""
    decode_input: Callable[[Sequence[int]], Any] = list
    """Ids as `decode` takes them (never timed)."""


def _of_array(answer: Any) -> list[int]:
    ids: list[int] = answer.tolist()
    return ids


def _of_bytes(answer: Any) -> list[int]:
    return memoryview(answer).cast("I").tolist()


def _array(dtype: str) -> Callable[[Sequence[int]], Any]:
    return lambda ids: import_module("numpy").array(ids, dtype=dtype)


def open_ggtok(vocabulary: Vocabulary) -> Any:
    """The `ggtok.Tokenizer`, for the measurements that only this project has."""
    return import_module("ggtok").Tokenizer.from_gguf(vocabulary.path)


def ggtok(vocabulary: Vocabulary) -> Encoder:
    """This project, from the GGUF file itself."""
    tokenizer = open_ggtok(vocabulary)
    return Encoder(
        encode=partial(tokenizer.encode_array, add_special=False),
        encode_list=tokenizer.encode,
        ids=_of_array,
        decode=tokenizer.decode_bytes,
        decode_input=_array("int32"),
    )


def llama_cpp(vocabulary: Vocabulary) -> Encoder:
    """llama.cpp with `vocab_only`, through the shared object in `xllamacpp`, over ctypes into a buffer that is reused.

    The binding is `tools/llama_reference.py` in the folder that GGTOK_SHARED names.
    """
    sys.path.append(str(Path(vocabulary.path).parents[1] / "tools"))
    module: Any = import_module("llama_reference")
    reference = module.LlamaReference(vocabulary.path)
    tokenize, vocab = module._lib.llama_tokenize, reference._vocab
    buffer: Any = (ctypes.c_int32 * 8192)()

    def encode(text: bytes) -> int:
        nonlocal buffer
        if len(text) + 16 > len(buffer):
            buffer = (ctypes.c_int32 * (len(text) + 16))()
        return int(tokenize(vocab, text, len(text), buffer, len(buffer), False, False))

    def ids(count: int) -> list[int]:
        return list(buffer[:count])

    def encode_list(text: bytes) -> list[int]:
        count = encode(text)
        return list(buffer[:count])

    return Encoder(encode, encode_list, ids, text=str.encode, decode=reference.detokenize)


def gigatoken(vocabulary: Vocabulary) -> Encoder:
    """BPE from tokenizer.json, SPM from sentencepiece's model. `Tokenizer.encode` only forwards to the backend."""
    tokenizer: Any = import_module("gigatoken").Tokenizer
    if vocabulary.kind == "BPE":
        backend = tokenizer(str(vocabulary.tokenizer_json())).backend
    elif vocabulary.kind == "SPM":
        backend = tokenizer.from_sentencepiece(vocabulary.sentencepiece_model()).backend
    else:
        raise UnsupportedError("gigatoken has BPE models only")
    return Encoder(
        encode=backend.encode,
        encode_list=lambda text: backend.encode(text).tolist(),
        ids=_of_array,
        decode=backend.decode,
        decode_input=_array("uint32"),
    )


def fastokens(vocabulary: Vocabulary) -> Encoder:
    """BPE from tokenizer.json."""
    lacks = {"WordPiece": "BertNormalizer", "Unigram": "Precompiled normalizer"}
    if vocabulary.kind in lacks:
        raise UnsupportedError(f"fastokens has no {lacks[vocabulary.kind]}")
    tokenizer: Any = import_module("fastokens").Tokenizer.from_file(str(vocabulary.tokenizer_json()))
    return Encoder(
        encode=lambda text: tokenizer.encode_batch_flat([text])[0],
        encode_list=lambda text: tokenizer.encode_ordinary(text).ids,
        ids=_of_bytes,
        decode=tokenizer.decode,
    )


def splintr(vocabulary: Vocabulary) -> Encoder:
    """tokenizer.json: the loader of rank files gives the same ids with a much slower first pass."""
    tokenizer: Any = import_module("splintr").from_json(str(vocabulary.tokenizer_json()))
    return Encoder(tokenizer.encode_flat, tokenizer.encode_raw, ids=_of_bytes, decode=tokenizer.decode)


def tokie(vocabulary: Vocabulary) -> Encoder:
    """tokenizer.json. `encode_bytes` does not qualify: it skips the pre-tokenizer and the normalizer."""
    tokenizer: Any = import_module("tokie").Tokenizer.from_json(str(vocabulary.tokenizer_json()))
    return Encoder(
        encode=lambda text: tokenizer.encode(text, False),
        encode_list=lambda text: tokenizer.encode(text, False).ids,
        ids=lambda answer: answer.ids,
        decode=tokenizer.decode_bytes,
    )


def tiktoken(vocabulary: Vocabulary) -> Encoder:
    """Byte-level BPE from merge ranks and a pattern."""
    lines = (line.split() for line in vocabulary.tiktoken_ranks().read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding: Any = import_module("tiktoken").Encoding(
        vocabulary.name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return Encoder(encoding.encode_ordinary, encoding.encode_ordinary, decode=encoding.decode_bytes)


def tokenizers(vocabulary: Vocabulary) -> Encoder:
    """Hugging Face tokenizers, from tokenizer.json."""
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(vocabulary.tokenizer_json()))
    encode = partial(tokenizer.encode, add_special_tokens=False)
    return Encoder(
        encode=lambda text: encode(text).ids_array,
        encode_list=lambda text: encode(text).ids,
        ids=_of_array,
        decode=tokenizer.decode,
    )


def sentencepiece(vocabulary: Vocabulary) -> Encoder:
    """SPM and Unigram from its own model file."""
    package: Any = import_module("sentencepiece")
    processor = package.SentencePieceProcessor(model_file=str(vocabulary.sentencepiece_model()))
    return Encoder(processor.encode_as_numpy, processor.encode, decode=processor.decode)


def kitoken(vocabulary: Vocabulary) -> Encoder:
    """SPM and Unigram from sentencepiece's model, which is faster than its JSON; the others from tokenizer.json."""
    kitoken: Any = import_module("kitoken").Kitoken
    if vocabulary.kind in ("SPM", "Unigram"):
        tokenizer = kitoken.from_sentencepiece_file(str(vocabulary.sentencepiece_model()))
    else:
        tokenizer = kitoken.from_tokenizers_file(str(vocabulary.tokenizer_json()))
    return Encoder(tokenizer.encode, tokenizer.encode, decode=tokenizer.decode)


class Peer(NamedTuple):
    """A tokenizer that is measured."""

    load: Callable[[Vocabulary], Encoder]
    calls: str
    """The calls that are timed, for the report."""
    requirement: str
    """What pip installs; "" for what the driver installs itself."""

    @property
    def package(self) -> str:
        """The module whose import is timed."""
        return "xllamacpp" if self.load is llama_cpp else self.load.__name__


OURS, REFERENCE = "ggtok", "llama_cpp"
PEERS = {
    peer.load.__name__: peer
    for peer in (
        Peer(
            ggtok,
            "`encode_array(text, add_special=False)`; list: `encode(text)`, special tokens added; decode: "
            "`decode_bytes`",
            "",
        ),
        Peer(
            llama_cpp,
            "`llama_tokenize` into a reused buffer; list: the buffer as a list; decode: `llama_detokenize`",
            "xllamacpp==2026.10.11549",
        ),
        Peer(gigatoken, "`Tokenizer.backend.encode`; list: the same with `.tolist()`", "gigatoken"),
        Peer(fastokens, "`encode_batch_flat([text])`; list: `encode_ordinary(text).ids`", "fastokens"),
        Peer(splintr, "`encode_flat`; list: `encode_raw`", "splintr-rs"),
        Peer(tokie, "`encode(text, False)`; list: the same with `.ids`; decode: `decode_bytes`", "tokie"),
        Peer(tiktoken, "`Encoding.encode_ordinary`; decode: `decode_bytes`", "tiktoken"),
        Peer(tokenizers, "`encode(text).ids_array`; list: the same with `.ids`", "tokenizers==1.0.0rc3"),
        Peer(sentencepiece, "`encode_as_numpy`; list: `encode`; decode: `decode`", "sentencepiece"),
        Peer(kitoken, "`encode`; decode: `decode`", "kitoken"),
    )
}
"""In the order of the tables."""
