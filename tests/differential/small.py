"""Small random vocabularies of every kind, written as GGUF files: few letters, so that tokens, merges and ties collide.

`write(kind, seed, path)` always writes the same file for the same kind and seed, and a difference replays by them.
Cut-out texts (control and user-defined tokens) of one length never overlap in a text: which of two such texts
llama.cpp cuts out first depends on its C++ library's sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import gguf

from .answerers import shared

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
ALPHABETS = [
    "ab",
    "abc",
    "aAbB1 ",
    "ab\u2581",
    "a\u00e9\u4e2d\u0301",
    "0123",
    "a.'st",
    "\u0438\u0439x\U0001f600",
    "aA\u00c9\u0130\ufb01",
]
SPACE = "\u2581"
DNA_MARKER = "\ue000"
Row = tuple[bytes, float, int]
"""A token's text, score and type."""


def pieces(rng: Random, alphabet: str, count: int, longest: int = 6) -> list[str]:
    """Distinct random strings, including each letter of the alphabet."""
    found = dict.fromkeys(alphabet)
    for _ in range(count):
        found["".join(rng.choices(alphabet, k=rng.randint(1, longest)))] = None
    return list(found)


def score(rng: Random, coarse: bool) -> float:
    """Coarse scores tie often; the others never do."""
    return -float(rng.randint(0, 4)) if coarse else -rng.expovariate(0.3)


def rows(rng: Random, texts: Iterable[str], kind: int = NORMAL) -> list[Row]:
    """Tokens of one type with random scores."""
    coarse = rng.random() < 0.5
    return [(text.encode("utf-8", "surrogatepass"), score(rng, coarse), kind) for text in texts]


def mixed(rng: Random, texts: Iterable[str]) -> list[Row]:
    """Normal tokens, a few unused ones, and user-defined ones that all differ in length."""
    tokens = rows(rng, texts)
    lengths: set[int] = set()
    for at, (text, value, _) in enumerate(tokens):
        if rng.random() < 0.05:
            tokens[at] = (text, value, UNUSED)
        elif rng.random() < 0.1 and len(text) not in lengths:
            lengths.add(len(text))
            tokens[at] = (text, value, USER_DEFINED)
    return tokens


def bytes_as_hex(rng: Random) -> list[Row]:
    """`<0x00>` to `<0xFF>`."""
    return rows(rng, (f"<0x{byte:02X}>" for byte in range(256)), BYTE)


def byte_letters() -> list[str]:
    """GPT-2's letter for each byte: itself if it is printable, else the next letter starting at U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def merges(rng: Random, letters: list[str], count: int) -> tuple[list[str], list[str]]:
    """Random merges, also of parts that no merge produces, and their results, which become tokens."""
    parts, rules, results = list(letters), [], []
    for _ in range(count):
        left, right = rng.choices(parts, k=2)
        if len(left + right) > 12 or "\n" in left + right:
            continue
        rules.append(f"{left} {right}")
        results.append(left + right)
        if rng.random() < 0.9:
            parts.append(left + right)
    return list(dict.fromkeys(rules)), list(dict.fromkeys(results))


def encoded(alphabet: str) -> list[str]:
    """The byte letters that the alphabet's UTF-8 is written with."""
    letters = byte_letters()
    return list(dict.fromkeys(letters[byte] for byte in f"{alphabet} ".encode()))


def spm(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Pieces with word starts, usually with bytes below them."""
    out.add_tokenizer_model("llama")
    special = [*rows(rng, ["<unk>"], UNKNOWN), *rows(rng, ["<s>", "</s>"], CONTROL)]
    spell = bytes_as_hex(rng) if rng.random() < 0.9 else []
    return [*special, *spell, *mixed(rng, pieces(rng, rng.choice(ALPHABETS) + SPACE, 60))]


def bpe(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Byte-level BPE under a random pre-tokenizer; some merge results and some bytes are not tokens."""
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(rng.choice(["gpt-2", "llama-bpe", "qwen2", "default", "deepseek-v3", "tekken", "bloom"]))
    return _byte_level(rng, out)


def _byte_level(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    used = encoded(rng.choice(ALPHABETS))
    rules, results = merges(rng, used, 60)
    out.add_token_merges(rules)
    kept = [letter for letter in byte_letters() if letter in used or rng.random() < 0.95]
    special = rows(rng, ["<|endoftext|>", "<|im_end|>", "<mask>"], CONTROL)
    return [*rows(rng, kept), *rows(rng, (text for text in results if rng.random() < 0.85)), *special]


def hybriddna(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Byte-level BPE with groups of six bases between markers, a few groups missing."""
    out.add_tokenizer_model("hybriddna")
    out.add_tokenizer_pre("gpt-2")
    groups = {"".join(rng.choices("ACGT", k=6)) for _ in range(300)} | {"AAAAAA", "ACGTAA"}
    block = [*rows(rng, ["<oov>"]), *rows(rng, (group + DNA_MARKER for group in sorted(groups)))]
    markers = [row for row in rows(rng, ["<dna>", "</dna>"]) if rng.random() < 0.95]
    return [*_byte_level(rng, out), *markers, *block]


def gemma4(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """BPE over raw UTF-8 with escaped spaces and bytes below it."""
    out.add_tokenizer_model("gemma4")
    alphabet = rng.choice(ALPHABETS).replace(" ", "") + SPACE
    rules, results = merges(rng, list(dict.fromkeys(alphabet)), 60)
    out.add_token_merges(rules)
    special = [*rows(rng, ["<pad>", "<eos>", "<bos>"], CONTROL), *rows(rng, ["<unk>"], UNKNOWN)]
    out.add_bos_token_id(2)
    texts = [*alphabet, "\n", "\n\n", *(text for text in results if rng.random() < 0.85)]
    return [*special, *bytes_as_hex(rng), *rows(rng, dict.fromkeys(texts))]


def whitespace(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """BPE over raw UTF-8 words."""
    out.add_tokenizer_model("whitespace")
    out.add_tokenizer_pre("whitespace")
    out.add_bool("tokenizer.ggml.normalizer.lowercase", rng.random() < 0.5)
    alphabet = list(dict.fromkeys(rng.choice(ALPHABETS).replace(" ", "")))
    rules, results = merges(rng, alphabet, 60)
    out.add_token_merges(rules)
    special = rows(rng, ["<s>", "</s>", "<mask>"], CONTROL)
    return [*special, *rows(rng, dict.fromkeys([*alphabet, *results])), *bytes_as_hex(rng)]


def wpm(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Words and their continuations."""
    out.add_tokenizer_model("bert")
    out.add_unk_token_id(1)
    out.add_bos_token_id(2)
    out.add_sep_token_id(3)
    out.add_bool("tokenizer.ggml.normalizer.lowercase", rng.random() < 0.7)
    words = pieces(rng, rng.choice(ALPHABETS).replace(" ", ""), 60)
    texts = [(SPACE if rng.random() < 0.5 else "") + word for word in words]
    special = rows(rng, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], CONTROL)
    return [*special, *rows(rng, dict.fromkeys(texts))]


def ugm(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Pieces with scores, under each whitespace option, with and without a character map."""
    out.add_tokenizer_model("t5")
    for key in ("add_space_prefix", "remove_extra_whitespaces"):
        out.add_bool(f"tokenizer.ggml.{key}", rng.random() < 0.5)
    if rng.random() < 0.5:
        out.add_precompiled_charsmap(charsmap())
    special = [*rows(rng, ["<pad>", "</s>"], CONTROL), *rows(rng, ["<unk>"], UNKNOWN)]
    return [*special, *mixed(rng, pieces(rng, rng.choice(ALPHABETS) + SPACE, 80))]


def charsmap() -> bytes:
    """A real character map: in the file, two 4-byte types and an 8-byte length separate the key from the bytes."""
    content = (shared() / "vocabs" / "ugm-nfkc-small.gguf").read_bytes()
    key = b"tokenizer.ggml.precompiled_charsmap"
    at = content.index(key) + len(key) + 16
    return content[at : at + int.from_bytes(content[at - 8 : at], "little")]


def rwkv(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Escaped byte strings: every single byte, and longer strings whose prefixes need not be tokens."""
    out.add_tokenizer_model("rwkv")
    escapes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    single = [escapes.get(chr(b), chr(b)) if b < 128 and b != 0 else f"\\x{b:02x}" for b in range(256)]
    longer = ["".join(escapes.get(c, c) for c in text) for text in pieces(rng, rng.choice(ALPHABETS) + "\n\\", 60)]
    return rows(rng, ["<s>", *dict.fromkeys([*single, *longer])])


def plamo2(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """Pieces with scores over bytes."""
    out.add_tokenizer_model("plamo2")
    special = [*rows(rng, ["<|plamo:unk|>"], UNKNOWN), *rows(rng, ["<|plamo:bos|>", "<|plamo:eos|>"], CONTROL)]
    return [*special, *bytes_as_hex(rng), *rows(rng, pieces(rng, rng.choice(ALPHABETS), 80))]


def test(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """llama.cpp's own test kind: a hash of each five bytes."""
    out.add_tokenizer_model("test")
    return [*rows(rng, ["<s>", "</s>"], CONTROL), *mixed(rng, pieces(rng, rng.choice(ALPHABETS), 40))]


def none(rng: Random, out: gguf.GGUFWriter) -> list[Row]:
    """No vocabulary, only its size."""
    out.add_tokenizer_model(rng.choice(["none", "no_vocab"]))
    out.add_vocab_size(rng.randrange(40))
    return []


KINDS: dict[str, Callable[[Random, gguf.GGUFWriter], list[Row]]] = {
    builder.__name__: builder
    for builder in (spm, bpe, hybriddna, gemma4, whitespace, wpm, ugm, rwkv, plamo2, test, none)
}


def write(kind: str, seed: int, path: Path) -> None:
    """Writes the vocabulary of this kind and seed; now and then without scores or types."""
    rng = Random(f"{kind}/{seed}")
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("phi-3-small" if rng.random() < 0.05 else "small")
    tokens = KINDS[kind](rng, out)
    unique = {text: (text, value, token_type) for text, value, token_type in reversed(tokens)}
    tokens = list(reversed(unique.values()))
    if tokens:
        out.add_token_list([text for text, _, _ in tokens])
    if tokens and rng.random() < 0.9:
        out.add_token_scores([value for _, value, _ in tokens])
    if tokens and rng.random() < 0.9:
        out.add_token_types([token_type for _, _, token_type in tokens])
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.close()
