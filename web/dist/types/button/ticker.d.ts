/** A number that counts from one value to the next, and whose changed digits slide. */
export declare class Ticker {
    #private;
    constructor(at: HTMLElement, format: (count: number) => string);
    /** Moves to a number; at once when `jump` is set or people prefer no motion. */
    show(target: number | undefined, jump: boolean): void;
}
