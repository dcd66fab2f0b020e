"""Counts what a change of the core costs or buys: instructions and cache misses per byte, in two checkouts.

python benches/ablation.py OTHER_CHECKOUT llama-bpe en [--bytes 500000] [--spans]

A program encodes documents of 4 KiB twice, with a cache that is empty at first, under valgrind's callgrind. Only the
pass that is measured counts, not the load. Other work on the machine does not change the figures. What a part of the
code is worth is the difference to a checkout without it; `rust/core/EXPERIMENTS.md` has the results.

Needs cargo, valgrind, and the folder that GGTOK_SHARED names (default: `../shared` beside the project).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GGTOK_SHARED", ROOT.parent / "shared"))
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=49152,12,64", "--LL=2097152,16,64")

PROGRAM = """\
use ggtok_core::unicode::utf8::floor;
use ggtok_core::{Count, EncodeOptions, Encoder, Tokenizer};

type Documents<'a> = [&'a str];

fn pass(encoder: &mut Encoder<&Tokenizer>, documents: &Documents, spans: bool) -> usize {
    let options = EncodeOptions::new().add_special(false);
    let mut count = Count::default();
    for document in documents {
        if spans {
            count.0 += encoder.encode_with_spans(*document, options).expect("ids").ids.len();
        } else {
            encoder.encode_into(*document, options, &mut count).expect("ids");
        }
    }
    count.0
}

#[inline(never)]
fn first_pass(encoder: &mut Encoder<&Tokenizer>, documents: &Documents, spans: bool) -> usize {
    pass(encoder, documents, spans)
}

#[inline(never)]
fn second_pass(encoder: &mut Encoder<&Tokenizer>, documents: &Documents, spans: bool) -> usize {
    pass(encoder, documents, spans) + 1
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let tok = Tokenizer::from_file(&arguments[1]).expect("a vocabulary");
    let text = std::fs::read_to_string(&arguments[2]).expect("a text");
    let len = arguments[3].parse().expect("a number");
    let mut rest = &text[..floor(text.as_bytes(), len)];
    let mut documents = Vec::new();
    while !rest.is_empty() {
        let (document, after) = rest.split_at(floor(rest.as_bytes(), 4096));
        documents.push(document);
        rest = after;
    }
    let spans = arguments[4] == "true";
    // Some tables are built by the first call.
    let _ = tok.encoder().encode_with_spans("a", EncodeOptions::new());
    let mut encoder = tok.encoder();
    let len = first_pass(&mut encoder, &documents, spans);
    assert_eq!(second_pass(&mut encoder, &documents, spans), len + 1);
}
"""
MANIFEST = """\
[package]
name = "ablation"
edition = "2024"

[dependencies]
ggtok-core = {{ path = "{core}" }}

[profile.release]
codegen-units = 1

[workspace]
"""


def built(checkout: Path, name: str) -> Path:
    """The program with the core of a checkout."""
    folder = ROOT / "target" / "ablation" / name
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST.format(core=checkout.resolve() / "rust" / "core"), encoding="utf-8")
    (folder / "src" / "main.rs").write_text(PROGRAM, encoding="utf-8")
    build = ["cargo", "build", "--quiet", "--release", "--target-dir", "target"]
    subprocess.run(build, cwd=folder, check=True)
    return folder / "target/release/ablation"


def counts(program: Path, which: str, *arguments: str) -> list[int]:
    """Instructions, and misses of the first and of the last cache, in one pass."""
    profile = program.with_name(f"{which}.out")
    toggle = ("--collect-atstart=no", f"--toggle-collect=ablation::{which}_pass*", f"--callgrind-out-file={profile}")
    run = ["valgrind", "--tool=callgrind", *CACHES, *toggle, str(program), *arguments]
    subprocess.run(run, check=True, capture_output=True)
    text = profile.read_text(encoding="utf-8")
    names, totals = (re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)[-1].split() for name in ("events", "totals"))
    of = dict(zip_longest(names, map(int, totals), fillvalue=0))  # callgrind leaves out zeros at the end
    return [of["Ir"], of["D1mr"] + of["D1mw"], of["DLmr"] + of["DLmw"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("vocabulary")
    parser.add_argument("corpus")
    parser.add_argument("--bytes", type=int, default=500_000)
    parser.add_argument("--spans", action="store_true")
    options = parser.parse_args()
    files = [str(SHARED / f"vocabs/{options.vocabulary}.gguf"), str(SHARED / f"corpora/{options.corpus}.txt")]
    programs = {"this": built(ROOT, "this"), "other": built(options.other, "other")}
    for which in ("first", "second"):
        for name, program in programs.items():
            found = counts(program, which, *files, str(options.bytes), str(options.spans).lower())
            each = " ".join(f"{number / options.bytes:9.4f}" for number in found)
            print(f"{which:6} pass, {name:5}: {each}  instructions, D1 misses and LL misses a byte")


if __name__ == "__main__":
    main()
