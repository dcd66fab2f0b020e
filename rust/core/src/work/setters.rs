//! Setters of options.

/// Defines methods that set the fields of options: `setters!(Options: method(field: Type), ...)`. One after `@const`
/// can be called in constants.
macro_rules! setters {
    ($options:ident: $($(@$constant:tt)? $name:ident($field:ident: $kind:ty)),+ $(,)?) => {
        impl $options {
            $(
                #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
                pub $($constant)? fn $name(self, $field: $kind) -> Self {
                    Self { $field, ..self }
                }
            )+
        }
    };
}
