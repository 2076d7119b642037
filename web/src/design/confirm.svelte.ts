/** Asks for confirmation before something that cannot be undone. The shell contains the only dialog for it. */
export interface ConfirmRequest {
  title: string;
  text: string;
  action: string;
  danger?: boolean;
  /** Text that the user must type to enable the button. */
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
