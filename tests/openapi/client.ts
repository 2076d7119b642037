// Uses the generated types: it compiles only if the documents match this code, and passes only if the servers match the documents.
import createClient from "openapi-fetch";
import type { paths as ControlPaths } from "./control.js";
import type { paths as InstancePaths } from "./instance.js";

const { INSTANCE_URL, INSTANCE_TOKEN, CONTROL_URL, CONTROL_TOKEN } = process.env;
const instance = createClient<InstancePaths>({ baseUrl: INSTANCE_URL, headers: { authorization: `Bearer ${INSTANCE_TOKEN}` } });
const control = createClient<ControlPaths>({ baseUrl: CONTROL_URL, headers: { authorization: `Bearer ${CONTROL_TOKEN}` } });

function expect<T>(what: string, { data, error }: { data?: T; error?: unknown }): T {
  if (error !== undefined || data === undefined) throw new Error(`${what}: ${JSON.stringify(error)}`);
  return data;
}

const { agents } = expect("agents", await instance.GET("/api/v1/agents"));
const job = { id: "brief", schedule: "every 1h", message: "write a brief", timezone: "UTC" };
const created = expect("a new cron job", await instance.POST("/api/v1/cron", { body: job }));
const found = expect("the cron job", await instance.GET("/api/v1/cron/{id}", { params: { path: { id: created.id } } }));
const missing = await instance.GET("/api/v1/cron/{id}", { params: { path: { id: "none" } } });
if (missing.error?.error.code !== "unknown_cron_job") throw new Error(`a missing job: ${JSON.stringify(missing)}`);
const { instances } = expect("instances", await control.GET("/api/instances"));
console.log(`${agents.length} agent, cron job ${found.id}, ${instances.length} instances`);
