import { call, query, root, socketAddress } from "./http";
import type * as T from "./instance.types";

/** One place in a list that is read page by page. */
export interface Page { limit?: number; cursor?: string | null }

/** The part of JSON Schema that specs are described in. */
export interface Schema {
  type?: string | string[]; properties?: Record<string, Schema>; required?: string[]; enum?: string[]; items?: Schema;
  anyOf?: Schema[]; oneOf?: Schema[]; description?: string; default?: unknown; minimum?: number; maximum?: number; pattern?: string;
  additionalProperties?: boolean | Schema;
}

const at = encodeURIComponent;

/** The API of one instance: beside this page, or behind the control plane's gateway. */
export class Instance {
  constructor(readonly id: string, readonly base: string) {}

  /** Where an image is, for the page itself to fetch. */
  logins = () => this.#get<T.BrowserLoginList>("/logins");
  endLogin = (id: string) => call<void>("DELETE", `${this.base}/logins/${at(id)}`);
  mediaAddress = (hash: string) => `${root}${this.base}/media/${at(hash)}`;

  get socket() { return socketAddress(`${this.base}/ws`); }

  #get<R>(path: string) { return call<R>("GET", this.base + path); }
  #post<R>(path: string, body?: unknown) { return call<R>("POST", this.base + path, { body: body ?? {} }); }

  health = () => this.#get<T.HealthView>("/health");
  counts = () => this.#get<T.Counts>("/status");
  models = () => this.#get<T.ModelList>("/models");
  usage = (window: string, by: string) => this.#get<T.UsageReport>(`/usage${query({ window, by })}`);
  events = (filter: Page & { kind?: string; session?: string; after?: number }) => this.#get<T.EventList>(`/events${query({ ...filter })}`);

  sessions = (filter: Page & { agent?: string; owner?: string; status?: string } = {}) => this.#get<T.SessionList>(`/sessions${query({ ...filter })}`);
  session = (key: string) => this.#get<T.SessionView>(`/sessions/${at(key)}`);
  createSession = (body: T.NewSession) => this.#post<T.CreatedSession>("/sessions", body);
  changeSession = (key: string, body: T.SessionPatch) => call<T.SessionView>("PATCH", `${this.base}/sessions/${at(key)}`, { body });
  deleteSession = (key: string) => call<void>("DELETE", `${this.base}/sessions/${at(key)}`);
  transcript = (key: string, after: number, limit = 500) => this.#get<T.TranscriptPage>(`/sessions/${at(key)}/transcript${query({ after, limit })}`);
  backlog = (key: string) => this.#get<T.BacklogView>(`/sessions/${at(key)}/backlog`);
  context = (key: string) => this.#get<T.ContextView>(`/sessions/${at(key)}/context`);
  send = (key: string, body: T.NewSessionMessage) => this.#post<T.SessionMessageReceipt>(`/sessions/${at(key)}/messages`, body);
  command = (key: string, text: string) => this.#post<T.CommandReply>(`/sessions/${at(key)}/commands`, { text });
  stop = (key: string) => this.#post<T.StopResult>(`/sessions/${at(key)}/stop`);
  renew = (key: string) => this.#post<T.SessionView>(`/sessions/${at(key)}/new`);
  turns = (filter: Page & { session?: string; state?: string } = {}) => this.#get<T.TurnList>(`/turns${query({ ...filter })}`);

  approvals = () => this.#get<T.ApprovalList>("/approvals");
  decide = (id: string, body: T.ApprovalDecisionBody) => this.#post<T.ApprovalView>(`/approvals/${at(id)}`, body);

  agents = () => this.#get<T.AgentList>("/agents");
  createAgent = (body: T.AgentSpec) => this.#post<T.AgentView>("/agents", body);
  changeAgent = (id: string, body: unknown) => call<T.AgentView>("PATCH", `${this.base}/agents/${at(id)}`, { body });
  deleteAgent = (id: string) => call<void>("DELETE", `${this.base}/agents/${at(id)}`);
  agentTools = (id: string) => this.#get<T.AgentToolList>(`/agents/${at(id)}/tools`);
  skills = (agent: string) => this.#get<T.SkillList>(`/skills${query({ agent })}`);
  agentFile = (id: string, name: string) => this.#get<T.AgentFile>(`/agents/${at(id)}/files/${at(name)}`);
  saveAgentFile = (id: string, name: string, text: string | null, etag: string) =>
    call<T.AgentFile>("PUT", `${this.base}/agents/${at(id)}/files/${at(name)}`, { body: { text }, headers: { "if-match": etag } });
  document = () => this.#get<{ components: { schemas: Record<string, Schema> } }>("/openapi.json");
  explainTool = (name: string, agent: string) => this.#get<T.ToolExplanationView>(`/tools/${at(name)}/explain${query({ agent })}`);
  explainRoute = (body: T.ExplainRouteBody) => this.#post<T.RouteExplanation>("/route/explain", body);

  teams = () => this.#get<T.TeamList>("/teams?all=true");
  createTeam = (body: T.CreateTeamBody) => this.#post<T.TeamView>("/teams", body);
  team = (team: string) => this.#get<T.TeamDetail>(`/teams/${at(team)}`);
  join = (team: string, body: T.JoinTeamBody) => this.#post<T.JoinedMemberView>(`/teams/${at(team)}/members`, body);
  plan = (team: string, member: string) => this.#get<T.PlanView>(`/teams/${at(team)}/members/${at(member)}/plan`);
  answerPlan = (team: string, member: string, body: T.AnswerPlan) => this.#post<unknown>(`/teams/${at(team)}/members/${at(member)}/plan`, body);
  tasks = (team: string, page: Page) => this.#get<T.TeamTaskList>(`/teams/${at(team)}/tasks${query({ all: true, ...page })}`);
  createTask = (team: string, body: T.AddTeamTaskBody) => this.#post<T.AddedTask>(`/teams/${at(team)}/tasks`, body);
  mail = (team: string) => this.#get<T.TeamMessageList>(`/teams/${at(team)}/messages`);
  sendMail = (team: string, body: T.SendTeamMessageBody) => this.#post<unknown>(`/teams/${at(team)}/messages`, body);
  reopenTask = (team: string, id: number) => this.#post<unknown>(`/teams/${at(team)}/tasks/${id}/reopen`, {});
  releaseTask = (team: string, id: number) => this.#post<unknown>(`/teams/${at(team)}/tasks/${id}/release`, {});
  completeTask = (team: string, id: number) => this.#post<unknown>(`/teams/${at(team)}/tasks/${id}/complete`, {});
  deleteTask = (team: string, id: number) => call<unknown>("DELETE", `${this.base}/teams/${at(team)}/tasks/${id}`);
  shutDown = (team: string, body: { reason?: string; force?: boolean }) => this.#post<unknown>(`/teams/${at(team)}/shutdown`, body);
}
