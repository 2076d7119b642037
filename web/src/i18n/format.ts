import { currentLanguage, t } from "./language.svelte";

const locale = () => (currentLanguage.code === "zh" ? "zh-CN" : "en-GB");

/** Unknown values are shown as such, never as zero or as an empty text. */
export const formatNumber = (value: number | null | undefined): string =>
  value === null || value === undefined ? t("unknown") : new Intl.NumberFormat(locale()).format(value);

export const formatCompact = (value: number | null | undefined): string =>
  value === null || value === undefined ? t("unknown") : new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 }).format(value);

export const formatUsd = (value: number | null | undefined): string =>
  value === null || value === undefined ? t("unknown")
    : new Intl.NumberFormat(locale(), { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", maximumFractionDigits: value < 1 ? 4 : 2 }).format(value);

export const formatDateTime = (time: string | null | undefined): string =>
  time ? new Date(time).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" }) : t("unknown");

export const formatTime = (time: string): string => new Date(time).toLocaleTimeString(locale());

const formatters = new Map<string, Intl.DateTimeFormat>();
/** Creating a formatter is slow, and lists need the same ones many times. */
function dateFormatter(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = `${locale()} ${JSON.stringify(options)}`;
  const known = formatters.get(name) ?? new Intl.DateTimeFormat(locale(), options);
  formatters.set(name, known);
  return known;
}
const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;

/** For list rows: the time, with the date if it is not today. */
export function formatListTime(time: string, now = new Date()): string {
  const at = new Date(time);
  const text = dateFormatter(TIME).format(at);
  return at.toDateString() === now.toDateString() ? text : `${dateFormatter({ day: "numeric", month: "short" }).format(at)} ${text}`;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]];

/** Rounded relative time. */
export function formatRelative(time: string | null | undefined, now = Date.now()): string {
  if (!time) return t("unknown");
  const offset = Date.parse(time) - now;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(offset) >= size) ?? UNITS[3];
  return new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" }).format(Math.round(offset / size), unit);
}

export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return t("unknown");
  const part = (value: number, unit: string, digits = 0) =>
    new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: digits }).format(value);
  if (ms < 1000) return part(Math.round(ms), "millisecond");
  const [days, hours, minutes, seconds] = [Math.floor(ms / 86_400_000), Math.floor(ms / 3_600_000) % 24, Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  // The second unit is omitted if it is zero.
  const both = (first: string, value: number, unit: string) => (value ? `${first} ${part(value, unit)}` : first);
  if (days) return both(part(days, "day"), hours, "hour");
  if (hours) return both(part(hours, "hour"), minutes, "minute");
  return minutes ? both(part(minutes, "minute"), seconds, "second") : part(ms / 1000, "second", ms < 10_000 ? 1 : 0);
}

/** A duration in one unit. */
export function formatRoughDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return t("unknown");
  const [, size] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3];
  return formatDuration(Math.max(Math.floor(ms / size), 1) * size);
}

export const formatBytes = (size: number): string => (size < 1024 ? `${size} B` : size < 1 << 20 ? `${(size / 1024).toFixed(1)} KB` : `${(size / (1 << 20)).toFixed(1)} MB`);
