//! What was spent.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::provider::Usage;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::usage::{self, By};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::Query;
use crate::state::AppState;

/// Tokens as the provider reported them; null where it did not.
#[derive(Serialize, ToSchema)]
pub struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
pub enum Window {
    #[serde(rename = "1h")]
    Hour,
    #[default]
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
}

impl Window {
    fn millis(self) -> i64 {
        const HOUR: i64 = 3_600_000;
        match self {
            Self::Hour => HOUR,
            Self::Day => 24 * HOUR,
            Self::Week => 7 * 24 * HOUR,
            Self::Month => 30 * 24 * HOUR,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    #[default]
    Agent,
    Model,
    Session,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// `24h` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    window: Window,
    /// `agent` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    by: Group,
}

#[derive(Serialize, ToSchema)]
pub struct Spent {
    window: Window,
    by: Group,
    #[schema(value_type = String, format = DateTime)]
    since: Millis,
    totals: Vec<Total>,
}

#[derive(Serialize, ToSchema)]
pub struct Total {
    group: String,
    calls: i64,
    /// Calls whose provider did not say what they took: the sums leave them out.
    unknown_calls: i64,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
}

#[utoipa::path(get, path = "/usage", tag = "instance", params(Which), responses((status = 200, body = Spent)))]
pub async fn totals(State(app): State<AppState>, Query(which): Query<Which>) -> Result<Json<Spent>> {
    let since = app.engine.now().minus(which.window.millis());
    let by = match which.by {
        Group::Agent => By::Agent,
        Group::Model => By::Model,
        Group::Session => By::Session,
    };
    let found = app.engine.db().read(move |tx: &mut Tx<'_>| usage::totals(tx, since, by)).await?;
    let total = |total: usage::Total| Total {
        group: total.group,
        calls: total.calls,
        unknown_calls: total.unknown_calls,
        input_tokens: total.input_tokens,
        output_tokens: total.output_tokens,
    };
    let totals = found.into_iter().map(total).collect();
    Ok(Json(Spent { window: which.window, by: which.by, since, totals }))
}
