import { onMount } from 'solid-js'

/** Use as a `ref`: focuses the element once it is mounted. */
export function takeFocus(element: HTMLElement): void {
  onMount(() => element.focus())
}
