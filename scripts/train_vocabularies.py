"""Trains the four vocabularies inside the wheel, `python/ggtok/vocabularies/{spm,bpe,wordpiece,unigram}.gguf`.

Sources: Sennrich et al. 2016 (byte pair encoding), Kudo 2018 (unigram language model); trainers: sentencepiece for
`spm` and `unigram`, tokenizers for `bpe` and `wordpiece`. The texts are the corpora under `$GGTOK_SHARED/corpora`,
credited in `docs/vocabularies.md` and in each file. The files are GGUF version 3, laid out as llama.cpp's converter
lays out a model's vocabulary.

The exact command, from the project's root (a minute; the same versions and texts produce the same bytes):

    python -m venv .venv-train
    .venv-train/bin/pip install gguf==0.19.0 numpy==2.4.6 protobuf==7.36.2 sentencepiece==0.2.3 tokenizers==0.23.3
    GGTOK_SHARED=../shared .venv-train/bin/python scripts/train_vocabularies.py

With `--report` (and `pip install xllamacpp==2026.10.11549`) nothing is trained: llama.cpp opens the four files, and
the table of sizes and characters per token in `docs/vocabularies.md` is printed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GGTOK_SHARED", ROOT.parent / "shared"))
TARGET = ROOT / "python" / "ggtok" / "vocabularies"
CORPORA = ("en", "code", "multi", "cjk")
PINNED = {"gguf": "0.19.0", "protobuf": "7.36.2", "sentencepiece": "0.2.3", "tokenizers": "0.23.3"}

# Chosen so that the four files together stay below 1.5 MB: a BPE token is stored twice (text and merge), and unigram
# carries a charsmap of 240 KB.
NUM_TOKENS = {"spm": 15_000, "bpe": 13_000, "wordpiece": 12_000, "unigram": 12_000}

NORMAL, CONTROL = 1, 3  # llama.cpp's token types
WORD_START = "▁"  # U+2581: a space in SPM and UGM, the beginning of a word in WPM

CREDITS = (
    ("War and Peace; Botchan", "Project Gutenberg", "https://www.gutenberg.org"),
    ("test data of sentencepiece", "google/sentencepiece", "https://github.com/google/sentencepiece"),
    ("Wikipedia articles in 17 languages (CC BY-SA)", "Wikipedia authors", "https://www.wikipedia.org"),
    ("CPython standard library (PSF-2.0)", "Python Software Foundation", "https://github.com/python/cpython"),
)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass
class Vocabulary:
    """What one GGUF file holds. `entries` are the further metadata, in file order: key to a value or an array."""

    architecture: str
    model: str
    pre: str
    tokens: list[str]
    types: list[int]
    scores: list[float] | None = None
    merges: list[str] | None = None
    entries: dict[str, bool | int | str | bytes] = field(default_factory=dict)

    def special(self, **texts: str) -> None:
        """Declares special tokens: `bos="<s>"` becomes `tokenizer.ggml.bos_token_id`."""
        self.settings(**{f"{role}_token_id": self.tokens.index(text) for role, text in texts.items()})

    def settings(self, **values: bool | int | bytes) -> None:
        """Further metadata: `add_bos_token=True` becomes `tokenizer.ggml.add_bos_token`."""
        self.entries |= {f"tokenizer.ggml.{key}": value for key, value in values.items()}


def corpus(name: str) -> str:
    """One corpus, its line ends as they are."""
    return (SHARED / "corpora" / f"{name}.txt").read_bytes().decode()


def sentencepiece_model(**settings: Any) -> Any:
    """A sentencepiece model of all corpora, line by line, as its protocol buffer."""
    serialized = io.BytesIO()
    import_module("sentencepiece").SentencePieceTrainer.train(
        sentence_iterator=(line.removesuffix("\r") for name in CORPORA for line in corpus(name).split("\n")),
        model_writer=serialized,
        character_coverage=1.0,  # every character of the corpora becomes a token
        max_sentence_length=1 << 16,  # bytes; the longest line of the corpora has 33,550
        num_threads=1,  # the order in which floats are added decides their last bits
        minloglevel=2,
        **settings,
    )
    return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(serialized.getvalue())


def from_pieces(architecture: str, model: str, pieces: Sequence[Any]) -> Vocabulary:
    """sentencepiece's pieces as they are: its numbers for token types are llama.cpp's."""
    tokens, types = [piece.piece for piece in pieces], [piece.type for piece in pieces]
    return Vocabulary(architecture, model, "default", tokens, types, scores=[piece.score for piece in pieces])


def train_spm() -> Vocabulary:
    """As Llama 2: BPE over characters with byte fallback, no normalization, digits apart, runs of spaces allowed."""
    model = sentencepiece_model(
        model_type="bpe",
        vocab_size=NUM_TOKENS["spm"],
        byte_fallback=True,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )
    vocabulary = from_pieces("llama", "llama", model.pieces)
    vocabulary.special(bos="<s>", eos="</s>", unknown="<unk>")
    vocabulary.settings(add_bos_token=True, add_eos_token=False, add_space_prefix=True)
    return vocabulary


def train_unigram() -> Vocabulary:
    """As T5: unigram language model over text normalized by `nmt_nfkc`. llama.cpp's UGM uses no byte tokens."""
    model = sentencepiece_model(
        model_type="unigram",
        vocab_size=NUM_TOKENS["unigram"],
        normalization_rule_name="nmt_nfkc",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        pad_piece="<pad>",
    )
    vocabulary = from_pieces("t5", "t5", model.pieces)
    vocabulary.special(eos="</s>", unknown="<unk>", padding="<pad>")
    vocabulary.settings(add_bos_token=False, add_eos_token=True, add_space_prefix=True, remove_extra_whitespaces=True)
    vocabulary.settings(precompiled_charsmap=model.normalizer_spec.precompiled_charsmap)
    return vocabulary


def learn_merges(words: Iterable[str], alphabet: Sequence[str], num_merges: int) -> list[tuple[str, str]]:
    """The most frequent merges over words without white space, most frequent first; ties by the alphabet's order."""
    import tokenizers  # type: ignore[import-not-found,unused-ignore]

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(alphabet) + num_merges,
        initial_alphabet=list(alphabet),
        max_token_length=16,
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(words)], trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def byte_characters() -> list[str]:
    """GPT-2's printable stand-in for each of the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(256 + others.index(byte)) if byte in others else chr(byte) for byte in range(256)]


def train_bpe() -> Vocabulary:
    """As Qwen 2: byte-level BPE. `qwen2` among the pre-tokenizers because decoding is then the exact inverse (no space
    clean-up) and merges are always applied, so that `explain` has something to show (`llama-bpe` takes whole words
    from the vocabulary first).

    Small alphabets are too rare here to earn their merges, so each character of the corpora is put together from its
    bytes before anything else: the merges are learnt over characters, and the ones that make them go in front. A merge
    of bytes cannot cross characters, so the encoder does the same. Characters are written as private-use ones
    meanwhile, because GPT-2's stand-ins for bytes are themselves characters.
    """
    import tokenizers  # type: ignore[import-not-found,unused-ignore]

    names = "endoftext im_start im_end fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep"
    special = [f"<|{name}|>" for name in names.split()]
    pretokenizers = json.loads((SHARED / "reference" / "pretokenizers.json").read_text("utf-8"))
    (pattern,) = pretokenizers["families"]["qwen2"]["patterns"]
    splitter = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    texts = [corpus(name) for name in CORPORA]

    stand_in = byte_characters()
    symbols: dict[bytes, str] = {bytes([byte]): stand_in[byte] for byte in range(256)}
    first_merges: list[tuple[str, str]] = []
    characters = sorted(set("".join(texts)))
    for encoded in map(str.encode, characters):
        for end in range(2, len(encoded) + 1):
            if encoded[:end] not in symbols:
                symbols[encoded[:end]] = chr(0xF0000 + len(symbols))
                first_merges.append((symbols[encoded[: end - 1]], stand_in[encoded[end - 1]]))

    spelling = str.maketrans({character: symbols[character.encode()] for character in characters})
    words = (word.translate(spelling) for text in texts for word, _ in splitter.pre_tokenize_str(text))
    num_merges = NUM_TOKENS["bpe"] - len(symbols) - len(special)
    learnt = learn_merges(words, sorted(symbols.values()), num_merges)

    byte_level = str.maketrans({symbol: "".join(stand_in[b] for b in encoded) for encoded, symbol in symbols.items()})
    merges = [(left.translate(byte_level), right.translate(byte_level)) for left, right in first_merges + learnt]
    tokens = [*sorted(stand_in), *(left + right for left, right in merges), *special]
    vocabulary = Vocabulary(
        "llama",
        "gpt2",
        "qwen2",
        tokens,
        types=[NORMAL] * (len(tokens) - len(special)) + [CONTROL] * len(special),
        merges=[f"{left} {right}" for left, right in merges],
    )
    vocabulary.special(bos="<|endoftext|>", eos="<|endoftext|>", eot="<|im_end|>", padding="<|endoftext|>")
    vocabulary.special(fim_pre="<|fim_prefix|>", fim_suf="<|fim_suffix|>", fim_mid="<|fim_middle|>")
    vocabulary.special(fim_pad="<|fim_pad|>", fim_rep="<|repo_name|>", fim_sep="<|file_sep|>")
    vocabulary.settings(add_bos_token=False, add_eos_token=False)
    vocabulary.entries["tokenizer.chat_template"] = CHAT_TEMPLATE
    return vocabulary


def wordpiece_normalization(characters: Iterable[str]) -> tuple[dict[int, str], set[str]]:
    """llama.cpp's WPM normalization of each character, as a table for `str.translate`, and the characters that are
    words of their own. Marks and control characters are dropped, letters lowercase and without accents."""

    def rows(name: str) -> list[list[str]]:
        lines = (SHARED / "reference" / f"unicode-{name}.tsv").read_text("utf-8").splitlines()
        return [line.split("\t") for line in lines if not line.startswith("#")]

    def ranges(name: str, base: int) -> dict[int, int]:
        table: dict[int, int] = {}
        for first, last, value in rows(name):
            table |= dict.fromkeys(range(int(first, 16), int(last, 16) + 1), int(value, base))
        return table

    flags, base_letter = ranges("flags", 16), ranges("nfd", 16)
    lowercase = {int(upper, 16): int(lower, 16) for upper, lower in rows("tolower")}
    bits = {"accent": 0x10, "punctuation": 0x20, "symbol": 0x40, "control": 0x80, "space": 0x100}

    table: dict[int, str] = {}
    alone: set[str] = set()
    for character in characters:
        code_point = base_letter.get(ord(character), ord(character))
        has = {name: bool(flags[code_point] & bit) for name, bit in bits.items()}
        lower = chr(lowercase.get(code_point, code_point))
        if has["space"]:
            table[ord(character)] = " "
        elif has["control"] or has["accent"] or code_point in (0, 0xFFFD):
            table[ord(character)] = ""
        elif has["punctuation"] or (has["symbol"] and code_point < 0x7F) or is_ideograph(code_point):
            table[ord(character)] = f" {lower} "
            alone.add(lower)
        else:
            table[ord(character)] = lower
    return table, alone


def is_ideograph(code_point: int) -> bool:
    """Han characters, which BERT takes as words."""
    return unicodedata.name(chr(code_point), "").startswith("CJK ") and unicodedata.category(chr(code_point)) == "Lo"


def train_wordpiece() -> Vocabulary:
    """As BERT, uncased, in llama.cpp's form: tokens that start a word carry `▁`, continuations carry nothing.

    As WordPiece trainers do, the tokens come from merges. Each character that is a word of its own (punctuation, Han)
    is one token, each other character a continuation; `▁` alone is a token too, and starts words whose first letter
    earned no token with `▁`.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    texts = [corpus(name) for name in CORPORA]
    table, alone = wordpiece_normalization(sorted(set("".join(texts))))
    words = [word for text in texts for word in text.translate(table).split()]
    letters = sorted(set("".join(words)) - alone)
    num_merges = NUM_TOKENS["wordpiece"] - len(special) - len(alone) - len(letters) - 1
    words = [WORD_START + word for word in words if word not in alone]
    merges = learn_merges(words, [WORD_START, *letters], num_merges)
    tokens = [*special, *(WORD_START + character for character in sorted(alone)), WORD_START, *letters]
    tokens += [left + right for left, right in merges]
    vocabulary = Vocabulary(
        "bert",
        "bert",
        "default",
        tokens,
        types=[CONTROL] * len(special) + [NORMAL] * (len(tokens) - len(special)),
    )
    # llama.cpp reads the beginning from `bos`; `cls` is what other readers of such files look for.
    vocabulary.special(bos="[CLS]", cls="[CLS]", seperator="[SEP]", unknown="[UNK]", padding="[PAD]", mask="[MASK]")
    vocabulary.settings(token_type_count=2)
    vocabulary.entries["tokenizer.ggml.normalizer.lowercase"] = True
    vocabulary.entries["tokenizer.ggml.normalizer.strip_accents"] = True
    return vocabulary


def write(name: str, vocabulary: Vocabulary) -> None:
    """Writes one file: what it is, its credits, the vocabulary; no tensors."""
    import gguf

    if len(set(vocabulary.tokens)) != NUM_TOKENS[name] or len(vocabulary.tokens) != NUM_TOKENS[name]:
        raise SystemExit(f"{name}: {len(set(vocabulary.tokens))} distinct tokens instead of {NUM_TOKENS[name]}")
    writer = gguf.GGUFWriter(TARGET / f"{name}.gguf", vocabulary.architecture)
    writer.add_name(f"ggtok {name}")
    writer.add_description("A small vocabulary for examples and tests: see docs/vocabularies.md of ggtok")
    writer.add_license("mit")
    writer.add_dataset_count(len(CREDITS))
    for index, (title, organization, url) in enumerate(CREDITS):
        writer.add_dataset_name(index, title)
        writer.add_dataset_organization(index, organization)
        writer.add_dataset_url(index, url)
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(vocabulary.tokens)
    if vocabulary.scores is not None:
        writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.types)
    if vocabulary.merges is not None:
        writer.add_token_merges(vocabulary.merges)
    for key, value in vocabulary.entries.items():
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case str():
                writer.add_string(key, value)
            case bytes():
                writer.add_array(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def report() -> None:
    """Prints the Markdown table of sizes and of characters per token, as llama.cpp counts them."""
    sys.path.insert(0, str(SHARED / "tools"))
    from llama_reference import LlamaReference  # type: ignore[import-not-found,unused-ignore]

    texts = {name: corpus(name) for name in CORPORA}
    print("| name | tokens | bytes |", " | ".join(texts), "|")
    print("|---" * (3 + len(texts)) + "|")
    for name in NUM_TOKENS:
        path = TARGET / f"{name}.gguf"
        reference = LlamaReference(path)
        ratios = (f"{len(text) / len(reference.tokenize(text.encode())):.2f}" for text in texts.values())
        print(f"| `{name}` | {reference.n_tokens:,} | {path.stat().st_size:,} |", " | ".join(ratios), "|")


def main() -> None:
    """Trains the vocabularies named on the command line, by default all."""
    parser = argparse.ArgumentParser(description="Train the vocabularies inside the wheel.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NUM_TOKENS)} (default: all)")
    parser.add_argument("--report", action="store_true", help="print sizes and characters per token instead")
    arguments = parser.parse_args()
    if arguments.report:
        return report()
    if not (SHARED / "corpora").is_dir():
        raise SystemExit(f"no corpora under {SHARED}: set GGTOK_SHARED")
    for package, pinned in PINNED.items():
        if version(package) != pinned:
            raise SystemExit(f"{package} {pinned} is needed for the same bytes, {version(package)} is installed")
    TARGET.mkdir(parents=True, exist_ok=True)
    train = {"spm": train_spm, "bpe": train_bpe, "wordpiece": train_wordpiece, "unigram": train_unigram}
    for name in arguments.names or NUM_TOKENS:
        write(name, train[name]())
        print(f"{name}: {(TARGET / f'{name}.gguf').stat().st_size:,} bytes")
    return None


if __name__ == "__main__":
    main()
