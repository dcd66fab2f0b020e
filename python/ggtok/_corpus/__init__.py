"""From files to training data: documents are read, encoded and written in shards.

`sources` lists the inputs, `plan` cuts them into shards, `reading` yields documents, `table` encodes them, `writing`
has a file per output format, `shard` makes one shard, `manifest` knows which are done, and `run` makes the others.
"""
