/** Teams as the instance's `/teams` has them. To be replaced by generated types once they are in its document here too. */
export interface Member {
  name: string; role: string; session_key: string; agent_id: string; color: string; capabilities: string[];
  /** `working`, `idle`, `closed` or `lost`. */
  status: string; tasks: string[]; joined_at: string; last_active_at: string;
}
export interface TeamView {
  id: string; name: string; description: string; agent_type: string;
  /** `active`, `shutting_down` or `shutdown`. */
  status: string; lead_session_key: string; created_at: string; updated_at: string;
}
export interface Teams { teams: TeamView[] }
export type WholeTeam = TeamView & { members: Member[] };

export interface TaskView {
  task_id: number; subject: string; description: string;
  /** What it is called now. */
  title: string;
  /** `pending`, `claimed`, `in_progress`, `completed` or `failed`. */
  status: string; owner: string | null; lease_until: string | null; assignee: string | null;
  depends_on: number[]; blocked_by: number[]; note: string | null; summary: string | null;
  created_by: string; created_at: string; ended_at: string | null;
}
export interface Tasks { tasks: TaskView[] }
export interface NewTask { subject: string; description?: string; depends_on?: number[]; assignee?: string }

export interface MailView { message_id: string; from: string; to: string; type: string; summary: string; state: string; created_at: string; read_at: string | null }
export interface Mails { messages: MailView[] }
/** To everybody if no recipient is named. */
export interface NewMail { recipient?: string; content: string }
