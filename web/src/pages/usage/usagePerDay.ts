import type { UsageTotalView } from "../../api/instance.types";

/** Every day of a period, including days without usage. */
export interface DayUsage { time: number; calls: number; tokens: number | null }

const DAYS: Record<string, number> = { "1h": 1, "24h": 2, "7d": 7, "30d": 30 };

export function usagePerDay(totals: UsageTotalView[], period: string, now = Date.now()): DayUsage[] {
  const found = new Map(totals.map((total) => [total.group.slice(0, 10), total]));
  return Array.from({ length: DAYS[period] ?? 7 }, (_, n): DayUsage => {
    const day = new Date(now - (DAYS[period] - 1 - n) * 86_400_000).toISOString().slice(0, 10);
    const total = found.get(day);
    return { time: Date.parse(`${day}T12:00:00Z`) / 1000, calls: total?.calls ?? 0, tokens: totalTokens(total) };
  });
}

/** Null if there was usage but its tokens are unknown. */
function totalTokens(total: UsageTotalView | undefined): number | null {
  if (!total) return 0;
  if (total.input_tokens == null && total.output_tokens == null) return null;
  return (total.input_tokens ?? 0) + (total.output_tokens ?? 0);
}
