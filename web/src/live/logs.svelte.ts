import { control, sockets } from "../api/control";
import { ReconnectingSocket } from "../api/socket";
import { parseLogLine, type LogLine } from "../text/logLine";
import { connection } from "./connection.svelte";

const BACKLOG = 100;
const PAGE_SIZE = 1000;
const MAX_LINES = 100_000;
/** Number of matches after which a search waits until the user scrolls. */
const SEARCH_BATCH = 200;

/** A log from its start, page by page. With a filter, only matching lines are kept. */
export class LogHistory {
  lines = $state.raw<LogLine[]>([]);
  /** Number of lines read. */
  readCount = $state(0);
  isAtEnd = $state(false);
  isLoading = $state(false);
  #cursor: string | null = null;
  #isClosed = false;

  constructor(readonly id: string, readonly matches: ((line: LogLine) => boolean) | null) {}

  close() { this.#isClosed = true; }

  get isFull(): boolean { return this.lines.length >= MAX_LINES; }

  /** Reads one page, or with a filter as many as are needed to find enough matches. */
  async loadMore() {
    if (this.isLoading) return;
    this.isLoading = true;
    const target = this.lines.length + SEARCH_BATCH;
    try {
      do await this.#readPage(); while (this.matches && this.lines.length < target && this.#canReadMore);
    } finally { this.isLoading = false; }
  }

  get #canReadMore(): boolean { return !this.isAtEnd && !this.isFull && !this.#isClosed; }

  async #readPage() {
    if (!this.#canReadMore) return;
    const page = await control.logs(this.id, PAGE_SIZE, this.#cursor);
    const fresh = page.lines.map((line, n) => parseLogLine(line, this.readCount + n));
    const found = this.matches ? fresh.filter(this.matches) : fresh;
    if (found.length) this.lines = [...this.lines, ...found];
    this.readCount += fresh.length;
    this.#cursor = page.next_cursor ?? null;
    this.isAtEnd = !this.#cursor || page.has_more === false;
  }
}

/** The end of a log, and new lines as they are written. */
export class LiveLog {
  lines = $state.raw<LogLine[]>([]);
  isRotated = $state(false);
  #isPaused = false;
  #heldLines: string[] = [];
  #nextIndex = 0;
  #socket: ReconnectingSocket;

  constructor(readonly id: string) {
    const setState = connection.track(`log ${id}`, () => this.#socket);
    this.#socket = new ReconnectingSocket({
      url: () => sockets.logs(id, BACKLOG),
      onMessage: (frame) => this.#handleFrame(frame),
      onStateChange: setState,
      poll: () => void control.logs(id, BACKLOG).then((page) => this.#reset(page.lines), () => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#socket.open();
  }

  close() { this.#socket.close(); }

  set paused(isPaused: boolean) {
    this.#isPaused = isPaused;
    if (!isPaused && this.#heldLines.length) { const held = this.#heldLines; this.#heldLines = []; this.#add(held); }
  }

  #handleFrame(frame: Record<string, unknown>) {
    if (frame.type === "backlog") this.#reset(frame.lines as string[]);
    if (frame.type === "rotated") this.isRotated = true;
    if (frame.type !== "lines") return;
    if (this.#isPaused) this.#heldLines = [...this.#heldLines, ...frame.lines as string[]].slice(-MAX_LINES);
    else this.#add(frame.lines as string[]);
  }

  #reset(lines: string[]) {
    this.lines = [];
    this.#add(lines);
  }

  #add(lines: string[]) {
    this.lines = [...this.lines, ...lines.map((line) => parseLogLine(line, this.#nextIndex++))].slice(-MAX_LINES);
  }
}
