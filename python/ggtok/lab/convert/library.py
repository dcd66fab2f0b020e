"""The ids that huggingface/tokenizers itself gives with the BPE of a `tokenizer.json`.

llama.cpp's converter asks that library which pre-tokenizer a file has, and texts on which it and llama.cpp differ are
worth a warning. Source: huggingface/tokenizers `tokenizers/src`. Time: O(n²) for pieces of n symbols, so this is for
short texts. Components that are not here, which are rare, raise `UnknownError`: there are never other ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import pairwise, zip_longest

from ..._ggtok import regex_matches
from .json_parts import Json, mapping, steps
from .vocabulary import BYTE_TOKENS, STAND_INS

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What `ByteLevel` splits by, unless that is switched off."""
CLASSES = {"s": ("Z", "Cc"), "d": ("Nd",), "w": ("L", "M", "Nd", "Nl", "Pc")}
"""The categories of a class of characters; of those of `s`, only spaces."""


MAX_TEXT, MAX_STEPS = 4096, 32
"""The longest text between two components, and the most components; real files need far less."""


class UnknownError(ValueError):
    """A component that is not here."""


class Library:
    """The BPE of a file, given its vocabulary, its merges, and the ids of its added tokens by text."""

    def __init__(
        self, file: Json, vocab: dict[str, int], merges: list[tuple[str, str]], added: Mapping[str, int]
    ) -> None:
        self.file, self.vocab, self.merges, self.added = file, vocab, merges, added
        self.model = mapping(file.get("model"))
        self.ranks = {rule: rank for rank, rule in enumerate(merges)}
        self.normalizers, self.splits = steps(file, "normalizer"), steps(file, "pre_tokenizer")

    def ids(self, text: str) -> list[int]:
        """The ids without those that a post-processor adds. Raises `ValueError`, mostly `UnknownError`."""
        _check(len(self.normalizers) + len(self.splits) <= MAX_STEPS, "that many steps")
        added = sorted((token for token in self.added if token in text), key=len, reverse=True)
        found: list[int] = []
        for fragment in re.split(f"({'|'.join(map(re.escape, added))})", text) if added else [text]:
            if fragment in self.added:
                found.append(self.added[fragment])
                continue
            pieces = [self._normalized(fragment)] if fragment else []
            for step in self.splits:
                pieces = [part for piece in pieces for part in _split(step, piece)]
                _check(sum(map(len, pieces)) <= MAX_TEXT, "a longer text")
            found += [id for piece in pieces for id in self._merged(piece)]
        return found

    def _normalized(self, text: str) -> str:
        for step in self.normalizers:
            match step:
                case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" as form}:
                    text = unicodedata.normalize(form, text)
                case {"type": "Lowercase"}:
                    text = text.lower()
                case {"type": "Prepend", "prepend": str(prefix)}:
                    text = prefix + text
                case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
                    text = text.replace(old, new)
                case {"type": other}:
                    raise UnknownError(f"the normalizer {other!r}")
            _check(len(text) <= MAX_TEXT, "a longer text")
        return text

    def _merged(self, piece: str) -> Iterator[int]:
        model, vocab = self.model, self.vocab
        unknown = vocab.get(str(model.get("unk_token")))
        symbols = [piece] if model.get("ignore_merges") and piece in vocab else []
        for char in "" if symbols else piece:
            spelled = [BYTE_TOKENS[byte] for byte in char.encode()]
            is_spelled = char not in vocab and model.get("byte_fallback") and vocab.keys() >= {*spelled}
            if is_spelled or char in vocab or unknown is not None:  # other characters are left out
                symbols += spelled if is_spelled else [char]
        while len(symbols) > 1:
            rank, at = min((self.ranks.get(pair, len(self.ranks)), at) for at, pair in enumerate(pairwise(symbols)))
            if rank == len(self.ranks):
                break
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        for at, symbol in enumerate(symbols):
            if symbol in vocab:
                yield vocab[symbol]
            elif unknown is not None and (not at or symbols[at - 1] in vocab or not model.get("fuse_unk")):
                yield unknown


def _check(is_known: bool, what: str) -> None:
    if not is_known:
        raise UnknownError(what)


def pattern_of(step: Json) -> str:
    """What a pre-tokenizer matches."""
    kind, split = str(step.get("type", "")), mapping(step.get("pattern"))
    patterns: dict[str, object] = {
        "": "",
        "ByteLevel": GPT2 if step.get("use_regex", True) else "",
        "Digits": r"\p{N}" if step.get("individual_digits") else r"\p{N}+",
        "Punctuation": r"[\p{P}$+<=>^`|~]",
        "Split": split.get("Regex", re.escape(str(split.get("String", "")))),
        "Whitespace": r"[\w\x{200C}\x{200D}]+|[^\w\s\x{200C}\x{200D}]+",
        "WhitespaceSplit": r"\s+",
    }
    found = patterns.get(kind)
    _check(isinstance(found, str), f"the pre-tokenizer {kind!r}")
    return str(found)


def _split(step: Json, piece: str) -> list[str]:
    """A piece as a pre-tokenizer cuts and spells it."""
    kind, regex = str(step.get("type", "")), pattern_of(step)
    behavior = step.get("behavior", "Removed" if kind.startswith("Whitespace") else "Isolated")
    if kind == "ByteLevel" and step.get("add_prefix_space", True) and piece[0] != " ":
        piece = " " + piece
    matches, data = regex_matches(_ours(regex, piece), piece) if regex else [], piece.encode()
    is_known = matches is not None and behavior in ("Isolated", "Removed", "MergedWithPrevious")
    _check(is_known, f"the pattern {regex!r} with the behaviour {behavior!r}")
    places = [0, *(place for match in matches or () for place in match), len(data)]
    parts = [data[start:end].decode() for start, end in pairwise(places)]
    kept, cut = (parts[1::2], parts[::2]) if step.get("invert") or kind == "Whitespace" else (parts[::2], parts[1::2])
    if behavior == "Removed":
        parts = kept
    elif behavior == "MergedWithPrevious":
        parts = ["".join(pair) for pair in zip_longest(kept, cut, fillvalue="")]
    spelled = ["".join(STAND_INS[byte] for byte in part.encode()) for part in parts]
    return [part for part in (spelled if kind == "ByteLevel" else parts) if part]


def _ours(regex: str, piece: str) -> str:
    """A pattern for our engine, which has no Unicode: a class is written as those characters of the piece it has.

    Letters whose case does not matter are written in both.
    """

    def written(word: re.Match[str]) -> str:
        escape, name = word[0][1], word[2]
        if name is None and escape.lower() not in CLASSES:
            return word[0]
        _check(name is None or re.fullmatch("[LMNPSZC][a-z]?", name) is not None, f"the class {word[0]!r}")
        categories, is_not = CLASSES.get(escape.lower(), (name,)), escape.isupper() != bool(word[1])
        has = {char for char in piece if unicodedata.category(char).startswith(categories)}
        if escape in "sS":
            has = {*filter(str.isspace, has)}
        members = {*piece} - has if is_not else has
        return "[" + "".join(rf"\x{{{ord(char):X}}}" for char in {"\U0010ffff", *members}) + "]"

    def cases(group: re.Match[str]) -> str:
        return "(?:" + "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in group[1]) + ")"

    regex = re.sub(r"\(\?i:([^()\\[\]]*)\)", cases, regex)
    return re.sub(r"\\(?:[pP]\{(\^?)(\w+)\}|.)", written, regex, flags=re.DOTALL)
