/** All who do the same work, in the order of the tables. Each is loaded only where it is at work. */
export const contenders = [
  { id: 'mutable', name: 'mutable floor', load: async () => (await import('./floors.mjs')).mutable },
  { id: 'immutable', name: 'immutable floor', load: async () => (await import('./floors.mjs')).immutable },
  {
    id: 'countersign-sync',
    name: 'Countersign, every delta published',
    load: async () => (await import('./countersign.mjs')).countersignSync,
  },
  {
    id: 'countersign',
    name: 'Countersign',
    load: async () => (await import('./countersign.mjs')).countersign,
  },
  { id: 'ai-sdk', name: 'AI SDK', load: async () => (await import('./ai-sdk.mjs')).aiSdk },
  {
    id: 'tanstack',
    name: 'TanStack AI (without its timers)',
    load: async () => (await import('./tanstack.mjs')).tanstack,
  },
  { id: 'ag-ui', name: 'AG-UI client', load: async () => (await import('./ag-ui.mjs')).agUi },
]

export function loadContender(id) {
  const found = contenders.find((one) => one.id === id)
  if (!found) throw new Error(`There is no contender ${id}.`)
  return found.load()
}
