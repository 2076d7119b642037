import { control, sockets } from "../api/control";
import { Line } from "../api/line";
import { logLine, type LogLine } from "../text/log";
import { connection } from "./connection.svelte";

const BACKLOG = 100;
const PAGE = 1000;
const KEPT = 100_000;
/** Found so many, a search waits until somebody scrolls. */
const ENOUGH = 200;

/** A log from its beginning, a page at a time. Of what is looked for only what fits is kept, so it may be in any place. */
export class PastLog {
  lines = $state.raw<LogLine[]>([]);
  /** How many lines were read. */
  read = $state(0);
  ended = $state(false);
  reading = $state(false);
  #cursor: string | null = null;
  #gone = false;

  constructor(readonly id: string, readonly fits: ((line: LogLine) => boolean) | null) {}

  close() { this.#gone = true; }

  get isFull(): boolean { return this.lines.length >= KEPT; }

  /** One page; of what is looked for, as many as it takes to find enough. */
  async more() {
    if (this.reading) return;
    this.reading = true;
    const wanted = this.lines.length + ENOUGH;
    try {
      do await this.#page(); while (this.fits && this.lines.length < wanted && this.#goesOn);
    } finally { this.reading = false; }
  }

  get #goesOn(): boolean { return !this.ended && !this.isFull && !this.#gone; }

  async #page() {
    if (!this.#goesOn) return;
    const page = await control.logs(this.id, PAGE, this.#cursor);
    const fresh = page.lines.map((line, n) => logLine(line, this.read + n));
    const found = this.fits ? fresh.filter(this.fits) : fresh;
    if (found.length) this.lines = [...this.lines, ...found];
    this.read += fresh.length;
    this.#cursor = page.next_cursor ?? null;
    this.ended = !this.#cursor || page.has_more === false;
  }
}

/** The end of a log, and what is written from now on. */
export class LiveLog {
  lines = $state.raw<LogLine[]>([]);
  rotated = $state(false);
  #paused = false;
  #held: string[] = [];
  #next = 0;
  #line: Line;

  constructor(readonly id: string) {
    const tell = connection.join(`log ${id}`, () => this.#line);
    this.#line = new Line({
      address: () => sockets.logs(id, BACKLOG),
      received: (frame) => this.#take(frame),
      changed: tell,
      poll: () => void control.logs(id, BACKLOG).then((page) => this.#reset(page.lines), () => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#line.open();
  }

  close() { this.#line.close(); }

  set paused(wanted: boolean) {
    this.#paused = wanted;
    if (!wanted && this.#held.length) { const held = this.#held; this.#held = []; this.#add(held); }
  }

  #take(frame: Record<string, unknown>) {
    if (frame.type === "backlog") this.#reset(frame.lines as string[]);
    if (frame.type === "rotated") this.rotated = true;
    if (frame.type !== "lines") return;
    if (this.#paused) this.#held = [...this.#held, ...frame.lines as string[]].slice(-KEPT);
    else this.#add(frame.lines as string[]);
  }

  #reset(lines: string[]) {
    this.lines = [];
    this.#add(lines);
  }

  #add(lines: string[]) {
    this.lines = [...this.lines, ...lines.map((line) => logLine(line, this.#next++))].slice(-KEPT);
  }
}
