/** Parses markdown from models into a tree of known nodes. It contains no HTML: everything that is not recognized stays
    text. Every step is linear in the length of the text, so no input can block the page. */

export type Inline =
  | { type: "text"; text: string }
  | { type: "break" }
  | { type: "code"; text: string }
  | { type: "strong"; inside: Inline[] }
  | { type: "em"; inside: Inline[] }
  | { type: "strike"; inside: Inline[] }
  | { type: "link"; href: string; inside: Inline[] };

export type Block =
  | { type: "paragraph"; inside: Inline[] }
  | { type: "heading"; level: 3 | 4; inside: Inline[] }
  | { type: "code"; name: string; text: string }
  | { type: "quote"; inside: Block[] }
  | { type: "list"; start: number | null; items: Block[][] }
  | { type: "table"; head: Inline[][]; rows: Inline[][][] }
  | { type: "rule" };

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.+?)[ \t#]*$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE_RULE = /^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?$/;
const MAX_DEPTH = 6;
/** Longer paragraphs are not searched for inline marks. */
const MAX_INLINE_LENGTH = 20_000;

const startsBlock = (line: string) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((mark) => mark.test(line));

export function parseMarkdown(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) { at += 1; continue; }
    const [block, next] = blockAt(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines: string[], at: number, depth: number): [Block, number] {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [{ type: "heading", level: heading[1].length < 3 ? 3 : 4, inside: parseInline(heading[2]) }, at + 1];
  if (RULE.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) {
    const end = findEnd(lines, at, (one) => !QUOTE.test(one));
    return [{ type: "quote", inside: parseMarkdown(lines.slice(at, end).map((one) => one.replace(QUOTE, "")).join("\n"), depth + 1) }, end];
  }
  if (depth < MAX_DEPTH && ITEM.test(line)) return parseList(lines, at, depth);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) return parseTable(lines, at);
  const end = findEnd(lines, at, (one) => !one.trim() || startsBlock(one));
  return [{ type: "paragraph", inside: parseInline(lines.slice(at, end).join("\n")) }, end];
}

function findEnd(lines: string[], at: number, stop: (line: string, n: number) => boolean): number {
  let end = at + 1;
  while (end < lines.length && !stop(lines[end], end)) end += 1;
  return end;
}

/** An unclosed fence is a code block too, because its end may still be streaming. */
function parseFence(lines: string[], at: number, [, mark, name]: RegExpExecArray): [Block, number] {
  const end = findEnd(lines, at, (one) => one.trim().startsWith(mark) && !one.trim().slice(mark.length).trim());
  return [{ type: "code", name, text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function parseList(lines: string[], at: number, depth: number): [Block, number] {
  const [, indent, marker] = ITEM.exec(lines[at]) ?? ["", "", "-"];
  const belongs = (line = "") => ITEM.test(line) || /^ {2,}\S/.test(line);
  const end = findEnd(lines, at, (line, n) => (line.trim() ? !belongs(line) && (!lines[n - 1].trim() || startsBlock(line)) : !belongs(lines[n + 1])));
  const inner = new RegExp(`^ {0,${indent.length + marker.length + 1}}`);
  const items: string[][] = [];
  for (const line of lines.slice(at, end)) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length + 1) items.push([item[3]]);
    else items.at(-1)?.push(line.replace(inner, ""));
  }
  const start = /\d/.test(marker) ? parseInt(marker, 10) : null;
  return [{ type: "list", start, items: items.map((item) => parseMarkdown(item.join("\n"), depth + 1)) }, end];
}

const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => parseInline(cell.trim()));

function parseTable(lines: string[], at: number): [Block, number] {
  const end = findEnd(lines, at + 1, (line) => !line.includes("|"));
  return [{ type: "table", head: cells(lines[at]), rows: lines.slice(at + 2, end).map(cells) }, end];
}

const MARK = /(`+)([^`]+)\1(?!`)|\*\*(?=\S)([^*\n]+)\*\*|~~(?=\S)([^~\n]+)~~|(?<![\w*])\*(?=[^\s*])([^*\n]+)\*(?![\w*])|(?<!\w)_(?=[^\s_])([^_\n]+)_(?!\w)|\[([^[\]\n]{1,500})\]\(([^\s()]{1,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500})?)\)|https?:\/\/[^\s<>"'`，。；：！？、）】」]{1,2000}/g;

export function parseInline(text: string): Inline[] {
  const nodes: Inline[] = [];
  let from = 0;
  for (const mark of text.length > MAX_INLINE_LENGTH ? [] : text.matchAll(MARK)) {
    nodes.push(...textNodes(text.slice(from, mark.index)), ...parseMark(mark));
    from = mark.index + mark[0].length;
  }
  return [...nodes, ...textNodes(text.slice(from))];
}

function textNodes(text: string): Inline[] {
  if (!text) return [];
  return text.split("\n").flatMap((line, n): Inline[] => [...(n ? [{ type: "break" } as const] : []), { type: "text", text: line }]);
}

function parseMark([whole, , code, strong, strike, starred, lined, label, address]: RegExpExecArray | RegExpMatchArray): Inline[] {
  if (code !== undefined) return [{ type: "code", text: code }];
  if (strong !== undefined) return [{ type: "strong", inside: parseInline(strong) }];
  if (strike !== undefined) return [{ type: "strike", inside: parseInline(strike) }];
  const emphasis = starred ?? lined;
  if (emphasis !== undefined) return [{ type: "em", inside: parseInline(emphasis) }];
  if (label !== undefined) return isWebAddress(address) ? [{ type: "link", href: address, inside: textNodes(label) }] : textNodes(whole);
  const end = /[.,;:!?)\]*_]*$/.exec(whole)?.index ?? whole.length;
  const bare = whole.slice(0, end);
  return isWebAddress(bare) ? [{ type: "link", href: bare, inside: textNodes(bare) }, ...textNodes(whole.slice(end))] : textNodes(whole);
}

/** Only http and https links are allowed. */
export const isWebAddress = (address: string): boolean => /^https?:\/\//i.test(address) && URL.canParse(address);
