/** The module that a page loads: it defines `<like-button>`. */
import { LikeButton } from "./button/element.js";
export { LikeButton, type LikeChange, type LikeFailure } from "./button/element.js";
export { configure, type PageConfig } from "./button/page.js";
export { LikesError } from "./transport.js";
declare global {
    interface HTMLElementTagNameMap {
        "like-button": LikeButton;
    }
    interface HTMLElementEventMap {
        "like-change": CustomEvent<import("./button/element.js").LikeChange>;
        "like-error": CustomEvent<import("./button/element.js").LikeFailure>;
        "like-auth-required": CustomEvent<import("./button/element.js").LikeFailure>;
    }
}
