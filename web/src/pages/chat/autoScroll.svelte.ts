import { tick } from "svelte";

/** A position closer to the end than this counts as the end. */
const NEAR_END_PX = 120;
/** A scroll this soon after the user's wheel, touch, key or pointer event is the user's. Momentum extends the time. */
const INPUT_MS = 1000;
/** A scroll this soon after a change of the content may be caused by the browser's layout. */
const LAYOUT_MS = 400;
const INPUTS = ["wheel", "touchmove", "pointerdown", "keydown", "focusin"] as const;

/** Keeps an element scrolled to its end until the user scrolls away. Only the user stops it: the element also scrolls when
    its content is replaced or measured. */
export class AutoScroll {
  isFollowing = $state(true);
  #element: HTMLElement | undefined;
  #lastInputAt = -Infinity;
  #lastChangeAt = -Infinity;

  /** An attachment for the element. Its first child is the content that grows. */
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

  /** Content was added or resized. */
  contentChanged() {
    this.#lastChangeAt = performance.now();
    if (this.isFollowing) this.#scrollToEnd();
  }

  /** The user wants to see the end, by a button or by sending a message. */
  jumpToEnd() {
    this.isFollowing = true;
    void tick().then(() => this.contentChanged());
  }

  /** Runs a change that adds content above, and keeps the visible content in place. */
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
    // Without an input event it may still be the user, with the browser's search or a screen reader, but not during layout.
    else if (isUserScroll || now - this.#lastChangeAt > LAYOUT_MS) this.isFollowing = false;
    else if (this.isFollowing) this.#scrollToEnd();
  };

  #scrollToEnd() { this.#element?.scrollTo({ top: this.#element.scrollHeight }); }
}
