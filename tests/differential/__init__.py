"""A differential fuzzer: ggtok beside the live llama.cpp, call by call.

    python -m tests.differential --seconds 60 --seed 7
    python -m tests.differential --replay TOKEN

The way of one round: `vocabularies` names what to open, `generators` writes texts, `campaign` asks both sides through
`child` (each side is a process of its own that runs `serve`, so that a crash is a finding and not the end), `shrink`
cuts a difference down to its smallest text, `report` prints it with the command that replays it.
"""
