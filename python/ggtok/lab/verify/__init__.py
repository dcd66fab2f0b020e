"""Compares ggtok with an installed llama.cpp, call by call.

`library` finds it, `text_generator` makes texts, and `comparing` asks both sides through `child`: each is a separate
process that runs `serve` with an answerer, so that a crash is a finding and not the end. `aborts` knows why llama.cpp
ends its process, `shrink` cuts a difference down to its smallest text, and `report` puts it in words, with what repeats
it.
`verify` does this for one tokenizer, and `tests/differential` for many vocabularies.
"""
