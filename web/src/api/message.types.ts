/** Messages between instances, as `/messages` and `/routing-rules` have them. */
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
