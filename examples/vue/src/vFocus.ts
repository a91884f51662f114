import type { Directive } from 'vue'

/** `v-focus`: the element takes the focus when it appears, or where the value is true. The attribute `autofocus` works at page load only. */
export const vFocus: Directive<HTMLElement, boolean | undefined> = {
  mounted(element, { value = true }) {
    if (value) element.focus()
  },
}
