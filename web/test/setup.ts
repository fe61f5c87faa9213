// What browsers have and happy-dom lacks: properties that reflect ARIA attributes.
for (const [property, attribute] of [["role", "role"], ["ariaLabel", "aria-label"], ["ariaPressed", "aria-pressed"], ["ariaHidden", "aria-hidden"]] as const) {
  Object.defineProperty(Element.prototype, property, {
    get(this: Element) {
      return this.getAttribute(attribute);
    },
    set(this: Element, value: string) {
      this.setAttribute(attribute, value);
    },
  });
}
