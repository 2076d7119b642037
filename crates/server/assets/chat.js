// The chat page. It shows what is stored, plus what streams right now: when a turn ends, its stored messages take
// the place of what was streamed, so no reply is ever seen twice.
"use strict";

const TEXTS = {
  en: {
    chats: "Chats", new_chat: "New chat", message: "Message", placeholder: "Write a message…", send: "Send", stop: "Stop",
    keys: "Enter sends · Shift+Enter for a new line · /help for commands", agent: "Agent", you: "You",
    empty_title: "What shall we do?", empty_text: "What is said here is kept on the machine that runs Polyclaw.",
    language: "中文", logout: "Log out", copy: "Copy", copied: "Copied", retry: "Try again", latest: "Jump to latest", dismiss: "Dismiss", more: "Older chats",
    sending: "Sending…", not_sent: "Not sent.", waiting: "Waiting: taken up at the next step",
    retrying: "The model did not answer. Retrying…", resumes: "Going on with the earlier task.", steered: "Set aside for your newer message; it goes on afterwards.",
    silent: "Nothing to add.", cut: "Cut off here: the model's length limit was reached.", stopped: "Stopped.", cut_short: "Cut short.", running: "running", done: "done", error: "failed",
    arguments: "Arguments", result: "Result", ask: "Permission needed", allow: "Allow", deny: "Deny",
    lost: "The connection is lost. Trying again…", offline: "The server does not answer.",
    offline_hint: "What you wrote is kept here and sent when it is back.",
    gate_title: "This page needs a token", gate_label: "Token", gate_open: "Open",
    gate_why: "It opens only with the token of this instance. A link of “polyclaw up” works once, for ten minutes.",
    gate_hint: "Run “polyclaw up” again for another link, or paste the token: it is the file “token” in the instance's home folder.",
    gate_wrong: "That is not the token of this instance.",
    demo: "A small demo model answers here, and is often wrong. For real work set a key such as OPENAI_API_KEY and restart Polyclaw, or start Ollama on its machine; “polyclaw doctor” says more.",
  },
  zh: {
    chats: "对话列表", new_chat: "新对话", message: "消息", placeholder: "输入消息…", send: "发送", stop: "停止",
    keys: "Enter 发送 · Shift+Enter 换行 · /help 查看命令", agent: "智能体", you: "你",
    empty_title: "今天做点什么？", empty_text: "对话保存在运行 Polyclaw 的机器上。",
    language: "English", logout: "退出登录", copy: "复制", copied: "已复制", retry: "重试", latest: "跳到最新", dismiss: "关闭", more: "更早的对话",
    sending: "正在发送…", not_sent: "未发送。", waiting: "等待中：将在下一步处理",
    retrying: "模型没有响应，正在重试…", resumes: "继续之前的任务。", steered: "先处理你的新消息，之后继续。",
    silent: "没有要补充的。", cut: "在此截断：已达到模型的长度上限。", stopped: "已停止。", cut_short: "未说完。", running: "运行中", done: "完成", error: "失败",
    arguments: "参数", result: "结果", ask: "需要许可", allow: "允许", deny: "拒绝",
    lost: "连接已断开，正在重试…", offline: "服务器没有响应。",
    offline_hint: "你写的内容已保留，恢复后会发送。",
    gate_title: "此页面需要令牌", gate_label: "令牌", gate_open: "打开",
    gate_why: "它只能用本实例的令牌打开。“polyclaw up” 的链接十分钟内有效，只能用一次。",
    gate_hint: "请再次运行 “polyclaw up” 获取新链接，或粘贴令牌：它在实例主目录的 “token” 文件中。",
    gate_wrong: "这不是本实例的令牌。",
    demo: "这里由一个小型演示模型回答，经常出错。要正式使用，请设置 OPENAI_API_KEY 等密钥并重启 Polyclaw，或在其机器上启动 Ollama；详情请运行 “polyclaw doctor”。",
  },
};

const $ = (id) => document.getElementById(id);
let language = localStorage.getItem("polyclaw.language") ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
const t = (name) => TEXTS[language][name];

/** One open chat. Opening another makes a new one, and what still arrives for the old one is dropped. */
const chatOf = (key) => ({
  key, messages: new Map(), cards: new Map(), turns: new Map(), settled: new Set(), unfolded: new Set(),
  cursor: 0, last: null, failures: 0,
});
let chat = chatOf(null);
let [sessions, agents, outgoing, models] = [[], [], [], { default_model: null, models: [] }];
/** How many chats are listed, and whether there are older ones. */
let [listed, hasMore] = [100, false];

// Elements. Nothing here parses HTML.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "click") node.addEventListener(name, value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const button = (text, click, kind) => el("button", { type: "button", class: kind, click }, text);
const when = (time) => new Date(time).toLocaleString(language, { dateStyle: "short", timeStyle: "short" });
const note = (text, kind = "") => el("p", { class: `note ${kind}` }, text);

function translate() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const id of ["side", "menu"]) $(id).ariaLabel = t("chats");
  $("composer-text").placeholder = t("placeholder");
}

// Light markdown.

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.+)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?/;
const MARK = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]+?)\*\*|\[([^[\]\n]+)\]\(([^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)|https?:\/\/[^\s<>"'`，。；：！？、）】」]+/g;
const isBlock = (line) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((start) => start.test(line));

function markdown(text, depth = 0) {
  const out = new DocumentFragment();
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) {
    const end = blockEnd(lines, at);
    if (lines[at].trim()) out.append(block(lines.slice(at, end), depth));
    at = end;
  }
  return out;
}

/** The line after the block that starts at `at`. */
function blockEnd(lines, at) {
  const fence = FENCE.exec(lines[at]);
  const until = (stop) => { let end = at + 1; while (end < lines.length && !stop(end)) end += 1; return end; };
  if (fence) return Math.min(until((n) => lines[n].trim().startsWith(fence[1])) + 1, lines.length);
  if (!lines[at].trim() || HEADING.test(lines[at]) || RULE.test(lines[at])) return at + 1;
  if (QUOTE.test(lines[at])) return until((n) => !QUOTE.test(lines[n]));
  if (!ITEM.test(lines[at])) return until((n) => !lines[n].trim() || isBlock(lines[n]));
  const inList = (line = "") => ITEM.test(line) || /^\s{2,}\S/.test(line);
  return until((n) => !inList(lines[n]) && !(lines[n].trim() ? lines[n - 1].trim() && !isBlock(lines[n]) : inList(lines[n + 1])));
}

function block(lines, depth) {
  const [first] = lines;
  const fence = FENCE.exec(first);
  if (fence) {
    const closed = lines.length > 1 && lines.at(-1).trim().startsWith(fence[1]);
    return codeBlock(fence[2], lines.slice(1, closed ? -1 : undefined).join("\n"));
  }
  const heading = HEADING.exec(first);
  if (heading) return el(heading[1].length < 3 ? "h3" : "h4", {}, inline(heading[2]));
  if (RULE.test(first)) return el("hr");
  if (depth < 6 && QUOTE.test(first)) {
    return el("blockquote", {}, markdown(lines.map((line) => line.replace(QUOTE, "")).join("\n"), depth + 1));
  }
  return depth < 6 && ITEM.test(first) ? list(lines, depth) : el("p", {}, inline(lines.join("\n")));
}

function list(lines, depth) {
  const [, indent, marker] = ITEM.exec(lines[0]);
  const inner = new RegExp(`^\\s{0,${indent.length + marker.length + 1}}`);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length + 1) items.push([item[3]]);
    else items.at(-1).push(line.replace(inner, ""));
  }
  const nodes = items.map((item) => el("li", {}, item.length > 1 ? markdown(item.join("\n"), depth + 1) : inline(item[0])));
  return /\d/.test(marker) ? el("ol", { start: parseInt(marker, 10) }, ...nodes) : el("ul", {}, ...nodes);
}

function codeBlock(name, code) {
  const copy = button(t("copy"), () => navigator.clipboard.writeText(code).then(() => { copy.textContent = t("copied"); }, () => {}));
  return el("div", { class: "code" }, el("div", { class: "bar" }, el("span", {}, name), copy),
    el("pre", { tabindex: 0 }, el("code", {}, code)));
}

function inline(text) {
  const out = new DocumentFragment();
  const plain = (words) => words.split("\n").forEach((line, n) => out.append(...(n ? [el("br")] : []), line));
  let from = 0;
  // Marks in a very long paragraph are not worth a page that hangs.
  for (const found of text.length > 20000 ? [] : text.matchAll(MARK)) {
    plain(text.slice(from, found.index));
    out.append(...marked(found));
    from = found.index + found[0].length;
  }
  plain(text.slice(from));
  return out;
}

function marked([whole, , code, bold, label, address]) {
  if (code !== undefined) return [el("code", {}, code)];
  if (bold !== undefined) return [el("strong", {}, inline(bold))];
  if (label !== undefined) return [link(address, label, whole)];
  const end = /[.,;:!?)\]*]*$/.exec(whole).index;
  return [link(whole.slice(0, end), whole.slice(0, end), whole.slice(0, end)), whole.slice(end)];
}

/** A link only if it leads to the web; anything else stays the text it was. */
function link(address, label, otherwise) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return otherwise;
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, label);
}

// The server.

// A login has two halves: a cookie that no script can read, and this key, which only pages of this very origin can read.
const LOGIN = "polyclaw.login";
const loginHeaders = () => (localStorage.getItem(LOGIN) ? { "polyclaw-login": localStorage.getItem(LOGIN) } : {});

/** Trades a one-time code for a login. */
async function redeem(code) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch("login", { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (answer?.ok) localStorage.setItem(LOGIN, (await answer.json()).key);
  return Boolean(answer?.ok);
}

async function logout() {
  await api("DELETE", "/logins/current").catch(() => {});
  localStorage.removeItem(LOGIN);
  location.reload();
}

async function api(method, path, body) {
  const problem = (status, fields) => Object.assign(new Error(), { status, ...fields });
  const headers = { ...loginHeaders(), ...(body && { "content-type": "application/json" }) };
  const options = { method, headers, body: body && JSON.stringify(body) };
  const response = await fetch(`api/v1${path}`, options).catch(() => {
    throw problem(0, { message: t("offline"), hint: t("offline_hint") });
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) showGate();
  throw problem(response.status, answer.error ?? { message: `${response.status} ${response.statusText}` });
}

const at = (mine, rest = "") => `/sessions/${encodeURIComponent(mine.key)}${rest}`;

function showProblem({ status, message, hint }) {
  if (status === 401) return;
  const close = button("×", () => { $("problem").hidden = true; $("composer-text").focus(); });
  close.ariaLabel = t("dismiss");
  const stays = nearEnd();
  $("problem").replaceChildren(el("div", {}, message, el("div", { class: "hint" }, hint ?? "")), close);
  $("problem").hidden = false;
  toEnd(stays);
}

/** Trades the token for a one-time link: the token itself never stands in an address. */
async function enter(token) {
  const answer = await fetch("api/v1/logins", { method: "POST", headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  if (answer?.ok && await redeem((await answer.json()).code)) location.reload();
  else $("gate-wrong").hidden = false;
}

function showGate() {
  disconnect(chat);
  $("app").hidden = true;
  $("gate").hidden = false;
  $("gate-token").focus();
}

// The list of chats.

async function loadSessions() {
  const found = [];
  let cursor = "";
  do {
    const page = await api("GET", `/sessions?limit=100${cursor}`);
    found.push(...page.sessions);
    cursor = page.next_cursor && `&cursor=${page.next_cursor}`;
  } while (cursor && found.length < listed);
  hasMore = Boolean(cursor);
  sessions = found.filter((one) => !one.owner_session_key);
  showSessions();
}

function showSessions() {
  const focused = document.activeElement?.dataset.key;
  $("sessions").replaceChildren(...sessions.map(sessionItem));
  $("more").hidden = !hasMore;
  if (focused) $("sessions").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function sessionItem(one) {
  const facts = [one.channel === "web" ? null : one.channel, one.active_agent_id, one.running_turn_id ? t("running") : when(one.updated_at)];
  return el("li", {}, el("button", {
    type: "button", class: "plain", "data-key": one.session_key, "aria-current": one.session_key === chat.key ? "true" : null,
    click: () => { toggleSide(false); openChat(one.session_key); },
  }, el("span", { class: "name" }, one.title || t("new_chat")), el("span", { class: "sub" }, facts.filter(Boolean).join(" · "))));
}

// Opening a chat.

/** The chat the address names, be it listed or not. */
function keyInAddress() {
  try { return decodeURIComponent(/^#\/(.+)$/.exec(location.hash)?.[1] ?? "") || null; } catch { return null; }
}

function openChat(key) {
  disconnect(chat);
  chat = chatOf(key);
  history.replaceState(null, "", key ? `#/${encodeURIComponent(key)}` : location.pathname);
  $("stored").replaceChildren();
  $("turns").replaceChildren();
  $("problem").hidden = $("line").hidden = true;
  show();
  showSessions();
  if (key) load(chat);
}

/** Also the way back after a lost connection or missed frames; in the latter case the stream is still there. */
async function load(mine) {
  const known = new Set(mine.turns.keys());
  try {
    const messages = await transcript(mine);
    const [session, backlog, { approvals }] =
      await Promise.all([at(mine), at(mine, "/backlog"), "/approvals"].map((path) => api("GET", path)));
    if (mine !== chat) return;
    const running = mine.settled.has(session.running_turn_id) ? null : session.running_turn_id;
    const begun = new Set(messages.map((one) => one.turn_id));
    const stays = !mine.session || nearEnd();
    const goesOn = mine.last !== null && mine.turns.get(running)?.started;
    for (const id of [...mine.turns.keys()]) if (id === running ? !goesOn : begun.has(id) || known.has(id)) dropTurn(mine, id);
    keepAll(mine, messages);
    mine.session = session;
    mine.settled.delete(running);
    if (running) turn(mine, running).started = true;
    for (const one of backlog.waiting) accept(mine, one.turn_id, one.id, one.text);
    for (const one of approvals) if (one.session_key === mine.key) ask(mine, one);
    show();
    toEnd(stays);
    if (!mine.source) follow(mine);
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    if (mine !== chat || problem.status === 401) return;
    if (problem.status === 404) { openChat(null); showProblem(problem); } else lost(mine);
  }
}

async function transcript(mine) {
  const found = [];
  for (let after = mine.cursor; after !== null;) {
    const page = await api("GET", at(mine, `/transcript?after=${after}&limit=500`));
    found.push(...page.messages);
    after = page.next_after ?? null;
  }
  return found;
}

/** After a turn ended: its stored messages take the place of what was streamed. */
async function refresh(mine) {
  mine.again = true;
  if (mine.refreshing) return;
  mine.refreshing = true;
  try {
    while (mine.again) {
      mine.again = false;
      const ended = [...mine.turns.values()].filter((one) => one.ended);
      const messages = await transcript(mine);
      const session = await api("GET", at(mine));
      if (mine !== chat) return;
      const stays = nearEnd();
      for (const { id } of ended) dropTurn(mine, id);
      const running = session.running_turn_id;
      if (running && !mine.settled.has(running)) turn(mine, running);
      mine.session = session;
      keepAll(mine, messages);
      show();
      toEnd(stays);
    }
    loadSessions().catch(() => {});
  } catch (problem) {
    // The stream breaks too, and its way back reads everything.
    if (problem.status === undefined) throw problem;
  } finally { mine.refreshing = false; }
}

function follow(mine) {
  disconnect(mine);
  const source = mine.source = new EventReader(`api/v1${at(mine, `/stream?after=${encodeURIComponent(mine.last ?? 0)}`)}`);
  source.onmessage = (event) => {
    if (mine !== chat || mine.source !== source) return;
    if (event.lastEventId) mine.last = event.lastEventId;
    receive(mine, JSON.parse(event.data));
  };
  source.onopen = () => { mine.failures = 0; $("line").hidden = true; resend(); };
  source.onerror = () => { if (mine === chat && mine.source === source) lost(mine); };
}

/** Reads server-sent events. An `EventSource` would do, if it could send our key. */
class EventReader {
  #stop = new AbortController();

  constructor(address) {
    this.#read(address).catch(() => {}).then(() => { if (!this.#stop.signal.aborted) this.onerror(); });
  }

  close() { this.#stop.abort(); }

  async #read(address) {
    const response = await fetch(address, { headers: loginHeaders(), signal: this.#stop.signal });
    if (!response.ok) return;
    this.onopen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (text + part.value).split("\n\n");
      text = events.pop();
      for (const event of events) this.#tell(event);
    }
  }

  #tell(event) {
    const field = (name) => event.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
    if (field("data")) this.onmessage({ data: field("data"), lastEventId: field("id") });
  }
}

function disconnect(mine) {
  mine.source?.close();
  mine.source = null;
  clearTimeout(mine.timer);
}

function lost(mine) {
  disconnect(mine);
  const pause = Math.min(500 * 2 ** mine.failures, 30000);
  mine.failures += 1;
  $("line").hidden = false;
  mine.timer = setTimeout(() => load(mine), pause * (0.8 + 0.4 * Math.random()));
}

function receive(mine, frame) {
  const { event } = frame;
  if (event === "replay.gap") { mine.last = null; load(mine); return; }
  if (event === "session.changed") { refresh(mine); return; }
  if (event !== "turn.ended" && mine.settled.has(frame.turn_id)) return;
  const stays = nearEnd();
  FRAMES[event]?.(mine, frame, frame.turn_id && event !== "turn.ended" ? turn(mine, frame.turn_id) : null);
  show();
  toEnd(stays);
}

const FRAMES = {
  "message.accepted": (mine, frame) => accept(mine, frame.turn_id, frame.message_id, frame.text),
  "turn.started": (mine, frame, one) => {
    Object.assign(one, { started: true, whole: true, agent: frame.agent_id });
    dropText(one);
    dropCards(mine, one.id);
    one.output.replaceChildren(...(frame.resumes.length ? [note(t("resumes"))] : []));
  },
  "turn.delta": (mine, frame, one) => addText(one, frame.text),
  "turn.restarted": (mine, frame, one) => dropText(one),
  "delegate.started": (mine, frame, one) => { endText(one); dropText(speech(one, frame)); },
  "delegate.delta": (mine, frame, one) => addText(speech(one, frame), frame.text),
  "delegate.ended": (mine, frame, one) => {
    const said = speech(one, frame);
    dropText(said);
    said.output.append(el("div", { class: "text" }, markdown(frame.text)));
  },
  "turn.retrying": (mine, frame, one) => {
    endText(one);
    if (frame.attempt === 1) one.output.append(note(t("retrying")));
    $("announcer").textContent = t("retrying");
  },
  "turn.notice": (mine, frame, one) => { endText(one); one.output.append(note(frame.text)); $("announcer").textContent = frame.text; },
  "tool.started": (mine, frame, one) => {
    // A call that is stored already has its card, and the text before it is stored with it.
    if (mine.cards.has(`${one.id} ${frame.call_id}`)) { dropText(one); return; }
    endText(one);
    one.output.append(card(mine, one.id, { ...frame, id: frame.call_id }, false));
  },
  "tool.output": (mine, frame) => mine.cards.get(`${frame.turn_id} ${frame.call_id}`)?.add(frame.text),
  "tool.ended": (mine, frame) => mine.cards.get(`${frame.turn_id} ${frame.call_id}`)?.end(frame.text, frame.is_error),
  "approval.requested": (mine, frame) => ask(mine, frame),
  "approval.decided": (mine, frame) => askNode(frame.approval_id)?.remove(),
  "turn.ended": (mine, frame) => {
    const one = mine.turns.get(frame.turn_id);
    mine.settled.add(frame.turn_id);
    if (!one && mine.messages.has(frame.message_id)) return;
    if (one) one.ended = true;
    if (one && frame.text) $("announcer").textContent = frame.text;
    if (one && frame.state === "steered") { endText(one); one.output.append(note(t("steered"))); }
    refresh(mine);
  },
};

// Turns that run or wait.

function turn(mine, id) {
  if (!mine.turns.has(id)) {
    const [inputs, output] = [el("div"), el("div")];
    const reply = el("div", { class: "message reply" }, el("div", { class: "who" }), output);
    const node = el("div", {}, inputs, reply);
    mine.turns.set(id, { id, node, inputs, reply, output, waiting: new Map(), started: false, ended: false, whole: false, text: null });
    $("turns").append(node);
  }
  return mine.turns.get(id);
}

function dropTurn(mine, id) {
  const one = mine.turns.get(id);
  if (!one) return;
  dropText(one);
  dropCards(mine, id);
  one.node.remove();
  mine.turns.delete(id);
}

function dropCards(mine, id) {
  for (const [name, one] of mine.cards) if (one.turn === id && !one.stored) mine.cards.delete(name);
}

/** An accepted message, shown here until its turn is stored, in place of the one still being sent. */
function accept(mine, turnId, id, text) {
  if (mine.messages.has(id)) return;
  const sent = outgoing.find((one) => one.key === mine.key && one.text === text.trim());
  outgoing = outgoing.filter((one) => one !== sent);
  const one = turn(mine, turnId);
  if (one.waiting.has(id)) return;
  one.waiting.set(id, bubble(text));
  one.inputs.append(one.waiting.get(id));
}

function addText(one, text) {
  one.started = true;
  if (!one.text) {
    one.text = { node: el("div", { class: "text live" }), words: one.whole ? "" : "… ", timer: null };
    one.whole = true;
    one.output.append(one.text.node);
  }
  const live = one.text;
  live.words += text;
  live.timer ??= setTimeout(() => {
    const stays = nearEnd();
    live.timer = null;
    live.node.replaceChildren(markdown(live.words));
    toEnd(stays);
  }, Math.min(16 + live.words.length / 100, 400));
}

/** Where another agent speaks in the turn that waits for it, under its own name. */
function speech(one, { run_id, agent_id, name }) {
  one.speeches ??= new Map();
  if (!one.speeches.has(run_id)) {
    const output = el("div", { class: "message speech" }, el("div", { class: "who" }, name || face(agent_id)));
    one.speeches.set(run_id, { output, text: null, whole: true });
    one.output.append(output);
  }
  return one.speeches.get(run_id);
}

function endText(one) {
  clearTimeout(one.text?.timer);
  one.text?.node.replaceChildren(markdown(one.text.words));
  one.text?.node.classList.remove("live");
  one.text = null;
}

function dropText(one) {
  one.text?.node.remove();
  endText(one);
}

const askNode = (id) => document.querySelector(`[data-ask="${CSS.escape(id)}"]`);

function ask(mine, asked) {
  const id = asked.approval_id ?? asked.id;
  if (askNode(id)) return;
  const decide = (decision) => () => api("POST", `/approvals/${encodeURIComponent(id)}`, { decision }).catch(showProblem);
  const one = turn(mine, asked.turn_id);
  endText(one);
  one.output.append(el("div", { class: "ask", "data-ask": id, role: "group", "aria-label": t("ask") },
    el("strong", {}, `${t("ask")}: ${asked.tool}`), el("pre", { tabindex: 0 }, asked.question && !asked.question.startsWith(`${asked.tool} `) ? asked.question : shown(asked.arguments)),
    button(t("allow"), decide("approve"), "primary"), " ", button(t("deny"), decide("deny"))));
}

// What is stored.

function keepAll(mine, messages) {
  for (const one of messages) {
    const streams = mine.turns.has(one.turn_id);
    // The steps of a turn that streams are on the page already.
    if (!streams || one.origin === "user") keep(mine, one);
    if (!streams) mine.settled.add(one.turn_id);
  }
  if (mine.turns.size === 0) mine.cursor = Math.max(mine.cursor, ...messages.map((one) => one.position));
}

function keep(mine, message) {
  if (mine.messages.has(message.id)) return;
  mine.messages.set(message.id, message);
  for (const one of mine.turns.values()) {
    one.waiting.get(message.id)?.remove();
    one.waiting.delete(message.id);
  }
  const node = messageNode(mine, message);
  if (!node) return;
  node.title = when(message.created_at);
  $("stored").append(node);
}

function messageNode(mine, message) {
  const { role, origin, text, parts, meta, turn_id } = message;
  if (role === "tool") {
    for (const part of parts) mine.cards.get(`${turn_id} ${part.call_id}`)?.end(text, part.is_error);
    return parts.some((part) => part.name === "delegate_to_agent") ? spoken(text) : null;
  }
  if (origin === "user") return bubble([text, ...parts.filter((one) => one.type === "attachment").map((one) => `📎 ${one.name}`)].join("\n").trim());
  if (role === "user") return text.startsWith("[Backlog]") ? note(t("resumes")) : note(`${origin}\n${text}`, "output");
  if (meta?.silent) return note(t("silent"));
  if (meta?.error === "stopped" && !meta.said) return note(t("stopped"));
  const who = origin.startsWith("agent:") ? origin.slice(6) : mine.session?.active_agent_id ?? "";
  const node = el("div", { class: "message reply" }, el("div", { class: "who" }, face(who)));
  if (meta?.said) node.append(el("div", { class: "text" }, markdown(meta.said)));
  if (text) node.append(el("div", { class: meta?.error ? "text failed" : "text" }, markdown(text)));
  if (meta?.finish_reason === "length") node.append(note(t("cut")));
  for (const part of parts) if (part.type === "tool_call") node.append(card(mine, turn_id, part, true));
  return node;
}

/** What another agent said here, as the result of the call that asked it keeps it. */
function spoken(result) {
  let told = null;
  try { told = JSON.parse(result); } catch { return null; }
  const said = told?.response ?? told?.partial_response;
  if (!told?.streamed || !said) return null;
  const node = el("div", { class: "message speech" }, el("div", { class: "who" }, face(told.agent_id)), el("div", { class: "text" }, markdown(said)));
  if (!told.response) node.append(note(t("cut_short")));
  return node;
}

// How an agent shows itself: its emoji, if it has one, and its name.
const face = (id) => {
  const { name, emoji } = agents.find((one) => one.agent_id === id)?.appearance ?? {};
  return [emoji, name ?? id].filter(Boolean).join(" ");
};

const bubble = (text) =>
  el("div", { class: "message user" }, el("span", { class: "unseen" }, t("you")), el("div", { class: "bubble" }, text));

// Tool cards.

const shown = (value) => typeof value === "string" ? value : JSON.stringify(value ?? {}, null, 2);
const brief = (value) => String(Object.values(value ?? {}).find((one) => one?.trim) ?? "").slice(0, 120);

function card(mine, turnId, call, isStored) {
  const id = `${turnId} ${call.id}`;
  const state = el("span", { class: "unseen" }, t("running"));
  const result = el("pre", { tabindex: 0 });
  const results = el("div", { hidden: "" }, el("div", { class: "label" }, t("result")), result);
  const node = el("details", { class: "card running" },
    el("summary", {}, el("span", { class: "dot" }), el("span", { class: "tool" }, call.name), el("span", { class: "brief" }, brief(call.arguments)), state),
    el("div", { class: "label" }, t("arguments")), el("pre", { tabindex: 0 }, shown(call.arguments)), results);
  node.open = mine.unfolded.has(id);
  node.addEventListener("toggle", () => mine.unfolded[node.open ? "add" : "delete"](id));
  mine.cards.set(id, {
    turn: turnId, stored: isStored,
    add: (text) => { results.hidden = false; if (node.matches(".running")) result.append(text); },
    end: (text, isError) => {
      results.hidden = false;
      result.textContent = text;
      node.className = `card ${isError ? "error" : "done"}`;
      state.textContent = t(isError ? "error" : "done");
    },
  });
  return node;
}

// The whole view.

const nearEnd = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 90;
const showLatest = () => { $("latest").hidden = nearEnd(); };
function toEnd(wanted) {
  if (wanted) $("scroll").scrollTop = $("scroll").scrollHeight;
  showLatest();
}

function show() {
  const running = [...chat.turns.values()].filter((one) => one.started && !one.ended);
  for (const one of chat.turns.values()) showTurn(one, running[0]);
  $("stop").hidden = running.length === 0;
  $("pending").replaceChildren(...outgoing.filter((one) => one.key === chat.key).map(outgoingNode));
  const known = chat.session ?? sessions.find((one) => one.session_key === chat.key);
  $("title").textContent = known?.title || t("new_chat");
  const agent = agents.find((one) => one.agent_id === (known?.active_agent_id ?? $("pick-agent").value));
  const model = known?.model ?? agent?.defaults.model ?? models.default_model;
  $("facts").textContent = [face(agent?.agent_id), model].filter(Boolean).join(" · ");
  $("demo").hidden = !models.models.some((one) => one.model === model && one.demo);
  document.title = known?.title ? `${known.title} · Polyclaw` : "Polyclaw";
  $("empty").hidden = chat.key && !chat.session || ["stored", "turns", "pending"].some((id) => $(id).childElementCount);
}

function showTurn(one, running) {
  const waits = !one.started && !one.ended && running !== undefined;
  one.reply.hidden = waits || one.ended && !one.output.childElementCount;
  one.reply.classList.toggle("live", !one.ended && !one.text && !one.output.querySelector(".ask"));
  one.reply.firstChild.textContent = face(one.agent ?? chat.session?.active_agent_id ?? "");
  for (const node of one.waiting.values()) {
    node.classList.toggle("waiting", waits);
    node.querySelector(".state")?.remove();
    if (waits) node.append(el("div", { class: "state" }, t("waiting")));
  }
}

function outgoingNode(one) {
  const node = bubble(one.text);
  node.append(el("div", { class: `state ${one.state}` }, t(one.state), ...(one.state === "sending" ? [] : [button(t("retry"), () => post(one))])));
  return node;
}

function toggleSide(open) {
  $("side").classList.toggle("open", open);
  $("shade").hidden = !open;
  $("menu").setAttribute("aria-expanded", String(open));
  (open ? $("new-chat") : $("composer-text")).focus();
}

// Writing.

async function submit() {
  const text = $("composer-text").value.trim();
  if (!text) return;
  $("problem").hidden = true;
  write("");
  try {
    if (!chat.key) await createChat(text);
    if (text.startsWith("/") && await command(text)) return;
    const one = { key: chat.key, id: `${Date.now()}-${Math.random()}`, text, state: "sending" };
    outgoing.push(one);
    await post(one);
  } catch (problem) {
    showProblem(problem);
    if (!$("composer-text").value) write(text);
  }
}

async function createChat(text) {
  const title = text.startsWith("/") ? undefined : text.split("\n")[0].slice(0, 60);
  const made = await api("POST", "/sessions", { title, agent: $("pick-agent").value || undefined });
  openChat(made.session_key);
}

/** The server knows an id it has seen, so sending again is safe. */
async function post(one) {
  one.state = "sending";
  show();
  toEnd(true);
  try {
    const answer = await api("POST", at(one, "/messages"), { text: one.text, idempotency_key: one.id });
    outgoing = outgoing.filter((other) => other !== one);
    // After `/focus` it went to another session, which is opened: the answer comes there.
    if (chat.key === one.key && answer.session_key !== one.key) openChat(answer.session_key);
    else if (chat.key === one.key) accept(chat, answer.turn_id, answer.message_id, one.text);
    loadSessions().catch(() => {});
  } catch (problem) {
    showProblem(problem);
    if (isRefused(problem)) giveBack(one); else one.state = "not_sent";
  }
  const stays = nearEnd();
  show();
  toEnd(stays);
}

/** The server answered and will answer the same again; anything else is sent again by itself. */
const isRefused = ({ status }) => status >= 400 && status < 500 && ![401, 408, 429].includes(status);

function giveBack(one) {
  outgoing = outgoing.filter((other) => other !== one);
  if (chat.key === one.key) write([one.text, $("composer-text").value].filter(Boolean).join("\n"));
}

function resend() {
  for (const one of outgoing) if (one.key === chat.key && one.state === "not_sent") { $("problem").hidden = true; post(one); }
}

/** Whether it was a command: a line with a slash that is none is a message. */
async function command(text) {
  const { key } = chat;
  const answer = await api("POST", at(chat, "/commands"), { text }).catch((problem) => {
    if (problem.code !== "unknown_command") throw problem;
  });
  if (!answer) return false;
  if (chat.key !== key) return true;
  if (/^\/new\b/.test(text)) openChat(key); else refresh(chat);
  $("stored").append(note(`${text}\n${answer.text}`, "output"));
  $("announcer").textContent = answer.text;
  show();
  toEnd(true);
  return true;
}

function write(text) {
  const field = $("composer-text");
  if (field.value !== text) field.value = text;
  $("send").disabled = !field.value.trim();
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

async function loadAgents() {
  ({ agents } = await api("GET", "/agents"));
  api("GET", "/models").then((found) => { models = found; show(); }, () => {});
  const option = (one) => el("option", { value: one.agent_id, selected: one.default ? "" : null }, face(one.agent_id));
  $("pick-agent").replaceChildren(...agents.map(option));
  $("pick").hidden = agents.length < 2;
}

// Start.

function listen() {
  const on = (id, event, run) => $(id).addEventListener(event, run);
  on("composer", "submit", (event) => { event.preventDefault(); submit(); });
  on("composer-text", "input", (event) => write(event.target.value));
  on("composer-text", "keydown", (event) => {
    // An Enter that picks a character of an input method must not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  on("scroll", "scroll", showLatest);
  on("latest", "click", () => { $("scroll").focus({ preventScroll: true }); toEnd(true); });
  on("pick-agent", "change", show);
  on("stop", "click", () => api("POST", at(chat, "/stop")).catch(showProblem));
  on("new-chat", "click", () => { toggleSide(false); openChat(null); });
  on("more", "click", () => { listed += 100; loadSessions().catch(showProblem); });
  addEventListener("hashchange", () => { const key = keyInAddress(); if (key && key !== chat.key) openChat(key); });
  on("menu", "click", () => toggleSide(!$("side").classList.contains("open")));
  on("shade", "click", () => toggleSide(false));
  on("side", "keydown", (event) => { if (event.key === "Escape") toggleSide(false); });
  on("language", "click", () => {
    language = language === "zh" ? "en" : "zh";
    localStorage.setItem("polyclaw.language", language);
    translate();
    openChat(chat.key);
  });
  on("logout", "click", logout);
  on("gate-form", "submit", (event) => {
    event.preventDefault();
    enter($("gate-token").value.trim());
  });
}


async function start() {
  translate();
  listen();
  const code = new URLSearchParams(location.search).get("code");
  if (code !== null) {
    // Where it was used before, an earlier login may still be good.
    await redeem(code);
    history.replaceState(null, "", location.pathname + location.hash);
  }
  try {
    await loadSessions();
    await loadAgents();
  } catch (problem) {
    $("app").hidden = problem.status === 401;
    showProblem(problem);
    if (problem.status !== 401) setTimeout(() => location.reload(), 5000);
    return;
  }
  $("app").hidden = false;
  openChat(keyInAddress() ?? sessions[0]?.session_key ?? null);
  $("composer-text").focus();
  setInterval(() => { if (!document.hidden && chat.failures === 0) loadSessions().catch(() => {}); }, 30000);
}

start();
