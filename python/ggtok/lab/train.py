"""Training: reads a corpus in batches, and makes a tokenizer of what the core's trainers return.

The core counts words and merges; this file knows which keys of a GGUF file the settings of each kind become.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack
from functools import cache
from itertools import repeat
from operator import index as as_int
from tempfile import TemporaryDirectory
from typing import Any, Literal, SupportsIndex, TypeAlias

from .._ggtok import Trainer, compile_charsmap, families, pretokenizers
from ..corpus.sources import format_of_rows
from ..errors import ArgumentTypeError, TrainingError, UnsupportedError
from ..tokenizer.arguments import items_of, mapping, one_of, without_surrogates
from ..tokenizer.base import Texts, TokenizerT
from ..tokenizer.findings import Finding, warn_of
from ..tokenizer.keys import (
    CHAT_TEMPLATE,
    CONTROL,
    FLAGS,
    GGML,
    PRE,
    SPECIAL,
    TOKEN_TYPE_COUNT,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
)
from ..tokenizer.numbers import at_least, num_threads
from ..tokenizer.text_or_path import either, paths, refuse_lone, watched
from ..tokenizer.vocab import KINDS_OF_LLAMA_CPP
from .convert.gguf import Packed, gguf_bytes
from .convert.pre_by_digest import nearest
from .convert.vocabulary import CODED

Corpus: TypeAlias = (
    "os.PathLike[str] | Texts | Iterable[os.PathLike[str]] | Mapping[str, int] | Mapping[os.PathLike[str], int]"
)

BLOCK = 8 << 20
"""How many bytes of a file are read at once, and about how many characters of an iterable are collected."""

CASELESS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
"""A part of many patterns, and how llama.cpp writes it."""

MAX_TEXTS = 1 << 16
"""How many texts of an iterable are collected."""

_ROLES: dict[str, dict[str, str]] = {
    "bpe": {"bos": "<|endoftext|>", "eos": "<|endoftext|>"},
    "spm": {"unk": "<unk>", "bos": "<s>", "eos": "</s>"},
    "unigram": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "wordpiece": {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
}
"""The special tokens of each kind if none are given."""

_KEYS: dict[str, dict[str, Any]] = {
    "bpe": {"general.architecture": "llama", f"{GGML}model": "gpt2"},
    "spm": {"general.architecture": "llama", f"{GGML}model": "llama"},
    "unigram": {"general.architecture": "t5", f"{GGML}model": "t5"},
    "wordpiece": {"general.architecture": "bert", f"{GGML}model": "bert", TOKEN_TYPE_COUNT: 2},
}
"""What llama.cpp needs to know a file by."""

Normalization = Literal["identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"]

_OF_SENTENCEPIECE: dict[str, Any] = {
    **{"max_token_length": 16, "character_coverage": 0.9995, "limit_alphabet": None, "add_space_prefix": True},
    **{"split_by_whitespace": True, "split_by_unicode_script": True, "split_by_number": True},
}
_OF_SPM = {"min_frequency": 1, "normalization": "identity", "normalize_corpus_only": False}
_OF_UNIGRAM = {"seed_size": 1_000_000, "shrinking_factor": 0.75, "num_sub_iterations": 2, "normalization": "nmt_nfkc"}

DEFAULTS: dict[str, dict[str, Any]] = {
    "bpe": {
        **{"pre": "qwen2", "pattern": None, "special_first": False, "min_frequency": 2, "max_token_length": None},
        **{"whole_characters": False, "transition": None, "first_pre": "qwen2", "add_bos": False, "add_eos": False},
    },
    "spm": {
        **_OF_SENTENCEPIECE | _OF_SPM,
        **{"byte_fallback": True, "split_digits": True, "allow_whitespace_only_pieces": True},
        **{"remove_extra_whitespaces": False, "add_bos": True, "add_eos": False},
    },
    "unigram": {
        **_OF_SENTENCEPIECE | _OF_UNIGRAM,
        **{"byte_fallback": False, "split_digits": False, "allow_whitespace_only_pieces": False},
        **{"remove_extra_whitespaces": True, "add_bos": False, "add_eos": True},
    },
    "wordpiece": {
        **{"min_frequency": 2, "max_token_length": None, "limit_alphabet": None},
        **{"by": "frequency", "lowercase": True, "strip_accents": None},
    },
}
"""The settings of each kind with their defaults."""


def train(
    cls: type[TokenizerT],
    /,
    texts: Corpus | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    field: str | None = None,
    kind: Literal["bpe", "spm", "unigram", "wordpiece"],
    vocab_size: int,
    special: Mapping[str, str] | None = None,
    control_tokens: Iterable[str] = (),
    user_defined_tokens: Iterable[str] = (),
    unused_tokens: Iterable[str] = (),
    name: str | None = None,
    chat_template: str | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    threads: int | None = None,
    memory: int | None = None,
    **settings: Any,
) -> TokenizerT:
    """Trains a new vocabulary.

    The result depends on the corpus and the settings, not on `threads`, and on `memory` only where a warning says so.

    Args:
        texts: The corpus: an iterable of texts, among which may be paths (`os.PathLike`), or an Arrow column of texts.
            It is read once, in batches, so it may be larger than memory. A `str` in it is a text, never a path. A
            mapping from texts or paths to counts gives what the texts, each repeated so often, would give.
        files: Instead of `texts`, the paths of text files in UTF-8. For `spm` and `unigram` each line of a file is a
            text; for the others, a file is one text, read in blocks of whole lines. JSON Lines, Parquet and Arrow have
            a text per row, and so have CSV, TSV and JSON arrays with `field`. Compressed files are unpacked.
        field: Which column or field of these `files` is the text. Default: `text`.
        kind: `bpe` (byte-level), `spm` (SentencePiece's BPE), `unigram` or `wordpiece`. llama.cpp's names `ugm` and
            `wpm` are read too.
        vocab_size: The most tokens, special ones included. There are fewer, with a warning, if the corpus does not give
            as many.
        special: Special tokens by role: `bos`, `eos`, `eot`, `unk`, `sep`, `pad`, `mask`, `fim_pre`, ... Default:
            `<|endoftext|>` as `bos` and `eos` for `bpe`; `<unk>`, `<s>` and `</s>` for `spm`; `<pad>`, `</s>` (as
            `eos`) and `<unk>` for `unigram`; `[PAD]`, `[UNK]`, `[CLS]` (as `bos`), `[SEP]` and `[MASK]` for
            `wordpiece`.
        control_tokens: Further tokens that are read in a text only with `parse_special=True`.
        user_defined_tokens: Tokens that are read in every text.
        unused_tokens: Tokens reserved for later.
        name: `general.name` of the file.
        chat_template: A Jinja template.
        progress: Called at most ten times a second with the phase (`counting`, then `merging`, or `dropping` for
            `unigram`), how much is done (bytes of text, tokens, or pieces), and of how much (0 while counting). What it
            raises stops the training.
        threads: How many threads count. Default: the number of cores that this process may use.
        memory: How many bytes counted words may take before they go to a temporary file. If all different words take
            more, at 16 bytes each in addition to their text, the rarest are left out, and a warning says which share of
            the text that is. Training itself needs memory beyond this. Default: no limit.
        **settings: Those of the kind:

            - all: `min_frequency`, how often a pair must occur to be merged (`bpe` and `wordpiece` 2, `spm` 1);
              `max_token_length`, in bytes for `bpe` (no limit), otherwise in characters (`spm` and `unigram` 16); for
              all but `bpe`, `limit_alphabet`, the most characters that become tokens (no limit).
            - `bpe`: `pre`, the pre-tokenizer (`"qwen2"`), or `pattern`, a regular expression or a list of several that
              one of them has, since a GGUF file holds no pattern but a name; `special_first`, whether special tokens
              have the first ids instead of the last; `whole_characters`, whether every character of the corpus becomes
              a token before pairs are counted (`max_token_length` is in characters then); `add_bos` and `add_eos` (all
              `False`). For
              SuperBPE (`pre="superbpe"`): `transition`, after how many tokens merges may cross words, and
              `first_pre`, the pre-tokenizer before (`"qwen2"`).
            - `spm`, as sentencepiece's trainer calls them: `byte_fallback`, `split_by_whitespace`,
              `split_by_unicode_script`, `split_by_number`, `split_digits`, `allow_whitespace_only_pieces` (all `True`),
              `remove_extra_whitespaces` (`False`: llama.cpp does not remove any), `character_coverage` (0.9995); and
              `add_space_prefix` (`True`), `add_bos` (`True`), `add_eos` (`False`).
              `normalization` is for llama.cpp's sake `"identity"`: its SPM encodes text as it is. Others, as for
              `unigram`, need `normalize_corpus_only=True`, and callers must normalize what they encode.
            - `unigram`: those of `spm`, but `byte_fallback`, `split_digits`, `allow_whitespace_only_pieces` and
              `add_bos` are `False`, `remove_extra_whitespaces` and `add_eos` are `True`, and there is no
              `min_frequency`; llama.cpp's Unigram uses no byte tokens. `normalization` (`"nmt_nfkc"`) is stored in the
              file: `"nfkc"`, `"nfkc_cf"` or `"nmt_nfkc_cf"` (with case folding), `"identity"` (none), a path
              (`os.PathLike`) of rules, or a mapping from texts to texts. A file of rules has one in a line: code points
              in hexadecimal with spaces between them, a tab, and the code points that replace them. `seed_size`
              (1,000,000), `shrinking_factor` (0.75) and `num_sub_iterations` (2) are sentencepiece's.
            - `wordpiece`: `by`, what pairs are chosen by, `"frequency"` or `"likelihood"`; `lowercase` (`True`) and
              `strip_accents` (as `lowercase`).

    Returns:
        A tokenizer, as if opened from a file.

    Raises:
        TrainingError: The corpus has no words, the vocabulary is too small for the alphabet, two tokens are equal, or a
            setting or a count has a wrong value.
        UnsupportedError: No pre-tokenizer has that name or pattern.
        GgtokError: A text is not UTF-8, or a row of a file has none; the message says which, and where.
        OSError: A file cannot be read, or the temporary file cannot be written.
        TypeError: An argument is of another type, such as a single `str` as `texts`; there are neither texts nor files,
            or both; or a setting is not one of the kind.

    Warns (`TokenizerWarning`) of words that were left out, of fewer tokens than `vocab_size`, and of a text that is the
    name of an existing file.

    Training takes O(n) time for n bytes to count them, and O(m log m) to merge different words of m bytes together.
    Ctrl-C stops it.

    >>> import ggtok
    >>> tok = ggtok.train(["low lower lowest"] * 10, kind="bpe", vocab_size=260)
    >>> tok
    <ggtok.Tokenizer kind='bpe', pre='qwen2', 260 tokens>
    >>> [tok.piece(id) for id in tok.encode("a lower flow")]
    [b'a', b' low', b'e', b'r', b' ', b'f', b'low']
    """
    either(texts, files, "train")
    if not isinstance(texts, Mapping):
        refuse_lone(texts)
    corpus: Any = texts if files is None else paths(files)
    kind = KINDS_OF_LLAMA_CPP.get(kind, kind)
    one_of("kind", kind, DEFAULTS, TrainingError)
    for setting in settings:
        if setting not in DEFAULTS[kind]:
            known = ", ".join(sorted(DEFAULTS[kind]))
            raise ArgumentTypeError(f"{setting!r} is not a setting of kind {kind!r}, which has {known}")
    chosen: dict[str, Any] = DEFAULTS[kind] | settings
    if (pattern := chosen.pop("pattern", None)) is not None:
        if "pre" in settings:
            raise TrainingError("pre and pattern: give only one")
        chosen["pre"] = _pre_of(pattern)
    roles = _ROLES[kind] if special is None else mapping("special", special)
    for role in roles:
        if role not in SPECIAL:
            raise TrainingError(f"special: unknown role {role!r}: the roles are {', '.join(sorted(SPECIAL))}")

    unknown = ("unk",) if kind in ("spm", "unigram") else ()
    tokens = {text: UNKNOWN if role in unknown else CONTROL for role, text in roles.items()}
    special_tokens = list(tokens.items())
    further = ((control_tokens, CONTROL), (user_defined_tokens, USER_DEFINED), (unused_tokens, UNUSED))
    for tokens_of, token_type in further:
        special_tokens += [(text, token_type) for text in items_of("the tokens of each kind", tokens_of, "str")]

    for text, _ in special_tokens:
        without_surrogates("a special token", text)

    size = at_least(1, vocab_size, "vocab_size")
    core_settings = _core_settings(kind, chosen) | {
        "vocab_size": size,
        "special_tokens": special_tokens,
        "threads": num_threads(threads),
    }
    with ExitStack() as stack:
        spill = None
        if memory is not None:
            folder = stack.enter_context(TemporaryDirectory(prefix="ggtok-"))
            spill = at_least(1, memory, "memory"), [os.path.join(folder, f"words-{number}") for number in range(2)]
        trainer = Trainer(kind, core_settings, spill, progress)
        try:
            count(trainer, corpus, field)
            for left_out in trainer.finish_counting():
                warn_of(Finding("words-left-out", "warning", left_out, "raise memory to train on all words"))
            found, types, scores, merges = trainer.finish()
        except OSError as error:
            if error.filename is None and spill is not None:
                raise OSError(error.errno or errno.EIO, error.strerror or str(error), folder) from error
            raise

    if len(found) < size:
        given = f"the texts give {len(found):,} tokens, fewer than the vocab_size of {size:,}"
        warn_of(Finding("vocabulary-smaller", "warning", given, "train on more texts, or with a lower min_frequency"))
    first = len(found) - len(special_tokens) if kind == "bpe" and not chosen["special_first"] else 0
    ids = {text: first + number for number, (text, _) in enumerate(special_tokens)}
    entries: dict[str, Any] = _KEYS[kind] | {
        PRE: chosen.get("pre", "default"),
        f"{GGML}tokens": found,
        f"{GGML}token_type": types,
    }
    if kind == "bpe":
        entries[f"{GGML}merges"] = Packed.strings(merges)
    if kind in ("spm", "unigram"):
        entries[f"{GGML}scores"] = scores
    entries |= {f"{GGML}{SPECIAL[role]}": ids[text] for role, text in roles.items()}
    for flag, key in FLAGS.items():
        if flag in chosen and (kind, flag) != ("spm", "remove_extra_whitespaces"):  # SPM removes none
            entries[GGML + key] = bool((chosen | core_settings)[flag])
    if kind == "unigram" and core_settings["charsmap"]:
        entries[f"{GGML}precompiled_charsmap"] = core_settings["charsmap"]
    for key, value in (("general.name", name), (CHAT_TEMPLATE, chat_template)):
        if value is not None:
            entries[key] = value
    return cls.from_gguf(gguf_bytes(entries))


def _core_settings(kind: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The settings as the core takes them."""
    settings = {name: value for name, value in chosen.items() if name not in ("add_bos", "add_eos")}
    if kind == "bpe":
        first_pre, transition = settings.pop("first_pre"), settings.pop("transition")
        settings["transition"] = None if transition is None else (as_int(transition), first_pre)
    if kind in ("spm", "unigram"):
        settings["charsmap"] = _charsmap(settings.pop("normalization"))
    if kind == "spm" and settings["charsmap"] and not settings.pop("normalize_corpus_only", False):
        raise TrainingError(
            "normalization: llama.cpp's SPM does not normalize the text that it encodes; with "
            "normalize_corpus_only=True only the corpus is normalized"
        )
    settings.pop("normalize_corpus_only", None)
    if kind == "wordpiece":
        by = settings.pop("by")
        one_of("by", by, ("frequency", "likelihood"), TrainingError)
        strip = chosen["lowercase"] if chosen["strip_accents"] is None else chosen["strip_accents"]
        settings |= {"by_likelihood": by == "likelihood", "strip_accents": bool(strip)}
    return settings


_named_charsmap = cache(compile_charsmap)


def _charsmap(normalization: str | os.PathLike[str] | Mapping[str, str]) -> bytes:
    """The character map of a name, of the path of a file of rules, or of rules."""
    if isinstance(normalization, str):
        one_of("normalization", normalization, Normalization, TrainingError)
        return _named_charsmap(name=normalization)
    if isinstance(normalization, os.PathLike):
        with open(normalization, encoding="utf-8-sig") as file:
            return compile_charsmap(tsv=file.read())
    rules = (
        "\t".join(" ".join(f"{ord(character):X}" for character in text) for text in rule)
        for rule in mapping("normalization", normalization).items()
    )
    return compile_charsmap(tsv="\n".join(rules))


def _pre_of(pattern: str | Sequence[str]) -> str:
    """The name of a pre-tokenizer with a pattern, or with several that are applied in turn; the most common one."""
    given = [pattern] if isinstance(pattern, str) else items_of("pattern", pattern, "str")
    wanted = [str(each).replace(*CASELESS) for each in given]
    rows, names = families(), pretokenizers()
    for name in ("gpt-2", "llama-bpe", "qwen2", "gpt-4o", *names):
        family = names[name]["family"]
        if family not in CODED and rows[family]["byte_encode"] and rows[family]["patterns"] == wanted:
            return name
    near = nearest("".join(wanted))
    why = f"a GGUF file holds the name of a pre-tokenizer, and none of llama.cpp's has the pattern {pattern!r}"
    raise UnsupportedError(f"{why}: the nearest are {', '.join(near)}", "".join(wanted), tuple(near))


def _checked_count(text: object, count: object) -> int:
    if not isinstance(count, SupportsIndex) or as_int(count) not in range(1 << 56):
        raise TrainingError(f"the count of {text!r:.40} must be an integer from 0 to 2**56 - 1, not {count!r}")
    return as_int(count)


def count(trainer: Trainer, corpus: Corpus, field: str | None = None) -> None:
    """Passes the corpus to the trainer, batch by batch."""
    if isinstance(corpus, os.PathLike):
        return _count_file(trainer, corpus, field, 1)
    if hasattr(corpus, "__arrow_c_array__") or hasattr(corpus, "__arrow_c_stream__"):
        return trainer.push(corpus, 0, [])
    batch: list[Any] = []
    counts: list[int] = []
    length = first = 0
    all_counts = map(_checked_count, corpus, corpus.values()) if isinstance(corpus, Mapping) else repeat(1)
    for number, (text, count) in enumerate(zip(watched(corpus), all_counts, strict=False)):
        if isinstance(text, os.PathLike):
            _count_file(trainer, text, field, count)
            continue
        batch.append(text)
        counts.append(count)
        length += len(text) if isinstance(text, Sized) else 0  # the core names what is not a text
        if length >= BLOCK or len(batch) >= MAX_TEXTS:
            trainer.push(batch, first, counts)
            batch, counts, length, first = [], [], 0, number + 1
    return trainer.push(batch, first, counts)


def _count_file(trainer: Trainer, path: str | os.PathLike[str], field: str | None, count: int) -> None:
    """Passes a file to the trainer, block by block. A byte-order mark is not text."""
    if (rows := format_of_rows(os.fspath(path), field, ("jsonl",))) is not None:
        from ..corpus.reading import documents

        for texts in documents(os.fspath(path), field, *rows):
            trainer.push(texts, 0, [count] * len(texts))
        return
    with open(path, "rb") as file:
        rest, start = file.read(3), 0
        if rest == b"\xef\xbb\xbf":
            rest, start = b"", 3
        while True:
            block = file.read(BLOCK)
            text = rest + block
            taken = trainer.push_file(text, count, not block, os.fspath(path), start)
            rest = text[taken:]
            start += taken
            if not block:
                return
