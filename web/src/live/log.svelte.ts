import { control, sockets } from "../api/control";
import { Line } from "../api/line";
import { logLine, type LogLine } from "../text/log";
import { connection } from "./connection.svelte";

/** The end of a log, and what is written from now on. */
const BACKLOG = 100;
const KEPT = 100_000;

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
