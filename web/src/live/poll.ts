import { onDestroy } from "svelte";

/** Polls while the view is open and visible, for data without change events. */
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
