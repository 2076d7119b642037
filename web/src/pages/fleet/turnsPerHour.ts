export const HOUR_MS = 3_600_000;
export const HOURS = 24;

/** Number of turns that started in each of the last hours, newest last. Nothing is known before `since`. */
export function turnsPerHour(times: number[], since: number, now = Date.now()): (number | null)[] {
  const end = (Math.floor(now / HOUR_MS) + 1) * HOUR_MS;
  return Array.from({ length: HOURS }, (_, n) => {
    const from = end - (HOURS - n) * HOUR_MS;
    return from + HOUR_MS <= since ? null : times.filter((time) => time >= from && time < from + HOUR_MS).length;
  });
}
