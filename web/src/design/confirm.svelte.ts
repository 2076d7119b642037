/** Asks before something that cannot be undone. The answer is a promise; the one dialog for it is in the shell. */
export interface ConfirmRequest {
  title: string;
  text: string;
  action: string;
  danger?: boolean;
  /** Must be typed before the button works. */
  requiredInput?: string;
}

class Confirmation {
  request = $state<ConfirmRequest | null>(null);
  #resolve: ((yes: boolean) => void) | null = null;

  ask(request: ConfirmRequest): Promise<boolean> {
    this.answer(false);
    this.request = request;
    return new Promise((resolve) => { this.#resolve = resolve; });
  }

  answer(yes: boolean) {
    this.#resolve?.(yes);
    this.#resolve = null;
    this.request = null;
  }
}

export const confirmation = new Confirmation();
export const confirm = (request: ConfirmRequest) => confirmation.ask(request);
