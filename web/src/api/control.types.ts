/** The control plane's answers. Written by hand until it describes them in an OpenAPI document; then this file is generated. */
export type InstanceStatus = "running" | "stopped" | "crashed" | "stale-pid" | "unknown" | "error" | "archived";

export interface InstanceView {
  id: string; name: string; status: InstanceStatus; port: number; pid: number | null;
  wanted?: string; restart?: string;
  /** Why it does not run although it should. */
  error?: string | null;
  archived_at: string | null; created_at: string;
}
export interface Instances { instances: InstanceView[]; next_cursor?: string | null }
export interface NewInstance { name: string; port?: number; provider?: string; model?: string }

export interface Used {
  input_tokens: number | null; output_tokens: number | null; total_tokens: number | null; cost_usd: number | null;
  request_count: number; unknown_count: number; data_available: boolean;
}
export interface LogPage { lines: string[]; next_cursor?: string | null; has_more?: boolean; gap?: boolean }

export interface ConfigFile { toml: string; secrets: { path: string; fingerprint: string }[]; etag: string }
export interface ConfigErrorView { message: string; line?: number | null; column?: number | null; path?: string | null; hint?: string | null }
export interface Validation { valid: boolean; errors: ConfigErrorView[] }
/** `restart_required` names what takes effect at the next start only. */
export interface ConfigWritten { etag: string; outcome: "saved" | "reloaded" | "restart_required"; restart_required: string[] }

export interface Rule { id: string; from: string; to: string; type: string; max_retries: number; ttl_secs: number; auto_start: boolean; created_at?: string }
export interface Rules { rules: Rule[]; next_cursor?: string | null }
export interface NewRule { from: string; to: string; type: string; max_retries?: number; ttl_secs?: number; auto_start?: boolean }

export interface Envelope {
  id: string; from: string; to: string; type: string; state: string; correlation_id: string | null; hop_count: number;
  attempts?: number; created_at: string; payload?: unknown; error?: string | null;
  events?: EnvelopeEvent[];
}
export interface EnvelopeEvent { message_id: string; kind: string; at: string; detail?: string | null; state?: string }
export interface Envelopes { messages: Envelope[]; next_cursor?: string | null }

export interface AuditEntry { seq: number; who: string; action: string; target: string; before: string | null; after: string | null; detail: string; at: string; hash: string }
export interface Audit { entries: AuditEntry[]; next_cursor?: string | null; verified?: boolean | null }
