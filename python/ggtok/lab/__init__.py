"""Looking into tokenizers and making others: explain, diff, evaluate, train, extend, convert, edit and verify."""
