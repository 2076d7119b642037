-- Changes to an agent that no config file writes: a JSON merge patch over what the defaults make of it.
CREATE TABLE agent_overlays (
  agent_id TEXT PRIMARY KEY,
  patch_json TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);
