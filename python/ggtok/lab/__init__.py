"""Looking into tokenizers and making others: explain, diff, evaluate, train, convert, edit and verify."""
