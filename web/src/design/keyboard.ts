/** For what is drawn and acts as a button: it answers the keys that a button answers. */
export function activateOnKey(event: KeyboardEvent, run: () => void) {
  if (event.key !== "Enter" && event.key !== " ") return;
  // Space would scroll what the drawing is in.
  event.preventDefault();
  run();
}
