/** `{@attach takeFocus}`: the element takes the focus when it appears. The attribute `autofocus` leaves the focus where it is. */
export function takeFocus(element: HTMLElement): void {
  element.focus()
}
