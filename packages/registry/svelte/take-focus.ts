/** `{@attach takeFocus}` focuses the element when it appears. The attribute `autofocus` would not. */
export function takeFocus(element: HTMLElement): void {
  element.focus()
}
