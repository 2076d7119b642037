// The chat page. What it shows is what the server stored, plus what streams right now: when a turn ends, its
// streamed text goes and the stored message takes its place, so no reply is ever seen twice.
"use strict";

const TEXTS = {
  en: {
    skip: "Skip to the message field", chats: "Chats", conversation: "Conversation", new_chat: "New chat",
    no_sessions: "No chats yet.", untitled: "New chat", message: "Message", placeholder: "Write a message…",
    send: "Send", stop: "Stop", keys: "Enter sends · Shift+Enter for a new line · /help for commands",
    empty_title: "What shall we do?", empty_text: "Your conversation is kept on this machine.",
    agent: "Agent", you: "You", language: "中文", copy: "Copy", copied: "Copied", retry: "Try again",
    dismiss: "Dismiss", sending: "Sending…", not_sent: "Not sent.", starting: "Starting…",
    waiting: "Waiting: taken up at the next step", waiting_next: "Waiting: answered next",
    steered: "Set aside for your newer message. It goes on afterwards.", resumes: "Going on with the earlier task.",
    restarted: "Another model starts over.", thinking: "Thinking…", silent: "Nothing to add.", stopped: "Stopped.",
    running: "running", done: "done", error: "failed", arguments: "Arguments", result: "Result", from: "From",
    ask: "Allow this?", allow: "Allow", deny: "Deny", approved: "Allowed.", denied: "Denied.", expired: "No longer asked.",
    lost: "The connection is lost. Trying again…", offline: "The server does not answer.",
    offline_hint: "What you wrote is kept and sent when it is back.", now: "just now",
    gate_title: "This link needs a token",
    gate_why: "This page is open only to those who have the token of this instance; yours is missing or wrong.",
    gate_hint: "Use the link that \"polyclaw up\" prints, or paste the token, which is the file \"token\" in the home folder of the instance.",
    gate_label: "Token", gate_open: "Open",
  },
  zh: {
    skip: "跳到输入框", chats: "对话列表", conversation: "对话", new_chat: "新对话",
    no_sessions: "还没有对话。", untitled: "新对话", message: "消息", placeholder: "输入消息…",
    send: "发送", stop: "停止", keys: "Enter 发送 · Shift+Enter 换行 · /help 查看命令",
    empty_title: "今天做点什么？", empty_text: "对话保存在这台机器上。",
    agent: "智能体", you: "你", language: "English", copy: "复制", copied: "已复制", retry: "重试",
    dismiss: "关闭", sending: "正在发送…", not_sent: "未发送。", starting: "正在开始…",
    waiting: "等待中：将在下一步处理", waiting_next: "等待中：接下来回答",
    steered: "先处理你的新消息，之后继续。", resumes: "继续之前的任务。",
    restarted: "换用另一个模型重新开始。", thinking: "思考中…", silent: "没有要补充的。", stopped: "已停止。",
    running: "运行中", done: "完成", error: "失败", arguments: "参数", result: "结果", from: "来自",
    ask: "允许执行吗？", allow: "允许", deny: "拒绝", approved: "已允许。", denied: "已拒绝。", expired: "已不再询问。",
    lost: "连接已断开，正在重试…", offline: "服务器没有响应。",
    offline_hint: "你写的内容已保留，恢复后会发送。", now: "刚刚",
    gate_title: "此链接需要令牌",
    gate_why: "只有持有本实例令牌的人才能打开此页面；你的令牌缺失或不正确。",
    gate_hint: "请使用 “polyclaw up” 显示的链接，或粘贴令牌：它在实例主目录的 “token” 文件中。",
    gate_label: "令牌", gate_open: "打开",
  },
};
const PAUSES = [500, 1000, 2000, 4000, 8000, 16000, 30000];
const EVENTS = ["message.accepted", "turn.started", "turn.delta", "turn.reasoning", "turn.restarted", "tool.started",
  "tool.output", "tool.ended", "approval.asked", "approval.decided", "turn.ended", "session.changed", "replay.gap"];
const LONGEST_MARKED = 20000;

const $ = (id) => document.getElementById(id);
const remembered = (() => { try { return localStorage.getItem("polyclaw.language"); } catch { return null; } })();
let language = TEXTS[remembered] ? remembered : navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
const t = (name) => TEXTS[language][name] ?? name;

/** One open conversation; opening another makes a new one, and what arrives for the old one is dropped. */
function conversation(key) {
  return { key, session: null, stored: new Map(), cards: new Map(), turns: new Map(), settled: new Set(),
    open: new Set(), cursor: 0, last: null, source: null, failures: 0, timer: null, refreshing: null, again: false };
}
let chat = conversation(null);
let sessions = [];
let pending = [];

// ---- elements ---------------------------------------------------------------------------------------------

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const button = (text, click, kind) => el("button", { type: "button", class: kind, on: { click } }, text);
const note = (text, kind = "") => el("p", { class: `note ${kind}`.trim() }, text);

function translate() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of document.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
  $("language").textContent = t("language");
  $("language").lang = language === "zh" ? "en" : "zh-CN";
}

// ---- light markdown, as elements --------------------------------------------------------------------------

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?/;
const MARK = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]+?)\*\*|\[([^\[\]\n]+)\]\(([^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)|https?:\/\/[^\s<>"'`，。；：！？、）】」]+/g;

function markdown(text, depth = 0) {
  const out = document.createDocumentFragment();
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) { at += 1; continue; }
    const end = blockEnd(lines, at);
    out.append(block(lines.slice(at, end), depth));
    at = end;
  }
  return out;
}

const startsBlock = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || ITEM.test(line) || QUOTE.test(line);

/** The line after the block that starts at `at`. */
function blockEnd(lines, at) {
  const fence = FENCE.exec(lines[at]);
  let end = at + 1;
  if (fence) {
    while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
    return Math.min(end + 1, lines.length);
  }
  if (HEADING.test(lines[at]) || RULE.test(lines[at])) return end;
  if (QUOTE.test(lines[at])) {
    while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  } else if (ITEM.test(lines[at])) {
    const goesOn = (n) => ITEM.test(lines[n]) || /^\s{2,}\S/.test(lines[n]);
    while (end < lines.length && (goesOn(end) || (lines[end].trim() ? !startsBlock(lines[end]) && !!lines[end - 1].trim() : end + 1 < lines.length && goesOn(end + 1)))) end += 1;
  } else {
    while (end < lines.length && lines[end].trim() && !startsBlock(lines[end])) end += 1;
  }
  return end;
}

function block(lines, depth) {
  const first = lines[0];
  const fence = FENCE.exec(first);
  const heading = HEADING.exec(first);
  if (fence) {
    const closed = lines.length > 1 && lines.at(-1).trim().startsWith(fence[1]);
    return codeBlock(fence[2], lines.slice(1, closed ? -1 : undefined).join("\n"));
  }
  if (heading) return el(heading[1].length < 3 ? "h3" : "h4", {}, inline(heading[2]));
  if (RULE.test(first)) return el("hr");
  if (depth < 6 && QUOTE.test(first)) {
    return el("blockquote", {}, markdown(lines.map((line) => line.replace(QUOTE, "")).join("\n"), depth + 1));
  }
  if (depth < 6 && ITEM.test(first)) return list(lines, depth);
  return el("p", {}, inline(lines.join("\n")));
}

function list(lines, depth) {
  const [, indent, marker] = ITEM.exec(lines[0]);
  const numbered = /\d/.test(marker);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length + 1) items.push([item[3]]);
    else items.at(-1).push(line.replace(new RegExp(`^\\s{0,${indent.length + marker.length + 1}}`), ""));
  }
  const start = numbered && parseInt(marker, 10) !== 1 ? parseInt(marker, 10) : undefined;
  return el(numbered ? "ol" : "ul", { start }, ...items.map((item) => listItem(item, depth)));
}

function listItem(lines, depth) {
  if (lines.length === 1) return el("li", {}, inline(lines[0]));
  return el("li", {}, markdown(lines.join("\n"), depth + 1));
}

function codeBlock(name, code) {
  const copy = button(t("copy"), async () => {
    await navigator.clipboard.writeText(code).catch(() => {});
    copy.textContent = t("copied");
    setTimeout(() => { copy.textContent = t("copy"); }, 1500);
  });
  const bar = el("div", { class: "bar" }, el("span", {}, name || "text"), copy);
  return el("div", { class: "code" }, bar, el("pre", { tabindex: "0" }, el("code", {}, code)));
}

function inline(text) {
  const out = document.createDocumentFragment();
  if (text.length > LONGEST_MARKED) { out.append(text); return out; }
  let from = 0;
  for (const found of text.matchAll(MARK)) {
    breaks(out, text.slice(from, found.index));
    out.append(marked(found));
    from = found.index + found[0].length;
  }
  breaks(out, text.slice(from));
  return out;
}

function breaks(out, text) {
  text.split("\n").forEach((line, n) => { if (n) out.append(el("br")); out.append(line); });
}

function marked([whole, , code, bold, label, address]) {
  if (code !== undefined) return el("code", {}, code);
  if (bold !== undefined) return el("strong", {}, inline(bold));
  if (label !== undefined) return link(address, label, whole);
  const end = whole.match(/[.,;:!?)\]*]*$/)[0];
  const plain = whole.slice(0, whole.length - end.length);
  const out = document.createDocumentFragment();
  out.append(link(plain, plain, plain), end);
  return out;
}

/** A link only if it leads to the web; anything else stays the text it was. */
function link(address, label, otherwise) {
  let url = null;
  try { url = new URL(address); } catch { /* not an address */ }
  if (!url || !["http:", "https:"].includes(url.protocol)) return document.createTextNode(otherwise);
  return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, label);
}

// ---- the server -------------------------------------------------------------------------------------------

class Problem extends Error {
  constructor(status, code, message, hint) { super(message); Object.assign(this, { status, code, hint }); }
}

async function api(method, path, body) {
  let response;
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  try {
    response = await fetch(`api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "offline", t("offline"), t("offline_hint"));
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { code = "", message = `${response.status} ${response.statusText}`, hint } = answer.error ?? {};
  if (response.status === 401) showGate();
  throw new Problem(response.status, code, message, hint);
}

const path = (rest = "", key = chat.key) => `/sessions/${encodeURIComponent(key)}${rest}`;

function showProblem(problem) {
  if (problem.status === 401) return;
  const words = el("div", {}, problem.message);
  if (problem.hint) words.append(el("div", { class: "hint" }, problem.hint));
  const close = button("×", () => { $("problem").hidden = true; $("composer-text").focus(); });
  close.setAttribute("aria-label", t("dismiss"));
  $("problem").replaceChildren(words, close);
  $("problem").hidden = false;
}

function showGate() {
  closeStream(chat);
  $("app").hidden = true;
  $("gate").hidden = false;
  $("gate-token").focus();
}

// ---- the list of chats ------------------------------------------------------------------------------------

async function loadSessions() {
  const found = [];
  let cursor = null;
  do {
    const at = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
    const page = await api("GET", `/sessions?limit=200${at}`);
    found.push(...page.sessions);
    cursor = page.next_cursor ?? null;
  } while (cursor && found.length < 1000);
  sessions = found.filter((one) => !one.owner_session_key);
  sessions.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
  showSessions();
}

function showSessions() {
  const kept = document.activeElement?.dataset?.key;
  $("sessions").replaceChildren(...sessions.map(sessionItem));
  $("no-sessions").hidden = sessions.length > 0;
  if (kept) $("sessions").querySelector(`[data-key="${CSS.escape(kept)}"]`)?.focus();
}

function sessionItem(one) {
  const sub = [one.active_agent_id ?? one.agent_id, one.running_turn_id ? t("running") : age(one.updated_at)];
  if (one.channel && one.channel !== "web") sub.unshift(one.channel);
  return el("li", {}, el("button", {
    type: "button", "data-key": one.session_key, "aria-current": one.session_key === chat.key ? "true" : null,
    on: { click: () => { toggleSide(false); openChat(one.session_key); } },
  }, el("span", { class: "name" }, one.title || t("untitled")), el("span", { class: "sub" }, sub.filter(Boolean).join(" · "))));
}

function age(when) {
  const minutes = Math.round((Date.now() - Date.parse(when)) / 60000);
  if (!(minutes >= 1)) return t("now");
  const words = new Intl.RelativeTimeFormat(language, { style: "short" });
  if (minutes < 60) return words.format(-minutes, "minute");
  if (minutes < 1440) return words.format(-Math.round(minutes / 60), "hour");
  return words.format(-Math.round(minutes / 1440), "day");
}

// ---- opening a conversation -------------------------------------------------------------------------------

function openChat(key, { focus = true } = {}) {
  closeStream(chat);
  chat = conversation(key);
  pending = pending.filter((one) => one.state === "sending");
  history.replaceState(null, "", key ? `#${encodeURIComponent(key)}` : location.pathname);
  for (const id of ["stored", "turns"]) $(id).replaceChildren();
  $("problem").hidden = $("line").hidden = true;
  show();
  showSessions();
  if (focus) $("composer-text").focus();
  if (key) load(chat);
}

/** Reads everything stored, then follows the stream. Also the way back after a lost connection. */
async function load(mine) {
  try {
    const messages = await transcript(mine, mine.cursor);
    const [session, backlog, asked] = await Promise.all([
      api("GET", path("", mine.key)), api("GET", path("/backlog", mine.key)), api("GET", "/approvals"),
    ]);
    if (mine !== chat) return;
    begin(mine, messages, session, backlog);
    for (const one of asked.approvals ?? []) if (one.session_key === mine.key && one.state === "pending") showAsk(mine, one);
    show();
    toEnd(true);
    follow(mine);
    resend();
  } catch (problem) {
    if (mine !== chat) return;
    if (problem.status === 404) { openChat(null); showProblem(problem); } else lost(mine);
  }
}

async function transcript(mine, after) {
  const found = [];
  for (let page = null; !page || page.length === 500;) {
    ({ messages: page } = await api("GET", path(`/transcript?after=${after}&limit=500`, mine.key)));
    found.push(...page);
    after = page.at(-1)?.ticket ?? after;
  }
  return found;
}

function begin(mine, messages, session, backlog) {
  mine.session = session;
  const running = session.running_turn_id ?? null;
  const keepsStreaming = mine.last !== null && mine.turns.get(running)?.started;
  for (const id of [...mine.turns.keys()]) if (!(keepsStreaming && id === running)) dropTurn(mine, id);
  store(mine, messages);
  mine.settled = new Set([...mine.stored.values()].map((one) => one.message.turn_id));
  mine.settled.delete(running);
  if (running) turn(mine, running).started = true;
  for (const message of backlog.messages ?? []) {
    mine.settled.delete(message.turn_id);
    accept(mine, message.turn_id, message.id, message.text);
  }
}

function store(mine, messages) {
  for (const message of messages) keep(mine, message);
  const busy = [...mine.turns.values()].some((one) => !one.ended);
  if (!busy) mine.cursor = Math.max(mine.cursor, ...[...mine.stored.values()].map((one) => one.message.ticket));
}

/** After a turn ended: its stored messages take the place of what was streamed. */
function refresh(mine) {
  if (mine.refreshing) { mine.again = true; return; }
  mine.refreshing = (async () => {
    do {
      mine.again = false;
      const ended = [...mine.turns.values()].filter((one) => one.ended).map((one) => one.id);
      const messages = await transcript(mine, mine.cursor);
      const session = await api("GET", path("", mine.key));
      if (mine !== chat) return;
      const stays = nearEnd();
      for (const id of ended) { dropTurn(mine, id); mine.settled.add(id); }
      mine.session = session;
      store(mine, messages);
      show();
      toEnd(stays);
    } while (mine.again);
    loadSessions().catch(() => {});
  })().catch(() => {}).finally(() => { mine.refreshing = null; });
}

// ---- the stream -------------------------------------------------------------------------------------------

function follow(mine) {
  closeStream(mine);
  const source = new EventSource(`api/v1${path(`/stream?after=${encodeURIComponent(mine.last ?? 0)}`, mine.key)}`);
  mine.source = source;
  const take = (event) => {
    if (mine !== chat || mine.source !== source) return;
    if (event.lastEventId) mine.last = event.lastEventId;
    const frame = JSON.parse(event.data || "{}");
    receive(mine, { ...frame, event: frame.event ?? event.type });
  };
  for (const name of [...EVENTS, "message"]) source.addEventListener(name, take);
  source.onopen = () => { mine.failures = 0; $("line").hidden = true; };
  source.onerror = () => { if (mine === chat && mine.source === source) lost(mine); };
}

function closeStream(mine) {
  mine.source?.close();
  mine.source = null;
  clearTimeout(mine.timer);
}

function lost(mine) {
  closeStream(mine);
  const pause = PAUSES[Math.min(mine.failures, PAUSES.length - 1)];
  mine.failures += 1;
  $("line").textContent = t("lost");
  $("line").hidden = mine.failures < 2;
  mine.timer = setTimeout(() => { if (mine === chat) load(mine); }, pause * (0.8 + 0.4 * Math.random()));
}

function receive(mine, frame) {
  if (frame.event === "replay.gap") { gap(mine); return; }
  if (frame.event === "session.changed") { refresh(mine); return; }
  if (frame.event === "turn.ended") { end(mine, frame); return; }
  if (mine.settled.has(frame.turn_id)) return;
  const stays = nearEnd();
  FRAMES[frame.event]?.(mine, frame);
  toEnd(stays);
}

/** Frames are missing: what was streamed cannot be trusted, what is stored can. */
function gap(mine) {
  if (mine.last === null && mine.turns.size === 0) return;
  for (const id of [...mine.turns.keys()]) dropTurn(mine, id);
  mine.last = null;
  refreshWhole(mine);
}

async function refreshWhole(mine) {
  const backlog = await api("GET", path("/backlog", mine.key)).catch(() => ({}));
  const messages = await transcript(mine, mine.cursor).catch(() => null);
  const session = await api("GET", path("", mine.key)).catch(() => null);
  if (mine !== chat) return;
  if (!messages || !session) { lost(mine); return; }
  begin(mine, messages, session, backlog);
  show();
}

const FRAMES = {
  "message.accepted": (mine, frame) => { accept(mine, frame.turn_id, frame.message_id, frame.text); show(); },
  "turn.started": (mine, frame) => {
    const one = turn(mine, frame.turn_id);
    Object.assign(one, { started: true, whole: true, agent: frame.agent_id });
    clearOutput(one);
    if (frame.resumes?.length) one.output.append(note(t("resumes")));
    show();
  },
  "turn.delta": (mine, frame) => addText(mine, turn(mine, frame.turn_id), frame.text),
  "turn.reasoning": (mine, frame) => { turn(mine, frame.turn_id).started = true; show(); },
  "turn.restarted": (mine, frame) => {
    const one = turn(mine, frame.turn_id);
    dropText(one);
    one.output.append(note(t("restarted")));
  },
  "tool.started": (mine, frame) => {
    const one = turn(mine, frame.turn_id);
    const known = mine.cards.get(cardId(frame.turn_id, frame.call_id));
    if (known) { dropText(one); return; }
    endText(one);
    one.output.append(card(mine, frame.turn_id, { id: frame.call_id, name: frame.name, arguments: frame.arguments }));
    show();
  },
  "tool.output": (mine, frame) => mine.cards.get(cardId(frame.turn_id, frame.call_id))?.add(frame.text),
  "tool.ended": (mine, frame) => mine.cards.get(cardId(frame.turn_id, frame.call_id))?.end(frame.text, frame.is_error),
  "approval.asked": (mine, frame) => { showAsk(mine, frame); show(); },
  "approval.decided": (mine, frame) => {
    const box = document.querySelector(`[data-ask="${CSS.escape(frame.approval_id)}"]`);
    box?.replaceWith(note(t(frame.state)));
  },
};

function end(mine, frame) {
  const one = mine.turns.get(frame.turn_id);
  if (one) one.ended = true;
  const known = frame.message_id && mine.stored.has(frame.message_id);
  if (known && !one) return;
  if (frame.state === "steered" && one) { endText(one); one.output.append(note(t("steered"))); }
  if (frame.text && one) $("announcer").textContent = frame.text;
  refresh(mine);
  show();
}

// ---- turns that run or wait -------------------------------------------------------------------------------

function turn(mine, id) {
  let one = mine.turns.get(id);
  if (!one) {
    const inputs = el("div", { class: "inputs" });
    const output = el("div", { class: "output" });
    const reply = el("div", { class: "message reply" }, el("div", { class: "who" }), output);
    one = { id, inputs: new Map(), started: false, ended: false, whole: false, text: null, agent: null,
      node: el("div", { class: "turn" }, inputs, reply), list: inputs, reply, output };
    mine.turns.set(id, one);
    $("turns").append(one.node);
  }
  return one;
}

function dropTurn(mine, id) {
  const one = mine.turns.get(id);
  clearTimeout(one?.text?.timer);
  one?.node.remove();
  mine.turns.delete(id);
  for (const [name, value] of mine.cards) if (value.turn === id && !value.stored) mine.cards.delete(name);
}

/** A message that was accepted: shown here until its turn is stored, in place of the one still being sent. */
function accept(mine, turnId, id, text) {
  if (mine.stored.has(id)) return;
  const sent = pending.find((one) => one.key === mine.key && (one.message === id || (!one.message && one.text === text.trim())));
  if (sent) pending = pending.filter((one) => one !== sent);
  const one = turn(mine, turnId);
  if (!one.inputs.has(id)) {
    const node = bubble(text);
    one.inputs.set(id, node);
    one.list.append(node);
  }
}

function addText(mine, one, text) {
  if (!one.started) { one.started = true; show(); }
  if (!one.text) {
    const node = el("div", { class: "text live" });
    one.text = { node, text: one.whole ? "" : "… ", timer: null };
    one.whole = true;
    one.output.append(node);
    one.reply.classList.remove("live");
  }
  const live = one.text;
  live.text += text;
  live.timer ??= setTimeout(() => {
    const stays = nearEnd();
    live.timer = null;
    live.node.replaceChildren(markdown(live.text));
    toEnd(stays);
  }, Math.min(16 + live.text.length / 100, 400));
}

function endText(one) {
  if (!one.text) return;
  clearTimeout(one.text.timer);
  one.text.node.replaceChildren(markdown(one.text.text));
  one.text.node.classList.remove("live");
  one.text = null;
}

function dropText(one) {
  clearTimeout(one.text?.timer);
  one.text?.node.remove();
  one.text = null;
}

function clearOutput(one) {
  dropText(one);
  one.output.replaceChildren();
  for (const [name, value] of chat.cards) if (value.turn === one.id && !value.stored) chat.cards.delete(name);
}

function showAsk(mine, asked) {
  const id = asked.approval_id ?? asked.id;
  if (document.querySelector(`[data-ask="${CSS.escape(id)}"]`)) return;
  const decide = async (decision) => {
    try { await api("POST", `/approvals/${encodeURIComponent(id)}`, { decision }); } catch (problem) { showProblem(problem); }
  };
  const one = turn(mine, asked.turn_id);
  endText(one);
  one.output.append(el("div", { class: "ask", "data-ask": id, role: "group", "aria-label": t("ask") },
    el("strong", {}, `${t("ask")} ${asked.tool}`), el("pre", { tabindex: "0" }, shown(asked.arguments)),
    el("div", { class: "row" }, button(t("allow"), () => decide("approve"), "primary"), button(t("deny"), () => decide("deny")))));
}

// ---- what is stored ---------------------------------------------------------------------------------------

function keep(mine, message) {
  const known = mine.stored.get(message.id);
  if (known && known.message.ticket === message.ticket) return;
  known?.node?.remove();
  const node = known?.node ?? messageNode(mine, message);
  mine.stored.set(message.id, { message, node });
  for (const one of mine.turns.values()) {
    one.inputs.get(message.id)?.remove();
    one.inputs.delete(message.id);
  }
  if (!node) return;
  node.dataset.ticket = message.ticket;
  let after = $("stored").lastElementChild;
  while (after && Number(after.dataset.ticket) > message.ticket) after = after.previousElementSibling;
  if (after) after.after(node); else $("stored").prepend(node);
}

function messageNode(mine, message) {
  if (message.role === "tool") { toolResult(mine, message); return null; }
  const node = message.role === "user" ? inputNode(message) : replyNode(mine, message);
  if (node) node.title = new Date(message.created_at).toLocaleString(language);
  return node;
}

function inputNode(message) {
  if (message.origin === "user") return bubble(message.text);
  return el("div", { class: "note message" }, `${t("from")} ${message.origin}`, el("pre", {}, message.text));
}

function bubble(text) {
  return el("div", { class: "message user" }, el("span", { class: "unseen" }, `${t("you")}: `), el("div", { class: "bubble" }, text));
}

function replyNode(mine, message) {
  const calls = (message.parts ?? []).filter((part) => part.type === "tool_call");
  const failed = message.meta?.error;
  if (message.meta?.silent) return note(t("silent"));
  if (failed === "stopped") return note(t("stopped"));
  const node = el("div", { class: "message reply" }, el("div", { class: "who" }, author(mine, message)));
  if (message.text) {
    const text = el("div", { class: failed ? "text failed" : "text" });
    text.append(markdown(message.text));
    node.append(text);
  }
  for (const call of calls) node.append(card(mine, message.turn_id, call, true));
  return node;
}

const author = (mine, message) =>
  message.origin?.startsWith("agent:") ? message.origin.slice(6) : mine.session?.active_agent_id ?? "";

function toolResult(mine, message) {
  const part = (message.parts ?? []).find((one) => one.type === "tool_result");
  if (part) mine.cards.get(cardId(message.turn_id, part.call_id))?.end(message.text, part.is_error);
}

// ---- tool cards -------------------------------------------------------------------------------------------

const cardId = (turnId, callId) => `${turnId} ${callId}`;
const shown = (value) => typeof value === "string" ? value : JSON.stringify(value ?? {}, null, 2);

function brief(value) {
  const first = value && typeof value === "object" ? Object.values(value).find((one) => typeof one === "string") : value;
  return String(first ?? "").replace(/\s+/g, " ").slice(0, 120);
}

function card(mine, turnId, call, stored = false) {
  const id = cardId(turnId, call.id);
  const state = el("span", { class: "unseen" }, t("running"));
  const result = el("pre", { tabindex: "0" });
  const label = el("div", { class: "label", hidden: true }, t("result"));
  const node = el("details", { class: "card running", on: { toggle: () => node.open ? mine.open.add(id) : mine.open.delete(id) } },
    el("summary", {}, el("span", { class: "dot" }), el("span", { class: "tool" }, call.name), el("span", { class: "brief" }, brief(call.arguments)), state),
    el("div", { class: "label" }, t("arguments")), el("pre", { tabindex: "0" }, shown(call.arguments)), label, result);
  result.hidden = true;
  node.open = mine.open.has(id);
  const reveal = () => { result.hidden = label.hidden = false; };
  mine.cards.set(id, {
    turn: turnId, stored,
    add: (text) => { reveal(); result.append(text); },
    end: (text, isError) => {
      reveal();
      result.textContent = text;
      node.className = `card ${isError ? "error" : "done"}`;
      state.textContent = t(isError ? "error" : "done");
    },
  });
  return node;
}

// ---- the whole view ---------------------------------------------------------------------------------------

const nearEnd = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 90;
function toEnd(wanted) { if (wanted) $("scroll").scrollTop = $("scroll").scrollHeight; }

function show() {
  const running = [...chat.turns.values()].filter((one) => one.started && !one.ended);
  for (const one of chat.turns.values()) showTurn(one, running);
  $("stop").hidden = running.length === 0;
  $("pending").replaceChildren(...pending.filter((one) => one.key === chat.key).map(pendingNode));
  const known = chat.session ?? sessions.find((one) => one.session_key === chat.key);
  $("title").textContent = known?.title || t("untitled");
  $("facts").textContent = [known?.active_agent_id ?? known?.agent_id, known?.model].filter(Boolean).join(" · ");
  document.title = known?.title ? `${known.title} · Polyclaw` : "Polyclaw";
  $("empty").hidden = chat.stored.size + chat.turns.size + $("pending").childElementCount > 0;
}

function showTurn(one, running) {
  const waits = !one.started && !one.ended;
  const behind = waits && running.some((other) => other !== one);
  one.reply.hidden = waits && behind || !waits && one.ended && !one.output.childElementCount;
  one.reply.classList.toggle("live", !one.ended && !one.text && !behind && !one.output.querySelector(".ask"));
  one.reply.firstChild.textContent = one.agent ?? chat.session?.active_agent_id ?? "";
  for (const node of one.inputs.values()) {
    node.classList.toggle("waiting", behind);
    node.querySelector(".state")?.remove();
    if (behind) node.append(el("div", { class: "state" }, t(running[0].text ? "waiting_next" : "waiting")));
  }
}

function pendingNode(one) {
  const node = bubble(one.text);
  const state = el("div", { class: one.state === "sending" ? "state" : "state bad" }, t(one.state));
  if (one.state !== "sending") state.append(button(t("retry"), () => post(one)));
  node.append(state);
  return node;
}

function toggleSide(open) {
  $("side").classList.toggle("open", open);
  $("shade").hidden = !open;
  $("menu").setAttribute("aria-expanded", String(open));
  if (open) $("new-chat").focus();
}

// ---- writing ----------------------------------------------------------------------------------------------

async function submit() {
  const text = $("composer-text").value.trim();
  if (!text) return;
  $("problem").hidden = true;
  $("composer-text").value = "";
  fitComposer();
  try {
    if (!chat.key) await createChat();
    if (text.startsWith("/") && await command(text)) return;
    const one = { key: chat.key, id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, text, state: "sending", message: null };
    pending.push(one);
    show();
    toEnd(true);
    await post(one);
  } catch (problem) {
    showProblem(problem);
    if (!$("composer-text").value) { $("composer-text").value = text; fitComposer(); }
  }
}

async function createChat() {
  const agent = $("pick-agent").value || undefined;
  const made = await api("POST", "/sessions", agent ? { agent } : {});
  openChat(made.session_key);
}

/** The server knows an id it has seen, so sending again is safe. */
async function post(one) {
  one.state = "sending";
  show();
  try {
    const answer = await api("POST", path("/messages", one.key), { text: one.text, idempotency_key: one.id });
    one.message = answer.message_id;
    if (chat.key === one.key) accept(chat, answer.turn_id, answer.message_id, one.text);
    if (answer.duplicate && chat.key === one.key && chat.settled.has(answer.turn_id)) dropTurn(chat, answer.turn_id);
    pending = pending.filter((other) => other !== one);
    loadSessions().catch(() => {});
  } catch (problem) {
    one.state = "not_sent";
    showProblem(problem);
    if (problem.status === 0 && chat.source === null && chat.key === one.key) $("line").hidden = false;
  }
  show();
  toEnd(true);
}

function resend() {
  for (const one of pending) if (one.key === chat.key && one.state === "not_sent") post(one);
}

/** Whether it was a command; a line with a slash that is none is a message. */
async function command(line) {
  const mine = chat;
  try {
    const answer = await api("POST", path("/commands"), { line });
    if (mine !== chat) return true;
    if (/^\/new\b/.test(line)) openChat(mine.key); else refresh(mine);
    $("turns").append(note(`${line}\n${answer.text ?? ""}`, "output"));
    $("announcer").textContent = answer.text ?? "";
    $("empty").hidden = true;
    toEnd(true);
    return true;
  } catch (problem) {
    if (problem.code === "unknown_command") return false;
    throw problem;
  }
}

function fitComposer() {
  const field = $("composer-text");
  $("send").disabled = !field.value.trim();
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

async function loadAgents() {
  const { agents = [] } = await api("GET", "/agents");
  const ids = agents.map((one) => one.agent_id ?? one.id);
  $("pick-agent").replaceChildren(...ids.map((id) => el("option", { value: id }, id)));
  if (ids.includes("main")) $("pick-agent").value = "main";
  $("pick").hidden = ids.length < 2;
}

// ---- start ------------------------------------------------------------------------------------------------

function listen() {
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  $("composer-text").addEventListener("input", fitComposer);
  $("composer-text").addEventListener("keydown", (event) => {
    // A key that ends the choice of a character (isComposing) must not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  $("stop").addEventListener("click", () => api("POST", path("/stop")).catch(showProblem));
  $("new-chat").addEventListener("click", () => { toggleSide(false); openChat(null); });
  $("menu").addEventListener("click", () => toggleSide(!$("side").classList.contains("open")));
  $("shade").addEventListener("click", () => toggleSide(false));
  $("side").addEventListener("keydown", (event) => { if (event.key === "Escape") { toggleSide(false); $("menu").focus(); } });
  $("language").addEventListener("click", () => {
    language = language === "zh" ? "en" : "zh";
    try { localStorage.setItem("polyclaw.language", language); } catch { /* not kept, then */ }
    translate();
    openChat(chat.key, { focus: false });
  });
  $("gate-form").addEventListener("submit", (event) => {
    event.preventDefault();
    location.assign(`./?token=${encodeURIComponent($("gate-token").value.trim())}`);
  });
  addEventListener("hashchange", () => { if (named() !== chat.key) openChat(named()); });
  addEventListener("online", () => { if (!chat.source && chat.key) { clearTimeout(chat.timer); load(chat); } });
}

const named = () => { try { return decodeURIComponent(location.hash.slice(1)) || null; } catch { return null; } };

async function start() {
  translate();
  listen();
  try {
    await loadSessions();
    await loadAgents();
  } catch (problem) {
    if (problem.status === 401) return;
    $("app").hidden = false;
    showProblem(problem);
    setTimeout(() => location.reload(), 5000);
    return;
  }
  $("app").hidden = false;
  openChat(named() ?? sessions[0]?.session_key ?? null);
  setInterval(() => { if (!document.hidden && chat.failures === 0) loadSessions().catch(() => {}); }, 30000);
}

start();
