/** For SVG elements with the role of a button: activates them with the keys of a button. */
export function activateOnKey(event: KeyboardEvent, run: () => void) {
  if (event.key !== "Enter" && event.key !== " ") return;
  // Space would scroll the page.
  event.preventDefault();
  run();
}
