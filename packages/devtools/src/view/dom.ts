type Child = Node | string | undefined | false

/** Creates an element. Attributes that are `undefined` or `false` are omitted; a string becomes a text node, never markup. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : String(value))
  }
  for (const child of children) if (child !== undefined && child !== false) element.append(child)
  return element
}

/** A button with a text label. */
export function button(label: string, attributes: Readonly<Record<string, string>>, act: () => void) {
  const element = h('button', { type: 'button', ...attributes }, label)
  element.addEventListener('click', act)
  return element
}

/** Sets a text only if it changes, to avoid needless announcements and layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Sets `aria-pressed` or any other attribute only if it changes. */
export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}
