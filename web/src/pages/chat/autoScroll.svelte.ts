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
export class AutoScroll {
  isFollowing = $state(true);
  #element: HTMLElement | undefined;
  #lastInputAt = -Infinity;
  #lastChangeAt = -Infinity;

  /** An attachment of the box. Its first child is what grows. */
  attach = (box: HTMLElement) => {
    this.#element = box;
    const onInput = () => { this.#lastInputAt = performance.now(); };
    for (const kind of INPUTS) box.addEventListener(kind, onInput, { passive: true });
    box.addEventListener("scroll", this.#onScroll, { passive: true });
    const sizes = new ResizeObserver(() => this.contentChanged());
    sizes.observe(box);
    if (box.firstElementChild) sizes.observe(box.firstElementChild);
    return () => {
      sizes.disconnect();
      this.#element = undefined;
    };
  };

  /** Something was added or has another size. */
  contentChanged() {
    this.#lastChangeAt = performance.now();
    if (this.isFollowing) this.#scrollToEnd();
  }

  /** The reader asked for the end: by a button, or by sending something. */
  jumpToEnd() {
    this.isFollowing = true;
    void tick().then(() => this.contentChanged());
  }

  /** Runs a change that adds content above; what is in view stays where it is. */
  async keepPosition(change: () => void) {
    const box = this.#element;
    const below = box ? box.scrollHeight - box.scrollTop : 0;
    change();
    await tick();
    if (box) box.scrollTop = box.scrollHeight - below;
  }

  #onScroll = () => {
    const box = this.#element;
    if (!box) return;
    const now = performance.now();
    const isUserScroll = now - this.#lastInputAt < INPUT_MS;
    if (isUserScroll) this.#lastInputAt = now;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX) this.isFollowing = true;
    // Without an input it may still be the reader, by the browser's search or a screen reader; not while the content moves.
    else if (isUserScroll || now - this.#lastChangeAt > LAYOUT_MS) this.isFollowing = false;
    else if (this.isFollowing) this.#scrollToEnd();
  };

  #scrollToEnd() { this.#element?.scrollTo({ top: this.#element.scrollHeight }); }
}
