//! Setters of options.

/// Defines methods that set the fields of options: `setters!(Options: method(field: Type), ...)`.
macro_rules! setters {
    ($options:ident: $($name:ident($field:ident: $kind:ty)),+ $(,)?) => {
        impl $options {
            $(
                #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
                pub fn $name(self, $field: $kind) -> Self {
                    Self { $field, ..self }
                }
            )+
        }
    };
}
