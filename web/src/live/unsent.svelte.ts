import type { Instance } from "../api/instance";
import type { AttachmentBody } from "../api/instance.types";

/** A message on its way. The server knows an id it has seen, so sending again is safe. */
export interface Outgoing { id: string; text: string; attachments: AttachmentBody[]; state: "sending" | "not_sent" }
export type Picked = AttachmentBody & { size: number };

/** What was written for a chat and is not with the server yet: typed, attached, or on its way. */
export class Unsent {
  text = $state("");
  files = $state<Picked[]>([]);
  outgoing = $state<Outgoing[]>([]);

  /** Gives back what could not be sent, before what was written since. */
  restore(text: string, files: Picked[]) {
    this.text = [text, this.text].filter(Boolean).join("\n");
    this.files = [...files, ...this.files];
  }
}

/** Whoever leaves a chat finds it again: it lasts as long as the page. */
const kept = new Map<string, Unsent>();

/** Of a chat, or of one that is not begun. */
export function unsentOf(instance: Instance, key: string | null): Unsent {
  const name = `${instance.base} ${key ?? ""}`;
  const found = kept.get(name) ?? new Unsent();
  kept.set(name, found);
  return found;
}
