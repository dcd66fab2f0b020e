"""Where two tokenizers cut a text differently, compared with sets of places; and the view of both."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import ggtok
import pytest
from ggtok.cli.pair import print_pair
from ggtok.cli.view import MANY, NONE, PLAIN, Screen
from ggtok.lab.explain.cells import cell_len
from ggtok.lab.explain.verdict import verdict
from ggtok.tokenizer.cuts import Cuts, compare, cuts_of, stretches
from hypothesis import example, given
from hypothesis import strategies as st
from rich.text import Text

Spans = list[tuple[int, int]]


@st.composite
def spans(draw: st.DrawFn, size: int) -> Spans:
    """Spans of a text of `size` bytes: some are empty or share bytes, and some bytes are in none."""
    found: Spans = []
    for start in sorted(draw(st.lists(st.integers(0, size), max_size=12))):
        last = max([start, *(end for _, end in found)])
        found.append((start, draw(st.one_of(st.just(start), st.integers(last, max(last, min(size, start + 4)))))))
    return found


def naive(spans: Spans) -> set[int]:
    """Places where a token ends that is not empty."""
    return {end for at, (start, end) in enumerate(spans) if start < end}


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, Spans, Spans]:
    text = draw(st.text("ab é✓👋\n", max_size=12)).encode() + draw(st.sampled_from([b"", b"\xff\xf0\x9f"]))
    a = draw(spans(len(text)))
    return text, a, a if draw(st.booleans()) else draw(spans(len(text)))


@given(cases())
@example((b"ab ", [(0, 2)], [(0, 2), (2, 3)]))
@example((b"2024", [(0, 3), (3, 4)], [(0, 1), (1, 2), (2, 3), (3, 4)]))
@example((b"ab", [(0, 1)], [(1, 2)]))
def test_the_verdict_is_that_of_sets(case: tuple[bytes, Spans, Spans]) -> None:
    text, *sides = case
    a, b = map(naive, sides)
    assert [set(cuts_of(own)) for own in sides] == [a, b]
    ids = [[0] * len(own) for own in sides]
    found = compare(text, (ids[0], ids[1]), (sides[0], sides[1]), is_text=False)
    assert bool(found) == (a != b)
    # Each cut that only one has is between two places where both cut, or the text starts or ends.
    common = sorted({0, len(text)} | (a & b))
    around = {max(place for place in common if place < cut): cut for cut in a ^ b if cut}
    assert found.num_stretches == len(around)
    if found.first is None:
        return
    start = min(around)
    end = min((place for place in common if place > start and place in a & b), default=len(text))
    assert (found.first.start, found.first.end) == (start, end)
    for parts, cuts in ((found.first.parts_a, a), (found.first.parts_b, b)):
        places = [start, *sorted(cut for cut in cuts if start < cut <= end)]
        assert parts == [text[at:to] for at, to in pairwise(places)]
    assert "".join(part for part, _ in verdict(found)).startswith("Cuts first differ at character ")


@given(cases(), st.integers(10, 40), st.booleans(), st.sampled_from([None, 1, 3]))
def test_both_lines_have_the_same_text(
    case: tuple[bytes, Spans, Spans], width: int, has_colors: bool, most: int | None
) -> None:
    text, a, b = case
    out = io.StringIO()
    found = compare(text, (list(range(len(a))), list(range(len(b)))), (a, b), is_text=False)
    with redirect_stdout(out):
        print_pair(Screen(width, MANY if has_colors else NONE), ("x/one.gguf", "y/two.gguf"), text, (a, b), found, most)
    plain = [Text.from_ansi(line).plain for line in out.getvalue().splitlines()]
    lines = [line for line in plain if not line.startswith("…") and line]
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) % 2 == 0
    for one, two in zip(lines[::2], lines[1::2], strict=True):
        assert cell_len(one) == cell_len(two) or not has_colors
        shown = [[each for each in line[len("one") :] if each not in "│[] "] for line in (one, two)]
        assert shown[0] == shown[1]
    assert most is None or len(lines) <= 2 * most


def test_a_view_begins_near_the_first_difference() -> None:
    text = b"ab" * 2000 + b"cd" + b"ab" * 2000
    common = [(at, at + 2) for at in range(0, len(text), 2)]
    other = [*common[:2000], (4000, 4001), (4001, 4002), *common[2001:]]
    out = io.StringIO()
    found = compare(text, ([0] * len(common), [0] * len(other)), (common, other), is_text=True)
    with redirect_stdout(out):
        print_pair(Screen(80, PLAIN), ("a.gguf", "b.gguf"), text, (common, other), found, 3)
    lines = out.getvalue().splitlines()[1:]
    assert lines[0].startswith("… 3,9")
    assert lines[0].endswith(" characters before")
    assert "[c d]" in out.getvalue()
    assert "[c│d]" in out.getvalue()
    assert lines[-1].endswith(" characters more: --all shows them")


def test_a_long_token_before_the_first_difference() -> None:
    out = io.StringIO()
    text, a, b = b"x" * 900 + b"yz", [(0, 900), (900, 902)], [(0, 900), (900, 901), (901, 902)]
    found = compare(text, ([0] * len(a), [0] * len(b)), (a, b), is_text=True)
    with redirect_stdout(out):
        print_pair(Screen(80, PLAIN), ("a.gguf", "b.gguf"), text, (a, b), found, None)
    assert [line[-6:] for line in out.getvalue().splitlines()[-2:]] == ["│[y z]", "│[y│z]"]
    assert out.getvalue().count("x") == 1800
    out.truncate(0)
    with redirect_stdout(out):
        print_pair(Screen(80, PLAIN), ("a.gguf", "b.gguf"), text, (a, b), found, 3)
    assert " before" not in out.getvalue()


def test_real_files(shared: Path) -> None:
    bpe, qwen, spm = (
        ggtok.Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf") for name in ("llama-bpe", "qwen2", "llama-spm")
    )
    same = ggtok.diff(bpe, qwen, "What is LoRA?")
    assert same.cuts == (None, 0, False, 6, 5)
    assert str(same).startswith("Same cuts, other ids. 6 and 5 tokens.\n")
    assert ggtok.diff(bpe, bpe, "in 2024").cuts == (None, 0, True, 5, 5)
    digits = ggtok.diff(bpe, qwen, "in 2024")
    assert digits.cuts is not None
    assert digits.cuts.first == (3, 6, 3, [b"202"], [b"2", b"0", b"2"])
    assert str(digits).startswith("Cuts first differ at character 3: `202` and `2·0·2`. 5 and 6 tokens.\n")
    inside = ggtok.diff(spm, qwen, "né 👋🏽").cuts  # cuts inside a character
    assert inside is not None
    assert inside.first is not None
    start, end, _, *parts = inside.first
    assert [b"".join(own) for own in parts] == ["né 👋🏽".encode()[start:end]] * 2
    assert ggtok.diff(spm, qwen, "").cuts == (None, 0, True, 1, 0)  # BOS alone


@pytest.mark.parametrize("shift", [0, 1])
def test_a_megabyte_of_cuts(shift: int) -> None:
    a = [(at, at + 3) for at in range(0, 1_000_000, 3)]
    b = [(at, at + 2) for at in range(shift, 1_000_000, 2)]
    found = compare(b"x" * 1_000_002, ([0] * len(a), [0] * len(b)), (a, b), is_text=True)
    assert isinstance(found, Cuts)
    assert found.num_stretches > 100_000 * (1 - shift)
    assert len(list(stretches(cuts_of(a), cuts_of(b), 1_000_002))) == found.num_stretches
