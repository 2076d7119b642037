//! Paged lists. Cursors are opaque.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// The query of a list without other parameters.
#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}
