import { onDestroy } from "svelte";

/** Asks now and then while a view is open and in sight; for what no socket tells. */
export function pollEvery(ms: number, run: () => Promise<unknown>) {
  let isRunning = false;
  const poll = async () => {
    if (isRunning || document.hidden) return;
    isRunning = true;
    await run().catch(() => {});
    isRunning = false;
  };
  void poll();
  const timer = setInterval(poll, ms);
  onDestroy(() => clearInterval(timer));
  return poll;
}
