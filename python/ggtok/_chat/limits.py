"""What rendering a template may cost: a budget of work, a time, and lengths, since a template in a file is untrusted.

Work is counted in units: one for a turn of a loop, a call, a filter, an element of a new container, and one for each
1024 characters of a new string. Containers have a *weight*, one for each element and for each 64 characters; shared
parts count as often as they occur, so that a list of lists of lists cannot stand for a text of astronomical length.
Whatever would exceed a limit is refused before it is computed. The limits grow with what the caller passes in.

Complexity: O(1) for each operation of the template, O(n) for a new container of n elements.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

UNITS = 1_000_000
"""Work for any template: some seconds of Python, and a hundred times what a long conversation takes."""
SECONDS = 10.0
"""Wall time, for machines on which the units take longer."""
CHARS = 16 << 20
"""Characters of one string."""
ELEMENTS = 200_000
"""Elements of one container; ranges have at most 100,000."""
WEIGHT = 1_000_000
"""Units of one container."""
INT_BITS = 4096
"""Bits of an integer that `*` and `**` make."""
DEPTH = 200
"""Calls inside calls: macros and recursive loops."""
PADDING = 10_000
"""The largest number that pads, indents or wraps a text."""
SLOW_CHARS = 1 << 16
"""Characters of a text for filters that are not linear."""
PRODUCT = 1 << 28
"""Steps of a search whose worst case is the product of two lengths."""
CODECS = ("utf-8", "utf8", "ascii", "latin-1")
"""Encodings that take linear time."""

_BLANKS = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_WEIGHT_CHARS = 64
_UNIT_CHARS = 1024


class LimitError(Exception):
    """A template costs too much. Becomes a `ChatTemplateError`."""


class Budget:
    """What is left of the limits during one rendering."""

    __slots__ = ("_calls", "_deadline", "_weights", "chars", "depth", "left", "most")

    def __init__(self, size: int) -> None:
        """`size` is the weight of what the caller passes in."""
        self.left = UNITS + 64 * size
        self.chars = CHARS + 4 * size * _WEIGHT_CHARS
        self.most = ELEMENTS + 16 * size
        self.depth = 0
        self._calls = 0
        self._deadline = monotonic() + SECONDS
        self._weights: dict[int, tuple[int, object]] = {}

    def spend(self, units: int = 1) -> None:
        """Takes work off the budget."""
        self.left -= units
        if self.left < 0:
            raise LimitError("rendering takes too many steps")
        self._calls += 1
        if (self._calls & 15 == 0 or units > 1000) and monotonic() > self._deadline:
            raise LimitError(f"rendering takes longer than {SECONDS:g} s")

    def enter(self) -> None:
        """Begins a call."""
        self.depth += 1
        if self.depth > DEPTH:
            raise LimitError(f"macros and recursive loops are nested more than {DEPTH} deep")

    def length(self, chars: int) -> None:
        """Checks the length of a string before it is made, and takes the work off."""
        if chars > self.chars:
            raise LimitError(f"a string would have {chars} characters, more than {self.chars}")
        self.spend(1 + chars // _UNIT_CHARS)

    def weigh(self, value: Any, nesting: int = 0) -> int:
        """The weight of a value; 1 for everything that is neither a string nor a container."""
        if isinstance(value, (str, bytes)):
            return 1 + len(value) // _WEIGHT_CHARS
        if not isinstance(value, (list, tuple, dict, set, frozenset)):
            return 1
        known = self._weights.get(id(value))
        if known is not None:
            return known[0]
        self.elements(len(value))
        if nesting > DEPTH:
            raise LimitError(f"lists are nested more than {DEPTH} deep")
        self.spend(1 + len(value))
        weight = 1
        for item in value:
            weight += self.weigh(item, nesting + 1)
            if isinstance(value, dict):
                weight += self.weigh(value[item], nesting + 1)
            if weight > WEIGHT + self.chars // _WEIGHT_CHARS:
                raise LimitError("a list or mapping is too large")
        self._weights[id(value)] = weight, value  # the reference keeps the id from being used again
        return weight

    def elements(self, size: int) -> None:
        """Checks the length of a container before it is made."""
        if size > self.most:
            raise LimitError(f"a list would have {size} elements, more than {self.most}")

    def made(self, value: Any) -> Any:
        """Accounts for a new value and returns it."""
        if isinstance(value, (str, bytes)):
            self.length(len(value))
        elif isinstance(value, (list, tuple, dict, set, frozenset)):
            self.weigh(value)
        return value

    # Operations whose result can be far larger than what they work on

    def binary(self, operator: str, left: Any, right: Any) -> None:
        """Checks a binary operation before it is computed."""
        if operator == "+" and isinstance(left, (str, bytes, list, tuple)) and isinstance(right, type(left)):
            self._size(left, len(left) + len(right))
        elif operator == "*":
            one, times = (left, right) if isinstance(right, int) else (right, left)
            if isinstance(one, (str, bytes, list, tuple)) and isinstance(times, int):
                self._size(one, len(one) * max(0, times))
            elif _ints(left, right):
                self._bits(int.bit_length(left) + int.bit_length(right))
        elif operator == "**" and _ints(left, right):
            self._bits(int.bit_length(left) * max(0, right))
        elif operator == "%" and isinstance(left, (str, bytes)):
            self.printf(left, right)
        self.spend()

    def _size(self, value: Any, size: int) -> None:
        if isinstance(value, (str, bytes)):
            self.length(size)
        else:
            self.elements(size)

    def _bits(self, bits: int) -> None:
        if bits > INT_BITS:
            raise LimitError(f"a number would have about {bits} bits, more than {INT_BITS}")

    def printf(self, template: str | bytes, values: Any) -> None:
        """Checks `template % values`: numbers in the template and values that may be widths."""
        self.numbers(template if isinstance(template, str) else template.decode("latin-1"))
        if "*" in str(template):
            raise LimitError("a format may not take its width from an argument")
        self.length(len(template) + self.weigh(values) * _WEIGHT_CHARS)

    def numbers(self, text: str) -> None:
        """Refuses a format with a number that could be a large width."""
        digits = 0
        for char in text:
            digits = digits + 1 if char.isdigit() else 0
            if digits > 4:
                raise LimitError("a format has a width of more than 4 digits")

    def method(self, value: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Checks a method of a string before it is called."""
        values = (*args, *kwargs.values())
        texts = [arg for arg in values if isinstance(arg, (str, bytes))]
        if name in ("ljust", "rjust", "center", "zfill", "expandtabs", "to_bytes"):
            if any(isinstance(arg, int) and arg > PADDING for arg in values):
                raise LimitError(f"{name} would pad by more than {PADDING}")
            if name == "expandtabs":
                self.length(len(value) * (1 + max([8, *(arg for arg in values if isinstance(arg, int))])))
        elif name == "replace" and len(texts) == 2:
            self.replacing(value, *texts)
        elif name == "join" and args:
            self.joining(value, args[0])
        elif name in ("rfind", "rindex", "rsplit", "rpartition", "strip", "lstrip", "rstrip"):
            if any(len(value) * len(text) > PRODUCT for text in texts):
                raise LimitError(f"{name} would take too many steps")
        elif name in ("split", "splitlines"):
            self.elements(_pieces(value, texts[0] if texts else None))
        elif name in ("encode", "decode") and any(str(text).lower() not in CODECS for text in texts[:1]):
            raise LimitError(f"{name} only knows {', '.join(CODECS)}")
        self.spend(1 + len(value) // _UNIT_CHARS)

    def replacing(self, value: Any, old: Any, new: Any) -> None:
        """Checks `value.replace(old, new)`."""
        times: int = len(value) + 1 if not old else len(value) // len(old) if len(value) < 256 else value.count(old)
        self.length(len(value) + times * max(0, len(new) - len(old)))
        self.spend(1 + times)

    def joining(self, separator: Any, parts: Any) -> None:
        """Checks `separator.join(parts)` for a container; what an iterator gives was checked piece by piece."""
        if isinstance(parts, (list, tuple, dict, set, frozenset, str)):
            self.length(len(separator) * len(parts) + self.weigh(parts) * _WEIGHT_CHARS)
        elif len(separator) > PADDING:
            raise LimitError("the separator of an iterator is too long")


def _pieces(value: Any, separator: Any) -> int:
    """At least as many pieces as `value.split(separator)` and `value.splitlines()` give, less one."""
    if separator:
        return int(value.count(separator))
    blanks = _BLANKS if isinstance(value, str) else _BLANKS.encode("ascii", "ignore")
    return sum(value.count(blanks[i : i + 1]) for i in range(len(blanks))) if len(value) > ELEMENTS else 0


def _ints(left: object, right: object) -> bool:
    return isinstance(left, int) and isinstance(right, int)
