//! Instances: list, create, start, stop, clone, archive and delete.

use polyclaw_domain::instance::RestartPolicy;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Instance)]
pub struct InstanceView {
    /// The id of the instance.
    pub id: String,
    /// The name of the instance.
    pub name: String,
    /// The current status: `running`, `unresponsive`, `starting`, `restarting`, `stopped`, `crashed`, `stale-pid`,
    /// `unknown`, `error` or `archived`.
    pub status: String,
    /// The port that the instance listens on.
    pub port: u16,
    /// The process id, if it is running.
    pub pid: Option<i32>,
    /// The last requested state: `running` or `stopped`.
    pub desired_state: String,
    /// When the instance is restarted automatically: `never`, `on-failure` or `always`.
    pub restart: String,
    /// Why the instance does not run although it should, or that it does not answer.
    pub error: Option<String>,
    /// When the instance was archived. Null if it is active.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub archived_at: Option<Millis>,
    /// When the instance was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct InstanceList {
    /// The instances of this page.
    pub instances: Vec<InstanceView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListInstancesQuery {
    /// Include archived instances, after the active ones.
    #[serde(default)]
    #[param(required = false)]
    pub include_archived: bool,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInstance {
    /// The name: letters, digits and hyphens.
    #[schema(pattern = "^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$")]
    pub name: String,
    /// The port. Defaults to the first free port from 18801.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The model provider to configure, such as `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The default model of its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the instance is restarted automatically: `never`, `on-failure` (default) or `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(never|on-failure|always)$")]
    pub restart: Option<RestartPolicy>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClone {
    /// The name of the clone: letters, digits and hyphens.
    #[schema(pattern = "^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$")]
    pub new_name: String,
    /// The port of the clone. Defaults to the first free port from 18801.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnarchiveBody {
    /// The port. Defaults to the previous port, or a free one if that is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartPolicyBody {
    /// When the instance is restarted automatically: `never`, `on-failure` or `always`.
    #[schema(value_type = String, pattern = "^(never|on-failure|always)$")]
    pub restart: RestartPolicy,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StopTimeout {
    /// How many seconds running work may take to reach a safe point before the process is killed. Default 30.
    #[param(maximum = 300)]
    pub timeout: Option<u64>,
}
