/** The mail addresses in a comma-separated list; an empty array if any of them is invalid. */
export function addresses(list: string): string[] {
  const found = list.split(',').map((address) => address.trim())
  return found.every((address) => /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(address))
    ? found
    : []
}
