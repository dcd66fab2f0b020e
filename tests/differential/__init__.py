"""A differential fuzzer: ggtok against the live llama.cpp, call by call, with many vocabularies.

    python -m tests.differential --seconds 60 --seed 7
    python -m tests.differential --replay TOKEN

The way of one round: `vocabularies` names what to open, `ggtok.lab.verify` makes texts and compares, as the command
`ggtok verify` does for one model, and `report` prints what differs with the command that replays it.

Two others compare chats: `chats` beside llama-server, and `jinja` the language of templates beside llama.cpp's engine.
Their cases come from `conversations` and `jinja_templates`.
"""
