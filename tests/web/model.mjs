// A model server for one test at a time: the streaming chat completions API of OpenAI.
import http from "node:http";

/** A promise with its resolver, for tests that decide when the model continues. */
export function gate() {
  let open;
  const passed = new Promise((resolve) => { open = resolve; });
  return { open, passed };
}

export class Model {
  /** The usage that every answer reports, or null. */
  usage = null;
  /** Yields `{ text }` and `{ call: { id, name, arguments } }`; may await in between. */
  answer = async function* () { yield { text: "Hello." }; };
  requests = [];

  async start() {
    this.server = http.createServer((request, response) => this.#serve(request, response).catch(() => response.destroy()));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #serve(request, response) {
    if (request.url.endsWith("/models")) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", data: [{ id: "steady", object: "model" }] }));
      return;
    }
    let body = "";
    for await (const piece of request) body += piece;
    const asked = JSON.parse(body);
    this.requests.push(asked);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish = null) => response.write(`data: ${JSON.stringify({
      id: "answer", object: "chat.completion.chunk", model: asked.model, created: 0,
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`);
    let finish = "stop";
    let calls = 0;
    for await (const step of this.answer(asked)) {
      if (step.text) send({ role: "assistant", content: step.text });
      if (step.call) {
        const { id, name, arguments: given } = step.call;
        send({ role: "assistant", tool_calls: [{ index: calls++, id, type: "function", function: { name, arguments: JSON.stringify(given) } }] });
        finish = "tool_calls";
      }
    }
    send({}, finish);
    if (this.usage) response.write(`data: ${JSON.stringify({ id: "answer", object: "chat.completion.chunk", model: asked.model, created: 0, choices: [], usage: this.usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

/** Returns the last user message as the model received it. */
export function lastUserText(asked) {
  const { content } = asked.messages.findLast((message) => message.role === "user");
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}

/** Returns whether this model call follows a tool result. */
export const followsTool = (asked) => asked.messages.at(-1).role === "tool";

/** Returns a model that always answers with this text. */
export const says = (text) => async function* () { yield { text }; };
