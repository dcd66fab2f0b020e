//! A token's attributes: llama.cpp's bit set.

/// llama.cpp's token attributes (`llama_token_attr`), one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes(u16);

heap_bytes!(Attributes);

impl Attributes {
    /// The unknown token.
    pub const UNKNOWN: Self = Self(1);
    /// A token that no text is encoded to.
    pub const UNUSED: Self = Self(2);
    /// An ordinary token.
    pub const NORMAL: Self = Self(4);
    /// A control token: found in a text only if special tokens are parsed.
    pub const CONTROL: Self = Self(8);
    /// A token that is always searched for in a text, before any other step.
    pub const USER_DEFINED: Self = Self(16);
    /// A token that stands for one byte.
    pub const BYTE: Self = Self(32);
    /// Matched in normalized text. No file sets it today.
    pub const NORMALIZED: Self = Self(64);
    /// Takes the whitespace before it.
    pub const LSTRIP: Self = Self(128);
    /// Takes the whitespace after it.
    pub const RSTRIP: Self = Self(256);
    /// Matched as a whole word only. No file sets it today.
    pub const SINGLE_WORD: Self = Self(512);

    /// The bits, as llama.cpp numbers them.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether every attribute of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These attributes and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These attributes without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

macro_rules! accessors {
    ($($is:ident $name:ident)*) => {
        impl Attributes {
            $(
                #[doc = concat!("Whether [`Self::", stringify!($name), "`] is set.")]
                pub const fn $is(self) -> bool {
                    self.contains(Self::$name)
                }
            )*
        }
    };
}

accessors! {
    is_unknown UNKNOWN
    is_unused UNUSED
    is_normal NORMAL
    is_control CONTROL
    is_user_defined USER_DEFINED
    is_byte BYTE
}
