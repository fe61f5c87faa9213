/**
 * The short form of a count, as the server writes it: the integer below 1,000,
 * else one decimal with a unit, rounded half up and without a trailing ".0".
 */
export declare function short(count: number): string;
