"""The tokenizer: opening files, encoding, decoding, batches, vocabulary, chunks."""
