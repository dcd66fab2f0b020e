//! Token ids.

/// A token's index in its vocabulary, or [`NULL_TOKEN`].
///
/// Signed like llama.cpp's `llama_token`: without an unknown token, unknown text becomes the null token.
pub type TokenId = i32;

/// llama.cpp's `LLAMA_TOKEN_NULL`.
pub const NULL_TOKEN: TokenId = -1;
