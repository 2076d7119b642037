import type { InstanceApi } from "../api/instance";
import type { AttachmentBody } from "../api/instance.types";

/** A message on its way. The server knows an id it has seen, so sending again is safe. */
export interface OutgoingMessage { id: string; text: string; attachments: AttachmentBody[]; state: "sending" | "not_sent" }
export type PickedFile = AttachmentBody & { size: number };

/** What was written for a chat and is not with the server yet: typed, attached, or on its way. */
export class ChatDraft {
  text = $state("");
  files = $state<PickedFile[]>([]);
  outgoing = $state<OutgoingMessage[]>([]);

  /** Gives back what could not be sent, before what was written since. */
  restore(text: string, files: PickedFile[]) {
    this.text = [text, this.text].filter(Boolean).join("\n");
    this.files = [...files, ...this.files];
  }
}

/** Whoever leaves a chat finds it again: it lasts as long as the page. */
const drafts = new Map<string, ChatDraft>();

/** Of a chat, or of one that is not begun. */
export function chatDraft(instance: InstanceApi, key: string | null): ChatDraft {
  const name = `${instance.base} ${key ?? ""}`;
  const draft = drafts.get(name) ?? new ChatDraft();
  drafts.set(name, draft);
  return draft;
}
