const steps = 7;
const stepTime = 120;

/** Reports whether numbers may move. */
function still(): boolean {
  return document.hidden || matchMedia("(prefers-reduced-motion:reduce)").matches;
}

/** A number that counts from one value to the next, and whose changed digits slide. */
export class Ticker {
  readonly #at: HTMLElement;
  readonly #format: (count: number) => string;
  #value: number | undefined;
  #target: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #text = "";

  constructor(at: HTMLElement, format: (count: number) => string) {
    this.#at = at;
    this.#format = format;
  }

  /** Moves to a number; at once when `jump` is set or people prefer no motion. */
  show(target: number | undefined, jump: boolean): void {
    if (target === this.#target && !jump) return;
    this.#target = target;
    clearTimeout(this.#timer);
    const from = this.#value;
    if (target === undefined || from === undefined || jump || still()) {
      this.#write((this.#value = target));
      return;
    }
    let step = 0;
    const move = () => {
      const part = 1 - (1 - ++step / steps) ** 2;
      this.#write((this.#value = step < steps ? Math.round(from + (target - from) * part) : target));
      if (this.#value !== target) this.#timer = setTimeout(move, stepTime);
    };
    move();
  }

  #write(value: number | undefined): void {
    const text = value === undefined ? "\u2013" : this.#format(value);
    const before = this.#text;
    const moving = text.length === before.length && !still();
    this.#text = text;
    this.#at.replaceChildren(
      ...[...text].map((digit, i) => {
        const cell = document.createElement("span");
        cell.textContent = digit;
        if (moving && digit !== before[i]) cell.animate([{ translate: `0 ${digit > before[i]! ? 30 : -30}%`, opacity: 0.3 }, {}], 100);
        return cell;
      }),
    );
  }
}
