import { onDestroy } from "svelte";

/** Asks now and then while a view is open and in sight; for what no socket tells. */
export function every(ms: number, run: () => Promise<unknown>) {
  let running = false;
  const once = async () => {
    if (running || document.hidden) return;
    running = true;
    await run().catch(() => {});
    running = false;
  };
  void once();
  const timer = setInterval(once, ms);
  onDestroy(() => clearInterval(timer));
  return once;
}
