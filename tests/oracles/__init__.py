"""Obviously right implementations of every algorithm: short, slow, literal, and independent of ggtok."""
