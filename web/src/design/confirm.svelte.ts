/** Asks before something that cannot be undone. The answer is a promise; the one dialog for it is in the shell. */
export interface Question {
  title: string;
  text: string;
  action: string;
  danger?: boolean;
  /** Must be typed before the button works. */
  typed?: string;
}

class Asked {
  question = $state<Question | null>(null);
  #answer: ((yes: boolean) => void) | null = null;

  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
    return new Promise((resolve) => { this.#answer = resolve; });
  }

  answer(yes: boolean) {
    this.#answer?.(yes);
    this.#answer = null;
    this.question = null;
  }
}

export const asked = new Asked();
export const confirm = (question: Question) => asked.ask(question);
