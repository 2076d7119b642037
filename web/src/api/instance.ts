import { requestJson, queryString, rootPath, socketUrl } from "./http";
import type * as T from "./instance.types";

/** Parameters of one page of a list. */
export interface PageQuery { limit?: number; cursor?: string | null }

/** The subset of JSON Schema that describes specs. */
export interface JsonSchema {
  type?: string | string[]; properties?: Record<string, JsonSchema>; required?: string[]; enum?: string[]; items?: JsonSchema;
  anyOf?: JsonSchema[]; oneOf?: JsonSchema[]; description?: string; default?: unknown; minimum?: number; maximum?: number; pattern?: string;
  additionalProperties?: boolean | JsonSchema;
}

const encode = encodeURIComponent;

/** The API of one instance: served with this page, or through the control plane's gateway. */
export class InstanceApi {
  constructor(readonly id: string, readonly base: string) {}

  logins = () => this.#get<T.BrowserLoginList>("/logins");
  endLogin = (id: string) => requestJson<void>("DELETE", `${this.base}/logins/${encode(id)}`);
  /** URL of an image, which the browser loads itself. */
  mediaUrl = (hash: string) => `${rootPath}${this.base}/media/${encode(hash)}`;

  get socketUrl() { return socketUrl(`${this.base}/ws`); }

  #get<R>(path: string) { return requestJson<R>("GET", this.base + path); }
  #post<R>(path: string, body?: unknown) { return requestJson<R>("POST", this.base + path, { body: body ?? {} }); }

  health = () => this.#get<T.HealthView>("/health");
  status = () => this.#get<T.Counts>("/status");
  models = () => this.#get<T.ModelList>("/models");
  usage = (window: string, by: string) => this.#get<T.UsageReport>(`/usage${queryString({ window, by })}`);
  events = (filter: PageQuery & { kind?: string; session?: string; after?: number }) => this.#get<T.EventList>(`/events${queryString({ ...filter })}`);

  sessions = (filter: PageQuery & { agent?: string; owner?: string; status?: string } = {}) => this.#get<T.SessionList>(`/sessions${queryString({ ...filter })}`);
  session = (key: string) => this.#get<T.SessionView>(`/sessions/${encode(key)}`);
  createSession = (body: T.NewSession) => this.#post<T.CreatedSession>("/sessions", body);
  updateSession = (key: string, body: T.SessionPatch) => requestJson<T.SessionView>("PATCH", `${this.base}/sessions/${encode(key)}`, { body });
  deleteSession = (key: string) => requestJson<void>("DELETE", `${this.base}/sessions/${encode(key)}`);
  transcript = (key: string, after: number, limit = 500) => this.#get<T.TranscriptPage>(`/sessions/${encode(key)}/transcript${queryString({ after, limit })}`);
  sessionBacklog = (key: string) => this.#get<T.BacklogView>(`/sessions/${encode(key)}/backlog`);
  sessionContext = (key: string) => this.#get<T.ContextView>(`/sessions/${encode(key)}/context`);
  sendMessage = (key: string, body: T.NewSessionMessage) => this.#post<T.SessionMessageReceipt>(`/sessions/${encode(key)}/messages`, body);
  runCommand = (key: string, text: string) => this.#post<T.CommandReply>(`/sessions/${encode(key)}/commands`, { text });
  stopSession = (key: string) => this.#post<T.StopResult>(`/sessions/${encode(key)}/stop`);
  renewSession = (key: string) => this.#post<T.SessionView>(`/sessions/${encode(key)}/new`);
  turns = (filter: PageQuery & { session?: string; state?: string } = {}) => this.#get<T.TurnList>(`/turns${queryString({ ...filter })}`);

  approvals = () => this.#get<T.ApprovalList>("/approvals");
  decideApproval = (id: string, body: T.ApprovalDecisionBody) => this.#post<T.ApprovalView>(`/approvals/${encode(id)}`, body);

  agents = () => this.#get<T.AgentList>("/agents");
  createAgent = (body: T.AgentSpec) => this.#post<T.AgentView>("/agents", body);
  updateAgent = (id: string, body: unknown) => requestJson<T.AgentView>("PATCH", `${this.base}/agents/${encode(id)}`, { body });
  deleteAgent = (id: string) => requestJson<void>("DELETE", `${this.base}/agents/${encode(id)}`);
  agentTools = (id: string) => this.#get<T.AgentToolList>(`/agents/${encode(id)}/tools`);
  skills = (agent: string) => this.#get<T.SkillList>(`/skills${queryString({ agent })}`);
  agentFile = (id: string, name: string) => this.#get<T.AgentFile>(`/agents/${encode(id)}/files/${encode(name)}`);
  saveAgentFile = (id: string, name: string, text: string | null, etag: string) =>
    requestJson<T.AgentFile>("PUT", `${this.base}/agents/${encode(id)}/files/${encode(name)}`, { body: { text }, headers: { "if-match": etag } });
  openApiDocument = () => this.#get<{ components: { schemas: Record<string, JsonSchema> } }>("/openapi.json");
  explainTool = (name: string, agent: string) => this.#get<T.ToolExplanationView>(`/tools/${encode(name)}/explain${queryString({ agent })}`);
  explainRoute = (body: T.ExplainRouteBody) => this.#post<T.RouteExplanation>("/route/explain", body);

  teams = () => this.#get<T.TeamList>("/teams?all=true");
  createTeam = (body: T.CreateTeamBody) => this.#post<T.TeamView>("/teams", body);
  team = (team: string) => this.#get<T.TeamDetail>(`/teams/${encode(team)}`);
  addTeamMember = (team: string, body: T.JoinTeamBody) => this.#post<T.JoinedMemberView>(`/teams/${encode(team)}/members`, body);
  memberPlan = (team: string, member: string) => this.#get<T.PlanView>(`/teams/${encode(team)}/members/${encode(member)}/plan`);
  answerMemberPlan = (team: string, member: string, body: T.AnswerPlan) => this.#post<unknown>(`/teams/${encode(team)}/members/${encode(member)}/plan`, body);
  teamTasks = (team: string, page: PageQuery) => this.#get<T.TeamTaskList>(`/teams/${encode(team)}/tasks${queryString({ all: true, ...page })}`);
  createTeamTask = (team: string, body: T.AddTeamTaskBody) => this.#post<T.AddedTask>(`/teams/${encode(team)}/tasks`, body);
  teamMessages = (team: string) => this.#get<T.TeamMessageList>(`/teams/${encode(team)}/messages`);
  sendTeamMessage = (team: string, body: T.SendTeamMessageBody) => this.#post<unknown>(`/teams/${encode(team)}/messages`, body);
  reopenTask = (team: string, id: number) => this.#post<unknown>(`/teams/${encode(team)}/tasks/${id}/reopen`, {});
  releaseTask = (team: string, id: number) => this.#post<unknown>(`/teams/${encode(team)}/tasks/${id}/release`, {});
  completeTask = (team: string, id: number) => this.#post<unknown>(`/teams/${encode(team)}/tasks/${id}/complete`, {});
  deleteTask = (team: string, id: number) => requestJson<unknown>("DELETE", `${this.base}/teams/${encode(team)}/tasks/${id}`);
  shutDownTeam = (team: string, body: { reason?: string; force?: boolean }) => this.#post<unknown>(`/teams/${encode(team)}/shutdown`, body);
}
