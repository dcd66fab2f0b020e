"""Tokenizers written for llama.cpp and other libraries, and read from theirs."""
