"""Tokenizers as sentencepiece's `.model` files, and back.

Source: sentencepiece `sentencepiece_model.proto` for the fields; llama.cpp `conversion/base.py`
(`_create_vocab_sentencepiece`) and `conversion/t5.py` for what its converter makes of a model. O(n) for n bytes.

Deviation from the converter: special ids and whether a space comes first are those of the model, where the converter
looks for them in other files beside it.
"""

from __future__ import annotations

from typing import Any

from .._base import BaseTokenizer
from .._findings import Finding, warn_of
from .._keys import GGML, SPECIAL
from ..errors import ConversionError
from .gguf import Packed, gguf_bytes
from .padding import padded
from .protobuf import MessageError, Value, field, fields
from .unigram import charsmap_of
from .vocabulary import BYTE, BYTE_TOKENS, CONTROL, SPACE, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary

FORMAT = "sentencepiece"

PIECES, TRAINER, NORMALIZER = 1, 2, 3
"""Fields of a model."""
PIECE, SCORE, TYPE = 1, 2, 3
"""Fields of a piece."""
MODEL_TYPE, VOCAB_SIZE, AS_SUFFIX, BYTE_FALLBACK = 3, 4, 24, 35
SPECIAL_IDS = {"unk": 40, "bos": 41, "eos": 42, "pad": 43}
SPECIAL_PIECES = {"unk": 45, "bos": 46, "eos": 47, "pad": 48}
"""Fields of the trainer's settings."""
NAME, CHARSMAP, ADD_PREFIX, REMOVE_SPACES = 1, 2, 3, 4
"""Fields of the normalizer's settings."""

UNIGRAM, BPE = 1, 2
MODEL_TYPES = {"spm": BPE, "unigram": UNIGRAM}
DEFAULT_IDS = {"unk": 0, "bos": 1, "eos": 2, "pad": -1}
NORMAL_PIECE, UNKNOWN_PIECE, CONTROL_PIECE, USER_DEFINED_PIECE, UNUSED_PIECE, BYTE_PIECE = range(1, 7)
PIECE_TYPES = dict(zip((UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE), range(UNKNOWN_PIECE, 7), strict=True))
"""Types of pieces have the numbers of GGUF's token types."""


def exported(tokenizer: BaseTokenizer) -> bytes:
    vocabulary = Vocabulary(tokenizer, FORMAT)
    vocabulary.need_kind("spm", "unigram")
    vocab, is_spm = tokenizer.vocab, tokenizer.vocab.kind == "spm"
    settings = vocab.settings
    types = [_type(bits) for bits in vocabulary.attributes]
    if types.count(UNKNOWN_PIECE) != 1:
        vocabulary.refuse(f"there must be one unknown token, and there are {types.count(UNKNOWN_PIECE)}")
    if is_spm:
        vocabulary.need_bytes(BYTE_TOKENS)
        for text in BYTE_TOKENS:
            if (id := vocab.id(text)) is None:
                vocabulary.refuse(f"there must be a token for all 256 bytes, and {text} is missing")
            types[id] = BYTE_PIECE
    for token in vocabulary.special:
        if types[token.id] == USER_DEFINED_PIECE:
            if SPACE in token.text or " " in token.text:
                vocabulary.refuse(f"it would find the user-defined token {token.text!r} where a text has spaces")
            if token.lstrip or token.rstrip:
                vocabulary.refuse(f"its user-defined tokens take no spaces, and {token.text!r} does")
    if not is_spm:  # byte tokens are for models with byte fallback only, which llama.cpp's Unigram has not
        types = [UNUSED_PIECE if kind == BYTE_PIECE else kind for kind in types]

    rows = zip(vocabulary.texts, vocabulary.scores, types, strict=True)
    pieces = [field(PIECES, field(PIECE, text) + field(SCORE, score) + field(TYPE, kind)) for text, score, kind in rows]
    trainer = [field(MODEL_TYPE, MODEL_TYPES[vocab.kind]), field(VOCAB_SIZE, len(vocab))]
    trainer.append(field(BYTE_FALLBACK, is_spm))
    for name, number in SPECIAL_IDS.items():
        id = getattr(vocab, f"{name}_id")
        trainer.append(field(number, -1 if id is None else id))
        if id is not None:
            trainer.append(field(SPECIAL_PIECES[name], vocabulary.texts[id]))
    merges_spaces = settings["remove_extra_whitespaces"] and not is_spm
    normalizer = [
        field(NAME, "identity" if is_spm else "user_defined"),
        field(CHARSMAP, b"" if is_spm else charsmap_of(vocabulary)),
        field(ADD_PREFIX, settings["add_space_prefix"] or merges_spaces),
        field(REMOVE_SPACES, merges_spaces),
    ]
    return b"".join([*pieces, field(TRAINER, b"".join(trainer)), field(NORMALIZER, b"".join(normalizer))])


def _type(bits: int) -> int:
    return next((kind for attribute, kind in PIECE_TYPES.items() if bits & attribute), NORMAL_PIECE)


def imported(data: bytes, vocab_size: int | None) -> bytes:
    """The GGUF file that llama.cpp's converter would make of a model, without tensors."""
    try:
        pieces, trainer, normalizer = _parsed(data)
    except MessageError as error:
        raise ConversionError(FORMAT, str(error)) from None
    if not pieces:
        raise ConversionError(FORMAT, "the model has no pieces")
    model_type = trainer.get(MODEL_TYPE, UNIGRAM)
    if model_type not in (UNIGRAM, BPE):
        raise ConversionError(FORMAT, f"llama.cpp has models of type 1 (Unigram) and 2 (BPE), not {model_type}")
    is_spm = model_type == BPE
    _warn(trainer, normalizer, is_spm)
    texts, scores, types = padded(FORMAT, pieces, vocab_size)
    entries: dict[str, Any] = {
        "general.architecture": "llama" if is_spm else "t5",
        f"{GGML}model": "llama" if is_spm else "t5",
        f"{GGML}pre": "default",
        f"{GGML}tokens": Packed.strings(texts),
        f"{GGML}scores": scores,
        f"{GGML}token_type": types,
        f"{GGML}add_space_prefix": bool(normalizer.get(ADD_PREFIX, 1)),
    }
    if not is_spm:
        entries[f"{GGML}remove_extra_whitespaces"] = bool(normalizer.get(REMOVE_SPACES, 1))
        if normalizer.get(CHARSMAP):
            entries[f"{GGML}precompiled_charsmap"] = normalizer[CHARSMAP]
    for name, number in SPECIAL_IDS.items():
        id = _signed(trainer.get(number, DEFAULT_IDS[name]))
        if 0 <= id < len(texts):
            entries[GGML + SPECIAL[name]] = id
    return gguf_bytes(entries)


def _parsed(data: bytes) -> tuple[list[tuple[bytes, float, int]], dict[int, Any], dict[int, Any]]:
    """The pieces, and the fields of both settings by number."""
    pieces: list[tuple[bytes, float, int]] = []
    settings: dict[int, dict[int, Any]] = {TRAINER: {}, NORMALIZER: {}}
    for number, value, at in fields(data):
        if number not in (PIECES, TRAINER, NORMALIZER):
            continue
        if not isinstance(value, bytes):
            raise MessageError(f"byte {at}: field {number} is not a message")
        inner = {key: item for key, item, _ in fields(data, at, at + len(value))}
        if number == PIECES:
            pieces.append(_piece(inner, at, len(pieces)))
        else:
            _check_settings(number, inner, at)
            settings[number] |= inner
    return pieces, settings[TRAINER], settings[NORMALIZER]


def _piece(inner: dict[int, Value], at: int, id: int) -> tuple[bytes, float, int]:
    text, score, kind = inner.get(PIECE, b""), inner.get(SCORE, 0.0), inner.get(TYPE, NORMAL_PIECE)
    if not isinstance(text, bytes) or not isinstance(score, float) or not isinstance(kind, int):
        raise MessageError(f"byte {at}: piece {id} has a field of a wrong type")
    if not text or not NORMAL_PIECE <= kind <= BYTE_PIECE:
        raise MessageError(f"byte {at}: piece {id} has the text {text!r} and the type {kind}")
    # The converter does not ask for this type.
    return text, score, NORMAL_PIECE if kind == USER_DEFINED_PIECE else kind


def _check_settings(number: int, inner: dict[int, Value], at: int) -> None:
    numbers = {TRAINER: [MODEL_TYPE, AS_SUFFIX, *SPECIAL_IDS.values()], NORMALIZER: [ADD_PREFIX, REMOVE_SPACES]}
    texts = {TRAINER: [], NORMALIZER: [CHARSMAP]}
    kinds = dict.fromkeys(numbers[number], int) | dict.fromkeys(texts[number], bytes)
    for key, value in inner.items():
        if not isinstance(value, kinds.get(key, object)):
            raise MessageError(f"byte {at}: field {key} of field {number} has a wrong type")


def _signed(value: int) -> int:
    """A varint as protocol buffers have an `int32`."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _warn(trainer: dict[int, Any], normalizer: dict[int, Any], is_spm: bool) -> None:
    """Warns of what the converter leaves out silently."""
    lost = []
    if is_spm and normalizer.get(CHARSMAP):
        lost.append("its character map")
    if is_spm and normalizer.get(REMOVE_SPACES, 1):
        lost.append("that it removes extra spaces")
    if trainer.get(AS_SUFFIX):
        lost.append("that spaces follow words")
    if lost:
        message = f"llama.cpp has no place for a part of the model: {' and '.join(lost)}"
        advice = "compare ids for texts in which it matters"
        warn_of(Finding("conversion-differs", "warning", message, advice))
