/** What both pages need to write elements. No markup is ever made from strings. */

type Child = Node | string | number | null | undefined | false;

/** Makes an element. Attributes that are false or undefined are left out; functions become listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean | undefined | ((event: any) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** The element with an id. The page is written so that it is there. */
export function get<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Sets a text only when it differs, so that selections survive. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
