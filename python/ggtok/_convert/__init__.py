"""Tokenizers written for llama.cpp and other libraries, and read from theirs."""

from .methods import ConvertMethods

__all__ = ["ConvertMethods"]
