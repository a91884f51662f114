/** Use as a `ref`: focuses the element once it is there. */
export function takeFocus(element: HTMLElement | null): void {
  element?.focus()
}
