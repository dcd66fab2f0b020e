"""Where llama.cpp ends its process, never ends, or overflows its stack: what ggtok answers instead.

docs/deviations.md lists every case and names its test, here or elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import VOCABULARIES
from ggtok import GgtokError, Tokenizer, TokenizerWarning, VocabularyError, _ggtok
from oracles.gguf_vocab import TokenType, Vocab, write
from oracles.spelling import BYTE_TOKENS, BYTES

NORMAL, CONTROL, BYTE = int(TokenType.NORMAL), int(TokenType.CONTROL), int(TokenType.BYTE)


def vocab(model: str, texts: list[bytes], types: list[int] | None = None, **fields: Any) -> Vocab:
    """`<unk>`, `<s>` and `</s>`, then `texts`, which are normal tokens unless `types` says otherwise."""
    types = [2, CONTROL, CONTROL] + (types or [NORMAL] * len(texts))
    return Vocab(model, [b"<unk>", b"<s>", b"</s>", *texts], types, bos=1, eos=2, unk=0, **fields)


def with_bytes(model: str, *texts: bytes, **fields: Any) -> Vocab:
    """As `vocab`, with a token for each byte, `<0x00>` first."""
    return vocab(model, [*BYTE_TOKENS, *texts], [BYTE] * 256 + [NORMAL] * len(texts), **fields)


def opened(vocab: Vocab, **overrides: Any) -> Tokenizer:
    keys = {f"tokenizer.ggml.{key}": value for key, value in overrides.items()}
    return Tokenizer.from_gguf(vocab.gguf(), overrides=keys)


# Texts

KINDS = {
    "gpt2": vocab("gpt2", BYTES, pre="gpt-2", escape_whitespaces=False),
    "gpt2, llama-bpe": vocab("gpt2", BYTES, pre="llama-bpe", escape_whitespaces=False),
    "gpt2, default": vocab("gpt2", BYTES, pre="default", escape_whitespaces=False),
    "gemma4": with_bytes("gemma4", "\ufffd".encode()),
    "whitespace": with_bytes("whitespace", "\ufffd".encode(), b"a", b"b", pre="whitespace"),
    "hybriddna": vocab("hybriddna", [*BYTES, b"<dna>", b"</dna>", b"<oov>"], pre="gpt-2"),
    "bert": vocab("bert", [b"\xe2\x96\x81a", b"b", b"\xe2\x96\x81b"], sep=2),
}


@pytest.mark.parametrize("beyond", [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_code_point_beyond_unicode_reads_as_ufffd(kind: str, beyond: bytes) -> None:
    tokenizer = opened(KINDS[kind])
    for text in (b"%s", b"a%sb", b" a %s b\n", b"%s%s" % (b"1" * 20, b"%s")):
        assert tokenizer.encode(text % beyond) == tokenizer.encode(text % "\ufffd".encode())


RUNS = ["a", " ", "\n", "1", "<", "'s", "a ", "\u4e00", "\u0301", "\U0001f600", "\u0661", "\x00"]
RUN = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from ggtok import Tokenizer

path, *pre_tokenizers = sys.argv[1:]

def run(tokenizer, unit):
    size = 300_000 // len(unit.encode())
    short, long = (tokenizer.count(unit * length, add_special=False) for length in (size // 10, size))
    assert long <= 10 * short + 10, (unit, short, long)

with ThreadPoolExecutor() as pool:
    for pre in pre_tokenizers or [None]:
        print(pre, flush=True)
        tokenizer = Tokenizer.from_gguf(path, overrides={{"tokenizer.ggml.pre": pre}} if pre else None)
        list(pool.map(run, [tokenizer] * {len(RUNS)}, {RUNS!r}))
"""
FAMILIES = sorted({row["family"]: name for name, row in reversed(_ggtok.pretokenizers().items())}.values())


def run_all(path: Path, *pre_tokenizers: str) -> None:
    """300 kB of each run in its own process, which a stack overflow would end; the timeout would end a hang."""
    command = [sys.executable, "-c", RUN, str(path), *pre_tokenizers]
    subprocess.run(command, check=True, timeout=300, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("first", range(0, len(FAMILIES), 10))
def test_long_runs_of_every_family(first: int) -> None:
    """The last name that the process prints is that of the family at fault."""
    run_all(VOCABULARIES / "bpe.gguf", *FAMILIES[first : first + 10])


OTHERS = {
    "rwkv": vocab("rwkv", [f"\\x{byte:02x}".encode() for byte in range(256)] + [b"aa", b"aaaa"]),
    "plamo2": with_bytes("plamo2", b"a", b"aa", "\u4e00".encode(), scores=[0.0] * 259 + [-1.0, -1.5, -2.0]),
    "hybriddna": KINDS["hybriddna"],
    "whitespace": KINDS["whitespace"],
    "gemma4": KINDS["gemma4"],
}


@pytest.mark.parametrize("kind", ["spm", "wordpiece", "unigram", *OTHERS])
def test_long_runs_of_every_kind(kind: str, tmp_path: Path) -> None:
    path = VOCABULARIES / f"{kind}.gguf"
    if kind in OTHERS:
        path = tmp_path / "small.gguf"
        path.write_bytes(OTHERS[kind].gguf())
    run_all(path)


def test_rwkv_byte_that_only_begins_tokens_is_unknown() -> None:
    """llama.cpp goes back to the beginning of the text there, for ever."""
    tokenizer = opened(vocab("rwkv", [b"\\n", b"b", b"ax"]))
    ids = {"unk": 0, "b": 4, "ax": 5}
    assert tokenizer.encode("bab") == [ids["b"], ids["unk"], ids["b"]]
    assert tokenizer.encode("axa") == [ids["ax"], ids["unk"]]


def test_spaces_inside_pieces_merge() -> None:
    """The `whitespace` model takes whitespace out before this pre-tokenizer; with another model llama.cpp aborts."""
    tokens = [b"a", b"b", b"ab", b" "]
    tokenizer = opened(with_bytes("gpt2", *tokens, merges=[b"a b"], pre="whitespace"))
    _, b, ab, space = (tokenizer.vocab.id(text) for text in tokens)
    assert tokenizer.encode("ab  b", add_special=False) == [ab, space, space, b]


def test_an_overlong_space_is_not_escaped() -> None:
    """llama.cpp escapes spaces before it decodes UTF-8. Beside a space that is left it aborts."""
    texts = [b" ", "\u2581".encode(), b"a", b"\n", b"\n\n", b"a a", "\u2581a".encode()]
    tokenizer = opened(vocab("gemma4", texts, merges=[b"a  ", "\u2581 a".encode()]))
    raw, escaped, a, newline = (tokenizer.vocab.id(text) for text in (" ", "\u2581", "a", "\n"))
    for space in (b"\xc0\xa0", b"\xe0\x80\xa0", b"\xf0\x80\x80\xa0"):
        for text, ids in [
            (b"%s", [raw]),
            (b"\n%s\n", [newline, raw, newline]),
            (b" %s ", [escaped, raw, escaped]),
            (b"a%sa", [a, raw, a]),
            (b"%s" * 3 % ((b"%s",) * 3), [raw] * 3),
            (b"a a" * 20 + b"%s", None),
        ]:
            whole = text.replace(b"%s", space)
            found = tokenizer.encode(whole, add_special=False)
            assert ids is None or found == ids
            assert found[-1] != escaped or text.endswith(b" ")
            assert tokenizer.explain(whole, add_special=False).ids == found
            stream = tokenizer.encoder(add_special=False)
            parts = [stream.push(whole[at : at + 1]) for at in range(len(whole))]
            assert [id for part in [*parts, stream.flush()] for id in part] == found
            assert tokenizer.encode_with_offsets(whole, unit="byte").offsets[-1, 1] == len(whole)


def test_spm_byte_without_a_token_is_unknown() -> None:
    tokenizer = opened(vocab("llama", [b"a"]))
    assert tokenizer.encode("axa", add_special=False) == [3, 0, 3]


@pytest.mark.parametrize(
    ("vocabulary", "absent"),
    [
        (vocab("gpt2", [b"a"], pre="gpt-2", add_eos=True), "EOS"),
        (vocab("t5", [b"a"], add_bos=True), "BOS"),
        (KINDS["bert"], "BOS"),
    ],
    ids=["gpt2", "t5", "bert"],
)
def test_a_missing_token_that_must_be_added(vocabulary: Vocab, absent: str) -> None:
    metadata = {key: value for key, value in vocabulary.metadata().items() if not key.endswith("token_id")}
    with pytest.warns(TokenizerWarning) as warned:
        tokenizer = Tokenizer.from_gguf(write(metadata))
    assert any(absent in str(warning.message) for warning in warned)
    tokenizer.encode("a", add_special=False)
    with pytest.raises(VocabularyError, match=absent):
        tokenizer.encode("a")


def test_a_text_beyond_32_bit_lengths() -> None:
    text = bytes(1 << 31)  # zeros that the system provides only when somebody reads them
    for call in (Tokenizer.builtin("bpe").encode, Tokenizer.builtin("spm").count):
        with pytest.raises(GgtokError, match="2147483648 bytes"):
            call(text)


# Vocabularies


@pytest.mark.parametrize("model", ["none", "no_vocab"])
def test_no_vocabulary(model: str) -> None:
    """llama.cpp opens this file and aborts when asked to tokenize."""
    metadata = {"general.architecture": "llama", "llama.vocab_size": 32, "tokenizer.ggml.model": model}
    tokenizer = Tokenizer.from_gguf(write(metadata))
    assert (tokenizer.vocab.kind, len(tokenizer.vocab)) == ("none", 32)
    for call in (tokenizer.encode, tokenizer.count):
        with pytest.raises(VocabularyError, match="no vocabulary"):
            call("text")


def test_duplicate_tokens() -> None:
    with pytest.raises(VocabularyError, match="tokens 3 and 5 share the text"):
        opened(vocab("llama", [b"a", b"b", b"a"]))


@pytest.mark.parametrize("texts", [[b"a", b"b"], [b"a", b"b", b"\\nx"]])
def test_rwkv_without_a_newline(texts: list[bytes]) -> None:
    """llama.cpp never gets through the second file: it tokenizes a newline while it loads."""
    tokenizer = opened(vocab("rwkv", texts))
    assert tokenizer.vocab.nl_id is None
    assert tokenizer.encode("a\nb") == [3, 0, 4]


def test_a_test_vocabulary_without_tokens() -> None:
    with pytest.raises(VocabularyError, match="no list of tokens"):
        Tokenizer.from_gguf(write({"tokenizer.ggml.model": "test", "tokenizer.ggml.tokens": []}))


@pytest.mark.parametrize(
    ("model", "text", "problem"),
    [
        ("llama", b"<0", 'byte token 4 has the text "<0", not <0xXX>'),
        ("t5", b"<0", 'byte token 4 has the text "<0", not <0xXX>'),
        ("bert", b"<0x41>", "token 4 is a byte token, which WordPiece does not have"),
    ],
)
def test_byte_tokens_that_name_no_byte(model: str, text: bytes, problem: str) -> None:
    with pytest.raises(VocabularyError, match=problem):
        opened(vocab(model, [b"a", text], [NORMAL, BYTE], sep=2))


def test_plamo2_needs_all_bytes() -> None:
    with pytest.raises(VocabularyError, match="0x41"):
        opened(vocab("plamo2", [text for text in BYTE_TOKENS if text != b"<0x41>"], [BYTE] * 255))


def test_phi3_without_its_tokens() -> None:
    with pytest.raises(VocabularyError, match="endoftext"):
        opened(vocab("llama", [b"a"], name="Phi-3-mini"))


def test_a_score_that_is_not_a_number_is_the_lowest() -> None:
    texts = [b"a", b"b", b"c", b"ab", b"bc"]
    scores = [0.0, 0.0, 0.0, -1.0, -1.0, -1.0, float("nan"), -9.0]
    tokenizer = opened(vocab("llama", texts, scores=scores))
    assert tokenizer.encode("abc", add_special=False) == [3, 7]
    assert tokenizer.encode("ab", add_special=False) == [6]


def test_token_texts_beyond_unicode_are_refused() -> None:
    """llama.cpp refuses them too if it reads texts as characters."""
    text = b"a\xf4\x90\x80\x80"
    for data in (vocab("gpt2", [text], pre="gpt-2", escape_whitespaces=False), with_bytes("plamo2", b"a", text)):
        with pytest.raises(VocabularyError, match=r"beyond U\+10FFFF at byte 1"):
            opened(data)


def test_plamo2_adds_what_the_file_asks_for() -> None:
    tokenizer = opened(with_bytes("plamo2", b"a"), add_bos_token=True, add_eos_token=True)
    assert tokenizer.encode("") == [tokenizer.vocab.bos_id, tokenizer.vocab.eos_id]


def test_plamo2_token_texts_that_are_not_utf8_never_match() -> None:
    tokenizer = opened(with_bytes("plamo2", b"a", b"a\xff", b"\xc1\xa1"))
    a = tokenizer.vocab.id("a")
    assert tokenizer.encode(b"a\xff", add_special=False)[0] == a
    assert tokenizer.encode(b"\xc1\xa1", add_special=False) == [a]
