import { tick } from "svelte";

/** Closer to the end than this counts as being there. */
const NEAR_END_PX = 120;
/** A scroll this soon after the reader's wheel, touch, key or pointer is the reader's; momentum renews it. */
const INPUT_MS = 1000;
/** A scroll this soon after the content changed may be the browser's own, when it clamps or measures. */
const LAYOUT_MS = 400;
const INPUTS = ["wheel", "touchmove", "pointerdown", "keydown", "focusin"] as const;

/** Keeps a scrolled box at its end while the reader wants that, and leaves it alone otherwise. Only the reader stops the
    following: a box also scrolls because its content was replaced or measured, and that says nothing about the reader. */
export class EndFollower {
  following = $state(true);
  #box: HTMLElement | undefined;
  #input = -Infinity;
  #change = -Infinity;

  /** An attachment of the box. Its first child is what grows. */
  attach = (box: HTMLElement) => {
    this.#box = box;
    const onInput = () => { this.#input = performance.now(); };
    for (const kind of INPUTS) box.addEventListener(kind, onInput, { passive: true });
    box.addEventListener("scroll", this.#onScroll, { passive: true });
    const sizes = new ResizeObserver(() => this.contentChanged());
    sizes.observe(box);
    if (box.firstElementChild) sizes.observe(box.firstElementChild);
    return () => {
      sizes.disconnect();
      this.#box = undefined;
    };
  };

  /** Something was added or has another size. */
  contentChanged() {
    this.#change = performance.now();
    if (this.following) this.#scrollToEnd();
  }

  /** The reader asked for the end: by a button, or by sending something. */
  jump() {
    this.following = true;
    void tick().then(() => this.contentChanged());
  }

  /** Runs a change that adds content above; what is in view stays where it is. */
  async keepPlace(change: () => void) {
    const box = this.#box;
    const below = box ? box.scrollHeight - box.scrollTop : 0;
    change();
    await tick();
    if (box) box.scrollTop = box.scrollHeight - below;
  }

  #onScroll = () => {
    const box = this.#box;
    if (!box) return;
    const now = performance.now();
    const isReader = now - this.#input < INPUT_MS;
    if (isReader) this.#input = now;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX) this.following = true;
    // Without an input it may still be the reader, by the browser's search or a screen reader; not while the content moves.
    else if (isReader || now - this.#change > LAYOUT_MS) this.following = false;
    else if (this.following) this.#scrollToEnd();
  };

  #scrollToEnd() { this.#box?.scrollTo({ top: this.#box.scrollHeight }); }
}
