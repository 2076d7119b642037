/** Teams as the instance's `/teams` has them. To be replaced by generated types once the instance describes them itself. */
export interface Member {
  session_key: string; agent_id: string; name: string; role?: string | null; color?: string | null;
  /** `idle`, `working`, `offline` and the like. */
  status: string; joined_at?: string | null; last_active_at?: string | null;
}
export interface TeamView {
  id: string; name: string; description?: string | null; status: string; lead_session_key: string;
  members: Member[]; created_at: string; updated_at?: string | null;
}
export interface Teams { teams: TeamView[] }
export interface NewTeam { name: string; description?: string; agent_id?: string }

export interface TaskView {
  id: string; subject: string; description?: string | null; active_form?: string | null;
  /** `pending`, `claimed`, `in_progress`, `completed` or `failed`. */
  status: string; owner?: string | null; assignee?: string | null;
  depends_on: string[]; blocked_by: string[]; lease_expires_at?: string | null; summary?: string | null;
  created_at: string; updated_at?: string | null;
}
export interface Tasks { tasks: TaskView[] }
export interface NewTask { subject: string; description?: string; depends_on?: string[]; assignee?: string }

export interface MailView { id: string; type: string; from: string; to: string | null; summary: string; state?: string | null; created_at: string }
export interface Mails { messages: MailView[] }
export interface NewMail { type: "message" | "broadcast"; recipient?: string; content: string; summary?: string }
