import { onDestroy } from "svelte";
import { sockets } from "../api/control";
import { isNobody } from "../api/http";
import { Line } from "../api/line";
import { connection } from "./connection.svelte";
import { LONE, place } from "./place.svelte";
import { complain } from "./problem";
import { rights } from "./rights.svelte";

/** What happens: one socket for all views that show lists, which read them again. An instance tells what goes on in its
    sessions; a control plane what instances record, one of them or all. */
export type Source = { sessions: string } | { records: string | null };
type Listener = (kind: string) => void;
/** Something may have happened that was not heard. */
const ANYTHING = "*";
const SOON_MS = 250;
/** For what no event tells, and so that times stay true. */
const SELDOM_MS = 30_000;

class News {
  #listeners = new Set<Listener>();
  #resting: ReturnType<typeof setTimeout> | undefined;
  #line: Line;
  #isOpen = false;

  constructor(name: string, source: Source) {
    const tell = connection.join(`news of ${name}`, () => this.#line);
    const asks = "sessions" in source;
    this.#line = new Line({
      address: () => (asks ? place.instance(source.sessions).socket : sockets.events(source.records ?? undefined)),
      opened: () => { if (asks) this.#line.send({ type: "req", id: 0, method: "watch", params: {} }); },
      received: (frame) => this.#tell(kindOf(frame)),
      changed: (state, retryAt) => { this.#isOpen = state !== "closed"; tell(state, retryAt); },
      isRefused: asks ? () => !rights.may("operate") : undefined,
      poll: () => this.#tell(ANYTHING),
      ping: asks ? undefined : () => ({ type: "ping" }),
    });
  }

  hear(listener: Listener): () => void {
    clearTimeout(this.#resting);
    this.#listeners.add(listener);
    if (!this.#isOpen) this.#line.open();
    return () => {
      this.#listeners.delete(listener);
      // Whoever goes from one view to another needs it again at once.
      if (!this.#listeners.size) this.#resting = setTimeout(() => this.#line.close(), 3000);
    };
  }

  #tell(kind: string | null) {
    if (kind !== null) for (const listener of this.#listeners) listener(kind);
  }
}

/** Both begin with what is not said. */
function kindOf(frame: Record<string, unknown>): string | null {
  if (frame.type === "snapshot" || frame.type === "res" || frame.event === "reader.behind") return ANYTHING;
  return frame.type === "event" ? String(frame.kind ?? frame.event) : null;
}

const known = new Map<string, News>();

function newsOf(wanted: Source): News {
  // An instance alone tells all there is.
  const source = place.mode === "lone" ? { sessions: LONE } : wanted;
  const name = JSON.stringify(source);
  const news = known.get(name) ?? new News(name, source);
  known.set(name, news);
  return news;
}

/** Runs now, and again shortly after something happened that is wanted, while a view is open and in sight. */
export function follow(source: Source, run: () => Promise<unknown>, wants: (kind: string) => boolean = () => true) {
  let [running, again, timer]: [boolean, boolean, ReturnType<typeof setTimeout> | undefined] = [false, false, undefined];
  // A view that has nothing says why, once; one that has something is read again later. That nobody is there is said anyway.
  let isTold = false;
  const failed = async (problem: unknown) => {
    if (!isTold && isNobody(problem)) await connection.look();
    if (isTold || (connection.away && isNobody(problem))) return;
    isTold = true;
    complain(problem);
  };
  const once = async () => {
    again = true;
    if (running || document.hidden) return;
    running = true;
    while (again && !document.hidden) {
      again = false;
      await run().then(() => { isTold = true; }, failed);
    }
    running = false;
  };
  const soon = () => { timer ??= setTimeout(() => { timer = undefined; void once(); }, SOON_MS); };
  const seen = () => { if (!document.hidden && again) void once(); };
  const deaf = newsOf(source).hear((kind) => { if (kind === ANYTHING || wants(kind)) soon(); });
  const seldom = setInterval(once, SELDOM_MS);
  document.addEventListener("visibilitychange", seen);
  onDestroy(() => { isTold = true; deaf(); clearTimeout(timer); clearInterval(seldom); document.removeEventListener("visibilitychange", seen); });
  void once();
  return once;
}
