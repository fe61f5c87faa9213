import type { LikesError } from "../transport.js";
/** Detail of `like-change`. */
export interface LikeChange {
    readonly collection: string;
    readonly item: string;
    readonly liked: boolean;
    readonly count: number | undefined;
    /** The server confirmed it; otherwise it is what the viewer wants. */
    readonly settled: boolean;
}
/** Detail of `like-error` and `like-auth-required`. */
export interface LikeFailure {
    readonly collection: string;
    readonly item: string;
    readonly error: LikesError;
}
declare const Base: {
    new (): HTMLElement;
    prototype: HTMLElement;
};
/**
 * A like button for one item. It answers a tap at once, and corrects itself.
 *
 * @tagname like-button
 * @slot icon - Replaces the heart; use `currentColor`.
 * @csspart button - The box of the whole button.
 * @csspart liked - The same box, while the viewer likes the item.
 * @csspart pending - The same box, while a tap could not be delivered yet.
 * @csspart tapped - The same box, while liked by a tap on it rather than before.
 * @csspart icon - The box of the icon.
 * @csspart count - The number.
 * @csspart message - The text that says why a tap was taken back or has to wait.
 * @cssprop [--like-accent=light-dark(#e11d56,#ff5d8a)] - Colour of the filled heart.
 * @cssprop [--like-color=inherit] - Colour of the outline and the number.
 * @cssprop [--like-color-liked=inherit] - Colour of the number while liked.
 * @cssprop [--like-background=none] - Background of the button.
 * @cssprop [--like-size=1.25em] - Size of the icon.
 * @cssprop [--like-target=2.5em] - Least height of the button.
 * @cssprop [--like-padding=0 .7em] - Padding of the button.
 * @cssprop [--like-radius=99em] - Corner radius of the button.
 * @cssprop [--like-gap=.4em] - Space between icon and number.
 * @cssprop [--like-pending=#e8930c] - Colour of the dot that marks a tap that has to wait.
 * @attr {string} collection - Collection of the item, for example `posts`.
 * @attr {string} item - Id of the item.
 * @attr {string} server - Base URL of the server. Default: where the script came from.
 * @attr {string} token-url - Where to get the viewer's token; asked with cookies.
 * @attr {"short"|"exact"} format - How the number is written. Default: short, as in 1.2M.
 * @attr {number} initial-count - The total that the page was rendered with.
 * @attr {boolean} initial-liked - The viewer liked the item when the page was rendered.
 * @attr {boolean} disabled - The button shows, but cannot be pressed.
 * @attr {string} label - Name of the button. Default: Like.
 * @attr {string} label-count - Default: {count} likes.
 * @attr {string} label-count-one - Default: {count} like.
 * @attr {string} label-pending - Said when a tap could not be delivered.
 * @attr {string} label-auth - Said when nobody is signed in.
 * @attr {string} label-limited - Said when taps come too fast; may contain {seconds}.
 * @attr {string} label-refused - Said when a tap is refused for another reason.
 * @fires {CustomEvent<LikeChange>} like-change - The viewer's like changed on screen, or was confirmed.
 * @fires {CustomEvent<LikeFailure>} like-error - A tap was refused and taken back.
 * @fires {CustomEvent<LikeFailure>} like-auth-required - A tap needs a viewer who is signed in. Cancel it to show nothing.
 */
export declare class LikeButton extends Base {
    #private;
    static readonly observedAttributes: string[];
    /** The viewer likes the item, as the button shows it. */
    get liked(): boolean;
    /** The number of likes with the viewer's own; undefined while it is not known. */
    get count(): number | undefined;
    /** A tap could not be delivered yet. */
    get pending(): boolean;
    /** Does what a tap does. */
    toggle(): void;
}
export {};
