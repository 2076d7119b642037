import type { AttachmentBody } from "../api/instance.types";

/** An attachment of a message, for display. */
export interface Attachment { name: string; /** Hash of a stored image. */ media?: string; /** Data URL of an image that is not stored yet. */ src?: string }

/** Image types that the server accepts. */
export const IMAGE_TYPES = /^image\/(png|jpeg|gif|webp)$/;
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
export const MAX_IMAGES = 10;
/** In base64 this is a third larger, and still fits into one request. */
export const MAX_TOTAL_BYTES = 20 * 1024 * 1024;

export const dataUrl = ({ media_type, data }: AttachmentBody): string | undefined => (data ? `data:${media_type};base64,${data}` : undefined);

export const attachmentsOfBodies = (attachments: AttachmentBody[]): Attachment[] => attachments.map((one) => ({ name: one.name, src: dataUrl(one) }));

export const attachmentsOfParts = (parts: { type?: string; name?: string; media?: string }[]): Attachment[] =>
  parts.filter((part) => part.type === "attachment").map(({ name, media }) => ({ name: name ?? "", media }));

/** Reads a file as base64, as the API requires it. */
export function readAsBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",")[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
