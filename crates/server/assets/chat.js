// The chat page. It shows stored messages and the text that streams. When a turn ends, its stored messages replace the
// streamed text, so no reply is shown twice.
"use strict";

const TEXTS = {
  en: {
    chats: "Chats", new_chat: "New chat", message: "Message", placeholder: "Write a message…", send: "Send", stop: "Stop",
    shortcuts: "Enter sends · Shift+Enter for a new line · /help for commands", agent: "Agent", you: "You",
    empty_title: "What would you like to do?", empty_text: "The conversation is stored on the machine that runs Polyclaw.",
    language: "中文", logout: "Log out", copy: "Copy", copied: "Copied", retry: "Try again", latest: "Jump to latest", dismiss: "Dismiss", older_chats: "Older chats",
    sending: "Sending…", not_sent: "Not sent.", waiting: "Waiting: will be handled at the next step",
    retrying: "The model did not respond. Retrying…", resumes: "Resuming the earlier task.", steered: "Interrupted by your newer message. This task resumes afterwards.",
    silent: "Nothing to add.", truncated: "The answer was cut off here: it reached the model's length limit.", stopped: "Stopped.", incomplete: "Incomplete.", running: "running", done: "done", error: "failed",
    arguments: "Arguments", result: "Result", approval: "Approval needed", allow: "Allow", deny: "Deny",
    reconnecting: "Connection lost. Reconnecting…", offline: "The server is not responding.",
    offline_hint: "Your message is kept here and will be sent when the server is back.",
    login_title: "This page needs a token", login_label: "Token", login_submit: "Open",
    login_text: "Paste the token of this instance, or open a link of “polyclaw up”. A link works once and expires after ten minutes.",
    login_hint: "Run “polyclaw up” again for a new link. The token is in the file “token” in the instance's home folder.",
    login_wrong: "The token is incorrect.",
    demo: "A small demo model answers here and is often wrong. For real work, set a key such as OPENAI_API_KEY and restart Polyclaw, or start Ollama on its machine. Run “polyclaw doctor” for details.",
  },
  zh: {
    chats: "对话列表", new_chat: "新对话", message: "消息", placeholder: "输入消息…", send: "发送", stop: "停止",
    shortcuts: "Enter 发送 · Shift+Enter 换行 · /help 查看命令", agent: "智能体", you: "你",
    empty_title: "今天做点什么？", empty_text: "对话保存在运行 Polyclaw 的机器上。",
    language: "English", logout: "退出登录", copy: "复制", copied: "已复制", retry: "重试", latest: "跳到最新", dismiss: "关闭", older_chats: "更早的对话",
    sending: "正在发送…", not_sent: "未发送。", waiting: "等待中：将在下一步处理",
    retrying: "模型没有响应，正在重试…", resumes: "继续之前的任务。", steered: "先处理你的新消息，之后继续。",
    silent: "没有要补充的。", truncated: "在此截断：已达到模型的长度上限。", stopped: "已停止。", incomplete: "未说完。", running: "运行中", done: "完成", error: "失败",
    arguments: "参数", result: "结果", approval: "需要许可", allow: "允许", deny: "拒绝",
    reconnecting: "连接已断开，正在重试…", offline: "服务器没有响应。",
    offline_hint: "你写的内容已保留，恢复后会发送。",
    login_title: "此页面需要令牌", login_label: "令牌", login_submit: "打开",
    login_text: "它只能用本实例的令牌打开。“polyclaw up” 的链接十分钟内有效，只能用一次。",
    login_hint: "请再次运行 “polyclaw up” 获取新链接，或粘贴令牌：它在实例主目录的 “token” 文件中。",
    login_wrong: "这不是本实例的令牌。",
    demo: "这里由一个小型演示模型回答，经常出错。要正式使用，请设置 OPENAI_API_KEY 等密钥并重启 Polyclaw，或在其机器上启动 Ollama；详情请运行 “polyclaw doctor”。",
  },
};

const $ = (id) => document.getElementById(id);
let language = localStorage.getItem("polyclaw.language") ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
const t = (name) => TEXTS[language][name];

/** State of the open chat. Opening another chat creates a new state, and late responses for the old one are dropped. */
const newChatState = (key) => ({
  key, messages: new Map(), cards: new Map(), turns: new Map(), endedTurnIds: new Set(), openCards: new Set(),
  cursor: 0, last: null, failures: 0,
});
let chat = newChatState(null);
let [sessions, agents, outgoing, models] = [[], [], [], { default_model: null, models: [] }];
/** Number of listed chats, and whether there are older ones. */
let [sessionLimit, hasMore] = [100, false];

// Elements. No text is parsed as HTML.

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

function applyLanguage() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const id of ["sidebar", "menu"]) $(id).ariaLabel = t("chats");
  $("composer-text").placeholder = t("placeholder");
}

// Markdown.

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.+)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?/;
const MARK = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]+?)\*\*|\[([^[\]\n]+)\]\(([^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)|https?:\/\/[^\s<>"'`，。；：！？、）】」]+/g;
const startsBlock = (line) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((start) => start.test(line));

function markdown(text, depth = 0) {
  const out = new DocumentFragment();
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) {
    const end = blockEnd(lines, at);
    if (lines[at].trim()) out.append(parseBlock(lines.slice(at, end), depth));
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
  if (!ITEM.test(lines[at])) return until((n) => !lines[n].trim() || startsBlock(lines[n]));
  const inList = (line = "") => ITEM.test(line) || /^\s{2,}\S/.test(line);
  return until((n) => !inList(lines[n]) && !(lines[n].trim() ? lines[n - 1].trim() && !startsBlock(lines[n]) : inList(lines[n + 1])));
}

function parseBlock(lines, depth) {
  const [first] = lines;
  const fence = FENCE.exec(first);
  if (fence) {
    const closed = lines.length > 1 && lines.at(-1).trim().startsWith(fence[1]);
    return codeBlock(fence[2], lines.slice(1, closed ? -1 : undefined).join("\n"));
  }
  const heading = HEADING.exec(first);
  if (heading) return el(heading[1].length < 3 ? "h3" : "h4", {}, parseInline(heading[2]));
  if (RULE.test(first)) return el("hr");
  if (depth < 6 && QUOTE.test(first)) {
    return el("blockquote", {}, markdown(lines.map((line) => line.replace(QUOTE, "")).join("\n"), depth + 1));
  }
  return depth < 6 && ITEM.test(first) ? parseList(lines, depth) : el("p", {}, parseInline(lines.join("\n")));
}

function parseList(lines, depth) {
  const [, indent, marker] = ITEM.exec(lines[0]);
  const inner = new RegExp(`^\\s{0,${indent.length + marker.length + 1}}`);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length + 1) items.push([item[3]]);
    else items.at(-1).push(line.replace(inner, ""));
  }
  const nodes = items.map((item) => el("li", {}, item.length > 1 ? markdown(item.join("\n"), depth + 1) : parseInline(item[0])));
  return /\d/.test(marker) ? el("ol", { start: parseInt(marker, 10) }, ...nodes) : el("ul", {}, ...nodes);
}

function codeBlock(name, code) {
  const copy = button(t("copy"), () => navigator.clipboard.writeText(code).then(() => { copy.textContent = t("copied"); }, () => {}));
  return el("div", { class: "code" }, el("div", { class: "bar" }, el("span", {}, name), copy),
    el("pre", { tabindex: 0 }, el("code", {}, code)));
}

function parseInline(text) {
  const out = new DocumentFragment();
  const addText = (words) => words.split("\n").forEach((line, n) => out.append(...(n ? [el("br")] : []), line));
  let from = 0;
  // Very long paragraphs are not searched for marks, because that could block the page.
  for (const found of text.length > 20000 ? [] : text.matchAll(MARK)) {
    addText(text.slice(from, found.index));
    out.append(...parseMark(found));
    from = found.index + found[0].length;
  }
  addText(text.slice(from));
  return out;
}

function parseMark([whole, , code, bold, label, address]) {
  if (code !== undefined) return [el("code", {}, code)];
  if (bold !== undefined) return [el("strong", {}, parseInline(bold))];
  if (label !== undefined) return [linkNode(address, label, whole)];
  const end = /[.,;:!?)\]*]*$/.exec(whole).index;
  return [linkNode(whole.slice(0, end), whole.slice(0, end), whole.slice(0, end)), whole.slice(end)];
}

/** Only http and https addresses become links; anything else stays text. */
function linkNode(address, label, otherwise) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return otherwise;
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, label);
}

// API.

// A login has two parts: a cookie that scripts cannot read, and this key, which only pages of this exact origin can read.
const LOGIN_KEY = "polyclaw.login";
const loginHeaders = () => (localStorage.getItem(LOGIN_KEY) ? { "polyclaw-login": localStorage.getItem(LOGIN_KEY) } : {});

/** Exchanges a one-time code for a login. */
async function redeemCode(code) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch("login", { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (answer?.ok) localStorage.setItem(LOGIN_KEY, (await answer.json()).key);
  return Boolean(answer?.ok);
}

async function logout() {
  await api("DELETE", "/logins/current").catch(() => {});
  localStorage.removeItem(LOGIN_KEY);
  location.reload();
}

async function api(method, path, body) {
  const apiError = (status, fields) => Object.assign(new Error(), { status, ...fields });
  const headers = { ...loginHeaders(), ...(body && { "content-type": "application/json" }) };
  const options = { method, headers, body: body && JSON.stringify(body) };
  const response = await fetch(`api/v1${path}`, options).catch(() => {
    throw apiError(0, { message: t("offline"), hint: t("offline_hint") });
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) showLogin();
  throw apiError(response.status, answer.error ?? { message: `${response.status} ${response.statusText}` });
}

const sessionPath = (thisChat, rest = "") => `/sessions/${encodeURIComponent(thisChat.key)}${rest}`;

function showError({ status, message, hint }) {
  if (status === 401) return;
  const close = button("×", () => { $("error").hidden = true; $("composer-text").focus(); });
  close.ariaLabel = t("dismiss");
  const wasNearEnd = isNearEnd();
  $("error").replaceChildren(el("div", {}, message, el("div", { class: "hint" }, hint ?? "")), close);
  $("error").hidden = false;
  scrollToEnd(wasNearEnd);
}

/** Exchanges the token for a one-time code and the code for a login. The token never appears in an address. */
async function logIn(token) {
  const answer = await fetch("api/v1/logins", { method: "POST", headers: { authorization: `Bearer ${token}` } }).catch(() => null);
  if (answer?.ok && await redeemCode((await answer.json()).code)) location.reload();
  else $("login-error").hidden = false;
}

function showLogin() {
  disconnect(chat);
  $("app").hidden = true;
  $("login").hidden = false;
  $("login-token").focus();
}

// The list of chats.

async function loadSessions() {
  const found = [];
  let cursor = "";
  do {
    const page = await api("GET", `/sessions?limit=100${cursor}`);
    found.push(...page.sessions);
    cursor = page.next_cursor && `&cursor=${page.next_cursor}`;
  } while (cursor && found.length < sessionLimit);
  hasMore = Boolean(cursor);
  sessions = found.filter((one) => !one.owner_session_key);
  renderSessions();
}

function renderSessions() {
  const focused = document.activeElement?.dataset.key;
  $("sessions").replaceChildren(...sessions.map(sessionItem));
  $("older-chats").hidden = !hasMore;
  if (focused) $("sessions").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function sessionItem(one) {
  const details = [one.channel === "web" ? null : one.channel, one.active_agent_id, one.running_turn_id ? t("running") : when(one.updated_at)];
  return el("li", {}, el("button", {
    type: "button", class: "plain", "data-key": one.session_key, "aria-current": one.session_key === chat.key ? "true" : null,
    click: () => { toggleSidebar(false); openChat(one.session_key); },
  }, el("span", { class: "name" }, one.title || t("new_chat")), el("span", { class: "sub" }, details.filter(Boolean).join(" · "))));
}

// Opening a chat.

/** The chat in the address, which need not be listed. */
function keyFromAddress() {
  try { return decodeURIComponent(/^#\/(.+)$/.exec(location.hash)?.[1] ?? "") || null; } catch { return null; }
}

function openChat(key) {
  disconnect(chat);
  chat = newChatState(key);
  history.replaceState(null, "", key ? `#/${encodeURIComponent(key)}` : location.pathname);
  $("stored").replaceChildren();
  $("turns").replaceChildren();
  $("error").hidden = $("connection").hidden = true;
  render();
  renderSessions();
  if (key) load(chat);
}

/** Also used after a lost connection, and after missed frames while the stream is still open. */
async function load(thisChat) {
  const known = new Set(thisChat.turns.keys());
  try {
    const messages = await transcript(thisChat);
    const [session, backlog, { approvals }] =
      await Promise.all([sessionPath(thisChat), sessionPath(thisChat, "/backlog"), "/approvals"].map((path) => api("GET", path)));
    if (thisChat !== chat) return;
    const running = thisChat.endedTurnIds.has(session.running_turn_id) ? null : session.running_turn_id;
    const storedTurnIds = new Set(messages.map((one) => one.turn_id));
    const wasNearEnd = !thisChat.session || isNearEnd();
    const isStillStreaming = thisChat.last !== null && thisChat.turns.get(running)?.started;
    for (const id of [...thisChat.turns.keys()]) if (id === running ? !isStillStreaming : storedTurnIds.has(id) || known.has(id)) removeTurn(thisChat, id);
    addStoredMessages(thisChat, messages);
    thisChat.session = session;
    thisChat.endedTurnIds.delete(running);
    if (running) getTurn(thisChat, running).started = true;
    for (const one of backlog.waiting) addWaitingMessage(thisChat, one.turn_id, one.id, one.text);
    for (const one of approvals) if (one.session_key === thisChat.key) addApproval(thisChat, one);
    render();
    scrollToEnd(wasNearEnd);
    if (!thisChat.source) connect(thisChat);
  } catch (error) {
    if (error.status === undefined) throw error;
    if (thisChat !== chat || error.status === 401) return;
    if (error.status === 404) { openChat(null); showError(error); } else reconnectLater(thisChat);
  }
}

async function transcript(thisChat) {
  const found = [];
  for (let after = thisChat.cursor; after !== null;) {
    const page = await api("GET", sessionPath(thisChat, `/transcript?after=${after}&limit=500`));
    found.push(...page.messages);
    after = page.next_after ?? null;
  }
  return found;
}

/** Replaces the streamed text of ended turns with their stored messages. */
async function refresh(thisChat) {
  thisChat.isRefreshQueued = true;
  if (thisChat.isRefreshing) return;
  thisChat.isRefreshing = true;
  try {
    while (thisChat.isRefreshQueued) {
      thisChat.isRefreshQueued = false;
      const ended = [...thisChat.turns.values()].filter((one) => one.ended);
      const messages = await transcript(thisChat);
      const session = await api("GET", sessionPath(thisChat));
      if (thisChat !== chat) return;
      const wasNearEnd = isNearEnd();
      for (const { id } of ended) removeTurn(thisChat, id);
      const running = session.running_turn_id;
      if (running && !thisChat.endedTurnIds.has(running)) getTurn(thisChat, running);
      thisChat.session = session;
      addStoredMessages(thisChat, messages);
      render();
      scrollToEnd(wasNearEnd);
    }
    loadSessions().catch(() => {});
  } catch (error) {
    // The stream fails too, and everything is loaded when it reconnects.
    if (error.status === undefined) throw error;
  } finally { thisChat.isRefreshing = false; }
}

function connect(thisChat) {
  disconnect(thisChat);
  const source = thisChat.source = new EventReader(`api/v1${sessionPath(thisChat, `/stream?after=${encodeURIComponent(thisChat.last ?? 0)}`)}`);
  source.onmessage = (event) => {
    if (thisChat !== chat || thisChat.source !== source) return;
    if (event.lastEventId) thisChat.last = event.lastEventId;
    handleFrame(thisChat, JSON.parse(event.data));
  };
  source.onopen = () => { thisChat.failures = 0; $("connection").hidden = true; resendOutgoing(); };
  source.onerror = () => { if (thisChat === chat && thisChat.source === source) reconnectLater(thisChat); };
}

/** Reads server-sent events. An `EventSource` could not send the login key. */
class EventReader {
  #abort = new AbortController();

  constructor(address) {
    this.#read(address).catch(() => {}).then(() => { if (!this.#abort.signal.aborted) this.onerror(); });
  }

  close() { this.#abort.abort(); }

  async #read(address) {
    const response = await fetch(address, { headers: loginHeaders(), signal: this.#abort.signal });
    if (!response.ok) return;
    this.onopen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (text + part.value).split("\n\n");
      text = events.pop();
      for (const event of events) this.#dispatch(event);
    }
  }

  #dispatch(event) {
    const field = (name) => event.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
    if (field("data")) this.onmessage({ data: field("data"), lastEventId: field("id") });
  }
}

function disconnect(thisChat) {
  thisChat.source?.close();
  thisChat.source = null;
  clearTimeout(thisChat.timer);
}

function reconnectLater(thisChat) {
  disconnect(thisChat);
  const delay = Math.min(500 * 2 ** thisChat.failures, 30000);
  thisChat.failures += 1;
  $("connection").hidden = false;
  thisChat.timer = setTimeout(() => load(thisChat), delay * (0.8 + 0.4 * Math.random()));
}

function handleFrame(thisChat, frame) {
  const { event } = frame;
  if (event === "replay.gap") { thisChat.last = null; load(thisChat); return; }
  if (event === "session.changed") { refresh(thisChat); return; }
  if (event !== "turn.ended" && thisChat.endedTurnIds.has(frame.turn_id)) return;
  const wasNearEnd = isNearEnd();
  FRAME_HANDLERS[event]?.(thisChat, frame, frame.turn_id && event !== "turn.ended" ? getTurn(thisChat, frame.turn_id) : null);
  render();
  scrollToEnd(wasNearEnd);
}

const FRAME_HANDLERS = {
  "message.accepted": (thisChat, frame) => addWaitingMessage(thisChat, frame.turn_id, frame.message_id, frame.text),
  "turn.started": (thisChat, frame, one) => {
    Object.assign(one, { started: true, isFromStart: true, agent: frame.agent_id });
    removeText(one);
    removeCards(thisChat, one.id);
    one.output.replaceChildren(...(frame.resumes.length ? [note(t("resumes"))] : []));
  },
  "turn.delta": (thisChat, frame, one) => appendText(one, frame.text),
  "turn.restarted": (thisChat, frame, one) => removeText(one),
  "delegate.started": (thisChat, frame, one) => { finishText(one); removeText(getDelegateOutput(one, frame)); },
  "delegate.delta": (thisChat, frame, one) => appendText(getDelegateOutput(one, frame), frame.text),
  "delegate.ended": (thisChat, frame, one) => {
    const output = getDelegateOutput(one, frame);
    removeText(output);
    output.output.append(el("div", { class: "text" }, markdown(frame.text)));
  },
  "turn.retrying": (thisChat, frame, one) => {
    finishText(one);
    if (frame.attempt === 1) one.output.append(note(t("retrying")));
    $("announcer").textContent = t("retrying");
  },
  "turn.notice": (thisChat, frame, one) => { finishText(one); one.output.append(note(frame.text)); $("announcer").textContent = frame.text; },
  "tool.started": (thisChat, frame, one) => {
    // A stored call already has a card, and the text before it is stored too.
    if (thisChat.cards.has(`${one.id} ${frame.call_id}`)) { removeText(one); return; }
    finishText(one);
    one.output.append(toolCard(thisChat, one.id, { ...frame, id: frame.call_id }, false));
  },
  "tool.output": (thisChat, frame) => thisChat.cards.get(`${frame.turn_id} ${frame.call_id}`)?.add(frame.text),
  "tool.ended": (thisChat, frame) => thisChat.cards.get(`${frame.turn_id} ${frame.call_id}`)?.end(frame.text, frame.is_error),
  "approval.requested": (thisChat, frame) => addApproval(thisChat, frame),
  "approval.decided": (thisChat, frame) => approvalNode(frame.approval_id)?.remove(),
  "turn.ended": (thisChat, frame) => {
    const one = thisChat.turns.get(frame.turn_id);
    thisChat.endedTurnIds.add(frame.turn_id);
    if (!one && thisChat.messages.has(frame.message_id)) return;
    if (one) one.ended = true;
    if (one && frame.text) $("announcer").textContent = frame.text;
    if (one && frame.state === "steered") { finishText(one); one.output.append(note(t("steered"))); }
    refresh(thisChat);
  },
};

// Running and queued turns.

function getTurn(thisChat, id) {
  if (!thisChat.turns.has(id)) {
    const [inputs, output] = [el("div"), el("div")];
    const reply = el("div", { class: "message reply" }, el("div", { class: "author" }), output);
    const node = el("div", {}, inputs, reply);
    thisChat.turns.set(id, { id, node, inputs, reply, output, waiting: new Map(), started: false, ended: false, isFromStart: false, text: null });
    $("turns").append(node);
  }
  return thisChat.turns.get(id);
}

function removeTurn(thisChat, id) {
  const one = thisChat.turns.get(id);
  if (!one) return;
  removeText(one);
  removeCards(thisChat, id);
  one.node.remove();
  thisChat.turns.delete(id);
}

function removeCards(thisChat, id) {
  for (const [name, one] of thisChat.cards) if (one.turn === id && !one.stored) thisChat.cards.delete(name);
}

/** Shows an accepted message until its turn is stored. It replaces the one that is being sent. */
function addWaitingMessage(thisChat, turnId, id, text) {
  if (thisChat.messages.has(id)) return;
  const sent = outgoing.find((one) => one.key === thisChat.key && one.text === text.trim());
  outgoing = outgoing.filter((one) => one !== sent);
  const one = getTurn(thisChat, turnId);
  if (one.waiting.has(id)) return;
  one.waiting.set(id, userMessageNode(text));
  one.inputs.append(one.waiting.get(id));
}

function appendText(one, text) {
  one.started = true;
  if (!one.text) {
    one.text = { node: el("div", { class: "text live" }), words: one.isFromStart ? "" : "… ", timer: null };
    one.isFromStart = true;
    one.output.append(one.text.node);
  }
  const live = one.text;
  live.words += text;
  live.timer ??= setTimeout(() => {
    const wasNearEnd = isNearEnd();
    live.timer = null;
    live.node.replaceChildren(markdown(live.words));
    scrollToEnd(wasNearEnd);
  }, Math.min(16 + live.words.length / 100, 400));
}

/** The element for the streamed text of another agent, in the turn that waits for it. */
function getDelegateOutput(one, { run_id, agent_id, name }) {
  one.delegateOutputs ??= new Map();
  if (!one.delegateOutputs.has(run_id)) {
    const output = el("div", { class: "message delegate" }, el("div", { class: "author" }, name || displayName(agent_id)));
    one.delegateOutputs.set(run_id, { output, text: null, isFromStart: true });
    one.output.append(output);
  }
  return one.delegateOutputs.get(run_id);
}

function finishText(one) {
  clearTimeout(one.text?.timer);
  one.text?.node.replaceChildren(markdown(one.text.words));
  one.text?.node.classList.remove("live");
  one.text = null;
}

function removeText(one) {
  one.text?.node.remove();
  finishText(one);
}

const approvalNode = (id) => document.querySelector(`[data-approval="${CSS.escape(id)}"]`);

function addApproval(thisChat, approval) {
  const id = approval.approval_id ?? approval.id;
  if (approvalNode(id)) return;
  const decide = (decision) => () => api("POST", `/approvals/${encodeURIComponent(id)}`, { decision }).catch(showError);
  const one = getTurn(thisChat, approval.turn_id);
  finishText(one);
  one.output.append(el("div", { class: "approval", "data-approval": id, role: "group", "aria-label": t("approval") },
    el("strong", {}, `${t("approval")}: ${approval.tool}`), el("pre", { tabindex: 0 }, approval.question && !approval.question.startsWith(`${approval.tool} `) ? approval.question : displayValue(approval.arguments)),
    button(t("allow"), decide("approve"), "primary"), " ", button(t("deny"), decide("deny"))));
}

// Stored messages.

function addStoredMessages(thisChat, messages) {
  for (const one of messages) {
    const streams = thisChat.turns.has(one.turn_id);
    // Steps of a streaming turn are already on the page.
    if (!streams || one.origin === "user") addStoredMessage(thisChat, one);
    if (!streams) thisChat.endedTurnIds.add(one.turn_id);
  }
  if (thisChat.turns.size === 0) thisChat.cursor = Math.max(thisChat.cursor, ...messages.map((one) => one.position));
}

function addStoredMessage(thisChat, message) {
  if (thisChat.messages.has(message.id)) return;
  thisChat.messages.set(message.id, message);
  for (const one of thisChat.turns.values()) {
    one.waiting.get(message.id)?.remove();
    one.waiting.delete(message.id);
  }
  const node = messageNode(thisChat, message);
  if (!node) return;
  node.title = when(message.created_at);
  $("stored").append(node);
}

function messageNode(thisChat, message) {
  const { role, origin, text, parts, meta, turn_id } = message;
  if (role === "tool") {
    for (const part of parts) thisChat.cards.get(`${turn_id} ${part.call_id}`)?.end(text, part.is_error);
    return parts.some((part) => part.name === "delegate_to_agent") ? delegateReplyNode(text) : null;
  }
  if (origin === "user") return userMessageNode([text, ...parts.filter((one) => one.type === "attachment").map((one) => `📎 ${one.name}`)].join("\n").trim());
  if (role === "user") return text.startsWith("[Backlog]") ? note(t("resumes")) : note(`${origin}\n${text}`, "output");
  if (meta?.silent) return note(t("silent"));
  if (meta?.error === "stopped" && !meta.said) return note(t("stopped"));
  const who = origin.startsWith("agent:") ? origin.slice(6) : thisChat.session?.active_agent_id ?? "";
  const node = el("div", { class: "message reply" }, el("div", { class: "author" }, displayName(who)));
  if (meta?.said) node.append(el("div", { class: "text" }, markdown(meta.said)));
  if (text) node.append(el("div", { class: meta?.error ? "text failed" : "text" }, markdown(text)));
  if (meta?.finish_reason === "length") node.append(note(t("truncated")));
  for (const part of parts) if (part.type === "tool_call") node.append(toolCard(thisChat, turn_id, part, true));
  return node;
}

/** The streamed reply of another agent, from the result of the call. */
function delegateReplyNode(result) {
  let reply = null;
  try { reply = JSON.parse(result); } catch { return null; }
  const text = reply?.response ?? reply?.partial_response;
  if (!reply?.streamed || !text) return null;
  const node = el("div", { class: "message delegate" }, el("div", { class: "author" }, displayName(reply.agent_id)), el("div", { class: "text" }, markdown(text)));
  if (!reply.response) node.append(note(t("incomplete")));
  return node;
}

// Emoji, if there is one, and name of an agent.
const displayName = (id) => {
  const { name, emoji } = agents.find((one) => one.agent_id === id)?.appearance ?? {};
  return [emoji, name ?? id].filter(Boolean).join(" ");
};

const userMessageNode = (text) =>
  el("div", { class: "message user" }, el("span", { class: "visually-hidden" }, t("you")), el("div", { class: "bubble" }, text));

// Tool cards.

const displayValue = (value) => typeof value === "string" ? value : JSON.stringify(value ?? {}, null, 2);
const summaryOf = (value) => String(Object.values(value ?? {}).find((one) => one?.trim) ?? "").slice(0, 120);

function toolCard(thisChat, turnId, call, isStored) {
  const id = `${turnId} ${call.id}`;
  const state = el("span", { class: "visually-hidden" }, t("running"));
  const result = el("pre", { tabindex: 0 });
  const results = el("div", { hidden: "" }, el("div", { class: "label" }, t("result")), result);
  const node = el("details", { class: "card running" },
    el("summary", {}, el("span", { class: "dot" }), el("span", { class: "tool" }, call.name), el("span", { class: "summary" }, summaryOf(call.arguments)), state),
    el("div", { class: "label" }, t("arguments")), el("pre", { tabindex: 0 }, displayValue(call.arguments)), results);
  node.open = thisChat.openCards.has(id);
  node.addEventListener("toggle", () => thisChat.openCards[node.open ? "add" : "delete"](id));
  thisChat.cards.set(id, {
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

// Rendering.

const isNearEnd = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 90;
const updateLatestButton = () => { $("latest").hidden = isNearEnd(); };
function scrollToEnd(isWanted) {
  if (isWanted) $("scroll").scrollTop = $("scroll").scrollHeight;
  updateLatestButton();
}

function render() {
  const running = [...chat.turns.values()].filter((one) => one.started && !one.ended);
  for (const one of chat.turns.values()) renderTurn(one, running[0]);
  $("stop").hidden = running.length === 0;
  $("pending").replaceChildren(...outgoing.filter((one) => one.key === chat.key).map(outgoingNode));
  const known = chat.session ?? sessions.find((one) => one.session_key === chat.key);
  $("title").textContent = known?.title || t("new_chat");
  const agent = agents.find((one) => one.agent_id === (known?.active_agent_id ?? $("agent-select").value));
  const model = known?.model ?? agent?.defaults.model ?? models.default_model;
  $("details").textContent = [displayName(agent?.agent_id), model].filter(Boolean).join(" · ");
  $("demo").hidden = !models.models.some((one) => one.model === model && one.demo);
  document.title = known?.title ? `${known.title} · Polyclaw` : "Polyclaw";
  $("empty").hidden = chat.key && !chat.session || ["stored", "turns", "pending"].some((id) => $(id).childElementCount);
}

function renderTurn(one, running) {
  const isWaiting = !one.started && !one.ended && running !== undefined;
  one.reply.hidden = isWaiting || one.ended && !one.output.childElementCount;
  one.reply.classList.toggle("live", !one.ended && !one.text && !one.output.querySelector(".approval"));
  one.reply.firstChild.textContent = displayName(one.agent ?? chat.session?.active_agent_id ?? "");
  for (const node of one.waiting.values()) {
    node.classList.toggle("waiting", isWaiting);
    node.querySelector(".state")?.remove();
    if (isWaiting) node.append(el("div", { class: "state" }, t("waiting")));
  }
}

function outgoingNode(one) {
  const node = userMessageNode(one.text);
  node.append(el("div", { class: `state ${one.state}` }, t(one.state), ...(one.state === "sending" ? [] : [button(t("retry"), () => sendMessage(one))])));
  return node;
}

function toggleSidebar(open) {
  $("sidebar").classList.toggle("open", open);
  $("backdrop").hidden = !open;
  $("menu").setAttribute("aria-expanded", String(open));
  (open ? $("new-chat") : $("composer-text")).focus();
}

// Composer.

async function submit() {
  const text = $("composer-text").value.trim();
  if (!text) return;
  $("error").hidden = true;
  setComposerText("");
  try {
    if (!chat.key) await createChat(text);
    if (text.startsWith("/") && await tryCommand(text)) return;
    const one = { key: chat.key, id: `${Date.now()}-${Math.random()}`, text, state: "sending" };
    outgoing.push(one);
    await sendMessage(one);
  } catch (error) {
    showError(error);
    if (!$("composer-text").value) setComposerText(text);
  }
}

async function createChat(text) {
  const title = text.startsWith("/") ? undefined : text.split("\n")[0].slice(0, 60);
  const created = await api("POST", "/sessions", { title, agent: $("agent-select").value || undefined });
  openChat(created.session_key);
}

/** The server deduplicates by id, so it is safe to send a message again. */
async function sendMessage(one) {
  one.state = "sending";
  render();
  scrollToEnd(true);
  try {
    const answer = await api("POST", sessionPath(one, "/messages"), { text: one.text, idempotency_key: one.id });
    outgoing = outgoing.filter((other) => other !== one);
    // After `/focus`, another session received the message. Open it, because the answer appears there.
    if (chat.key === one.key && answer.session_key !== one.key) openChat(answer.session_key);
    else if (chat.key === one.key) addWaitingMessage(chat, answer.turn_id, answer.message_id, one.text);
    loadSessions().catch(() => {});
  } catch (error) {
    showError(error);
    if (isPermanentError(error)) returnToComposer(one); else one.state = "not_sent";
  }
  const wasNearEnd = isNearEnd();
  render();
  scrollToEnd(wasNearEnd);
}

/** The server rejected the request, so a retry would fail too. Other errors are retried automatically. */
const isPermanentError = ({ status }) => status >= 400 && status < 500 && ![401, 408, 429].includes(status);

function returnToComposer(one) {
  outgoing = outgoing.filter((other) => other !== one);
  if (chat.key === one.key) setComposerText([one.text, $("composer-text").value].filter(Boolean).join("\n"));
}

function resendOutgoing() {
  for (const one of outgoing) if (one.key === chat.key && one.state === "not_sent") { $("error").hidden = true; sendMessage(one); }
}

/** Returns whether the text was a command. An unknown command is sent as a message. */
async function tryCommand(text) {
  const { key } = chat;
  const answer = await api("POST", sessionPath(chat, "/commands"), { text }).catch((error) => {
    if (error.code !== "unknown_command") throw error;
  });
  if (!answer) return false;
  if (chat.key !== key) return true;
  if (/^\/new\b/.test(text)) openChat(key); else refresh(chat);
  $("stored").append(note(`${text}\n${answer.text}`, "output"));
  $("announcer").textContent = answer.text;
  render();
  scrollToEnd(true);
  return true;
}

function setComposerText(text) {
  const field = $("composer-text");
  if (field.value !== text) field.value = text;
  $("send").disabled = !field.value.trim();
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

async function loadAgents() {
  ({ agents } = await api("GET", "/agents"));
  api("GET", "/models").then((found) => { models = found; render(); }, () => {});
  const option = (one) => el("option", { value: one.agent_id, selected: one.default ? "" : null }, displayName(one.agent_id));
  $("agent-select").replaceChildren(...agents.map(option));
  $("agent-picker").hidden = agents.length < 2;
}

// Start.

function addListeners() {
  const on = (id, event, run) => $(id).addEventListener(event, run);
  on("composer", "submit", (event) => { event.preventDefault(); submit(); });
  on("composer-text", "input", (event) => setComposerText(event.target.value));
  on("composer-text", "keydown", (event) => {
    // Enter that confirms an input method's character must not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  on("scroll", "scroll", updateLatestButton);
  on("latest", "click", () => { $("scroll").focus({ preventScroll: true }); scrollToEnd(true); });
  on("agent-select", "change", render);
  on("stop", "click", () => api("POST", sessionPath(chat, "/stop")).catch(showError));
  on("new-chat", "click", () => { toggleSidebar(false); openChat(null); });
  on("older-chats", "click", () => { sessionLimit += 100; loadSessions().catch(showError); });
  addEventListener("hashchange", () => { const key = keyFromAddress(); if (key && key !== chat.key) openChat(key); });
  on("menu", "click", () => toggleSidebar(!$("sidebar").classList.contains("open")));
  on("backdrop", "click", () => toggleSidebar(false));
  on("sidebar", "keydown", (event) => { if (event.key === "Escape") toggleSidebar(false); });
  on("language", "click", () => {
    language = language === "zh" ? "en" : "zh";
    localStorage.setItem("polyclaw.language", language);
    applyLanguage();
    openChat(chat.key);
  });
  on("logout", "click", logout);
  on("login-form", "submit", (event) => {
    event.preventDefault();
    logIn($("login-token").value.trim());
  });
}

async function start() {
  applyLanguage();
  addListeners();
  const code = new URLSearchParams(location.search).get("code");
  if (code !== null) {
    // If the code was already used, an earlier login may still be valid.
    await redeemCode(code);
    history.replaceState(null, "", location.pathname + location.hash);
  }
  try {
    await loadSessions();
    await loadAgents();
  } catch (error) {
    $("app").hidden = error.status === 401;
    showError(error);
    if (error.status !== 401) setTimeout(() => location.reload(), 5000);
    return;
  }
  $("app").hidden = false;
  openChat(keyFromAddress() ?? sessions[0]?.session_key ?? null);
  $("composer-text").focus();
  setInterval(() => { if (!document.hidden && chat.failures === 0) loadSessions().catch(() => {}); }, 30000);
}

start();
