/** The room for 10,000 values, or for 100,000 within the schemas of tools. */
const MOST = 100_000
const COST = 10
const SCHEMA_COST = 1

/**
 * Whether a message has so many values that the SDK's check of it could take all memory: it describes each wrong value at length, in the
 * content of a result with several kilobytes for two bytes. It does not look into structured content.
 */
export function isTooCostly(message: object): boolean {
  const open: [value: unknown, cost: number][] = [[message, COST]]
  if ('result' in message) {
    const { structuredContent, ...checked } = Object(message.result)
    open[0] = [checked, COST]
  }
  let spent = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, cost] = next
    if (typeof value !== 'object' || value === null) continue
    spent += cost * (Array.isArray(value) ? value.length : Object.keys(value).length)
    if (spent > MOST) return true
    for (const [key, item] of Object.entries(value)) open.push([item, isSchema(key) ? SCHEMA_COST : cost])
  }
  return false
}

const isSchema = (key: string) => key === 'inputSchema' || key === 'outputSchema'
