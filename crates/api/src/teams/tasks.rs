//! Team tasks, claimed and ended over the API. Callers act for a member, or for the lead if they name none, under the
//! same rules as that member's session.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActingMember {
    /// The member to act for: a name, or `lead` (default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseTask {
    /// The member to act for: a name, or `lead` (default), which may release tasks of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// A note for the next member that claims the task, at most 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The member to act for: a name, or `lead` (default), which may end tasks of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The result, at most 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `completed` (default) or `failed`.
    #[serde(default)]
    pub status: TaskEnd,
    /// The results that the task produced.
    #[serde(default)]
    pub artifacts: Vec<TaskArtifact>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// The task was done.
    #[default]
    Completed,
    /// The task could not be done.
    Failed,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskArtifact {
    /// The kind of artifact, such as `file` or `commit`.
    pub kind: String,
    /// The path of a file, or the hash of a commit.
    pub path: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TaskEnded {
    /// The number of the ended task.
    pub task_id: i64,
    /// The tasks that can be claimed now because this one is completed.
    pub unblocked: Vec<i64>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignTask {
    /// The only member that may claim the task from now on. Empty lets any member claim it.
    pub assignee: String,
}
