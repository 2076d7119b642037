//! Schemas of domain types.

use utoipa::openapi::{Object, RefOr, Schema};

/// Returns the full schema of a domain type. Responses may carry extra fields; requests must not.
pub fn schema_of<T: schemars::JsonSchema>() -> RefOr<Schema> {
    let whole = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    let mut whole = whole.to_value();
    whole.as_object_mut().map(|schema| schema.remove("additionalProperties"));
    let schema = serde_json::from_value(whole);
    RefOr::T(schema.unwrap_or_else(|_| Schema::Object(Object::new())))
}
