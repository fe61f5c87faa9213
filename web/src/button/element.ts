import type { LikesError } from "../transport.js";
import { short } from "./display.js";
import { joined, pageOf, type Entry, type Page, type Watcher } from "./page.js";
import * as state from "./state.js";
import { css } from "./style.js";
import { Ticker } from "./ticker.js";

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

// Modules of a page are also loaded where there is no page, to render it.
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);
const heart = "M12 20.3 4.3 12.6a4.9 4.9 0 0 1 0-6.9 4.9 4.9 0 0 1 6.9 0l.8.8.8-.8a4.9 4.9 0 0 1 6.9 0 4.9 4.9 0 0 1 0 6.9z";
const messageTime = 6000;
/** A focused button's new name is read out, so the count in it follows more slowly. */
const renameTime = 5000;

const texts: Record<string, string> = {
  label: "Like",
  "label-count": "{count} likes",
  "label-count-one": "{count} like",
  "label-pending": "Waiting for the connection\u2026",
  "label-auth": "Sign in to like this.",
  "label-limited": "Too fast: try again in {seconds} s.",
  "label-refused": "Not accepted.",
};

let sheet: CSSStyleSheet | undefined;

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
export class LikeButton extends Base {
  static readonly observedAttributes = ["collection", "item", "server", "token-url", "format", "disabled", ...Object.keys(texts)];

  #box!: HTMLElement;
  #button!: HTMLButtonElement;
  #message!: HTMLElement;
  #ticker!: Ticker;
  #page: Page | undefined;
  #entry: Entry | undefined;
  #wasPending = false;
  /** The viewer liked the item just now, which is celebrated. */
  #tapped = false;
  #quiet: ReturnType<typeof setTimeout> | undefined;
  #rename: ReturnType<typeof setTimeout> | undefined;

  readonly #watcher: Watcher = {
    changed: () => this.#render(),
    settled: () => this.#changed(true),
    refused: (error) => this.#refused(error),
  };

  /** The viewer likes the item, as the button shows it. */
  get liked(): boolean {
    return this.#view.liked;
  }

  /** The number of likes with the viewer's own; undefined while it is not known. */
  get count(): number | undefined {
    return this.#view.count;
  }

  /** A tap could not be delivered yet. */
  get pending(): boolean {
    return this.#view.pending;
  }

  get #view(): state.View {
    return state.view(this.#entry?.state ?? state.initial());
  }

  /** Does what a tap does. */
  toggle(): void {
    if (!this.#entry || this.hasAttribute("disabled")) return;
    this.#say("");
    this.#tapped = !this.liked;
    this.#page!.tap(this.#entry);
    this.#changed(false);
  }

  /** @internal */
  connectedCallback(): void {
    if (!this.shadowRoot) this.#build();
    joined.add(this.#join);
    this.#join();
  }

  /** @internal */
  disconnectedCallback(): void {
    joined.delete(this.#join);
    this.#leave();
    clearTimeout(this.#quiet);
    clearTimeout(this.#rename);
  }

  /** @internal */
  attributeChangedCallback(): void {
    if (this.isConnected && this.shadowRoot) this.#join();
  }

  readonly #join = (): void => {
    this.#leave();
    const collection = this.getAttribute("collection");
    const id = this.getAttribute("item");
    if (collection && id) {
      const count = this.getAttribute("initial-count");
      this.#page = pageOf(this.getAttribute("server") ?? undefined, this.getAttribute("token-url") ?? undefined);
      this.#entry = this.#page.join({ collection, id }, this.#watcher, count === null ? undefined : Number(count), this.hasAttribute("initial-liked"));
    }
    this.#render(true);
  };

  #leave(): void {
    if (this.#entry) this.#page!.leave(this.#entry, this.#watcher);
    this.#entry = undefined;
  }

  /** Made node by node: pages that require trusted types allow no markup from strings. */
  #build(): void {
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    if (!sheet) {
      sheet = new CSSStyleSheet();
      sheet.replaceSync(css);
    }
    root.adoptedStyleSheets = [sheet];
    const box = (this.#box = make(root, "span"));
    // The button lies over what it shows: its name has the exact number, not the short one.
    const button = (this.#button = make(box, "button"));
    const slot = make(make(box, "span", "icon"), "slot");
    slot.name = "icon";
    const svg = slot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.appendChild(document.createElementNS(svg.namespaceURI, "path")).setAttribute("d", heart);
    const count = make(box, "span", "count");
    count.ariaHidden = svg.ariaHidden = "true";
    this.#ticker = new Ticker(count, (n) => (this.getAttribute("format") === "exact" ? this.#exact(n) : short(n)));
    this.#message = make(root, "span", "message");
    this.#message.role = "status";
    button.type = "button";
    button.onclick = () => this.toggle();
    button.onblur = () => this.#name();
  }

  #render(jump = false): void {
    const { liked, count, pending } = this.#view;
    const button = this.#button;
    const turned = button.ariaPressed !== String(liked);
    button.disabled = !this.#entry || this.hasAttribute("disabled");
    button.ariaPressed = String(liked);
    this.#box.setAttribute("part", (this.#box.className = `button${liked ? " liked" : ""}${pending ? " pending" : ""}${this.#tapped && liked ? " tapped" : ""}`));
    this.#ticker.show(count, jump || turned);
    if (turned || jump || !this.shadowRoot!.activeElement) this.#name();
    else this.#rename ??= setTimeout(() => this.#name(), renameTime);
    if (pending && !this.#wasPending) this.#say(this.#text("label-pending"));
    else if (!pending && this.#wasPending) this.#say("");
    this.#wasPending = pending;
  }

  /** The accessible name has the exact number. */
  #name(): void {
    clearTimeout(this.#rename);
    this.#rename = undefined;
    const { count } = this;
    this.#button.ariaLabel =
      this.#text("label") + (count === undefined ? "" : `, ${this.#text(count === 1 ? "label-count-one" : "label-count", this.#exact(count))}`);
  }

  #exact(count: number): string {
    return count.toLocaleString(this.closest<HTMLElement>("[lang]")?.lang || undefined);
  }

  #text(name: string, value: string | number = ""): string {
    return (this.getAttribute(name) ?? texts[name]!).replace(/{\w+}/, String(value));
  }

  /** Shows a text below the button for a while; screen readers say it. */
  #say(text: string): void {
    clearTimeout(this.#quiet);
    this.#message.textContent = text;
    if (text) this.#quiet = setTimeout(() => this.#say(""), messageTime);
  }

  #refused(error: LikesError): void {
    const anonymous = error.status === 401;
    if (!anonymous || this.#emit("like-auth-required", { error })) {
      const name = anonymous ? "label-auth" : error.status === 429 ? "label-limited" : "label-refused";
      this.#say(this.#text(name, Math.ceil((error.retryAfter ?? 1000) / 1000)));
    }
    this.#emit("like-error", { error });
    this.#changed(true);
  }

  #changed(settled: boolean): void {
    this.#emit("like-change", { liked: this.liked, count: this.count, settled });
  }

  #emit(name: string, more: object): boolean {
    const { collection, id: item } = this.#entry!;
    return this.dispatchEvent(new CustomEvent(name, { detail: { collection, item, ...more }, bubbles: true, composed: true, cancelable: true }));
  }
}

/** Adds an element; its part is also its class. */
function make<K extends keyof HTMLElementTagNameMap>(at: ParentNode, tag: K, part = ""): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (part) element.setAttribute("part", (element.className = part));
  at.append(element);
  return element;
}
