type Child = Node | string | undefined | false

/** Makes an element. Attributes that are `undefined` or `false` are left out; a text becomes a text node, never markup. */
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

/** A button with words on it. */
export function button(label: string, attributes: Readonly<Record<string, string>>, act: () => void) {
  const element = h('button', { type: 'button', ...attributes }, label)
  element.addEventListener('click', act)
  return element
}

/** Sets a text only where it is another one, so that nothing is read out or laid out anew for nothing. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Sets `aria-pressed` or any other attribute only where it is another one. */
export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}
