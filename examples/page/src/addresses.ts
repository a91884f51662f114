/** The addresses of a list; an empty array where one of them is not an address. */
export function addresses(list: string): string[] {
  const found = list.split(',').map((address) => address.trim())
  return found.every((address) => /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(address))
    ? found
    : []
}
