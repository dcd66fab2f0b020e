"""Models by name: the folders in which other tools keep GGUF files, and files at a URL."""
