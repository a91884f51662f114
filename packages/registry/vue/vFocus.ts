import type { Directive } from 'vue'

/** `v-focus` focuses the element when it appears, if its value is not false. The attribute `autofocus` works only at page load. */
export const vFocus: Directive<HTMLElement, boolean | undefined> = {
  mounted(element, { value = true }) {
    if (value) element.focus()
  },
}
