import type { InstanceApi } from "../api/instance";
import type { AttachmentBody } from "../api/instance.types";

/** A message that is being sent. The server deduplicates by id, so it is safe to send it again. */
export interface OutgoingMessage { id: string; text: string; attachments: AttachmentBody[]; state: "sending" | "not_sent" }
export type PickedFile = AttachmentBody & { size: number };

/** Text and files that were entered for a chat but are not on the server yet. */
export class ChatDraft {
  text = $state("");
  files = $state<PickedFile[]>([]);
  outgoing = $state<OutgoingMessage[]>([]);

  /** Puts back what could not be sent, before text that was typed since. */
  restore(text: string, files: PickedFile[]) {
    this.text = [text, this.text].filter(Boolean).join("\n");
    this.files = [...files, ...this.files];
  }
}

/** Drafts survive leaving a chat, until the page is closed. */
const drafts = new Map<string, ChatDraft>();

/** The draft of a chat, or of a new chat. */
export function chatDraft(instance: InstanceApi, key: string | null): ChatDraft {
  const name = `${instance.base} ${key ?? ""}`;
  const draft = drafts.get(name) ?? new ChatDraft();
  drafts.set(name, draft);
  return draft;
}
