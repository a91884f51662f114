import { onMount } from 'solid-js'

/** As a `ref`: the element takes the focus when it has come onto the page. */
export function takeFocus(element: HTMLElement): void {
  onMount(() => element.focus())
}
