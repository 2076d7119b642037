//! Parses arguments and turns failures into errors of the tool.

use polyclaw_domain::tool::arguments;
pub use polyclaw_domain::tool::arguments::build_tool_spec;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::text;

pub fn read_arguments<A: DeserializeOwned>(given: &Value) -> Result<A> {
    arguments::parse_arguments(given)
        .map_err(|error| Error::Arguments(text::truncate_text(&error.to_string(), 400)))
}
