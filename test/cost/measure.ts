/** How much a cost may grow with each doubling of an input. */
export const GROWTH = 2.2

/** How many times the cost of `JSON.parse` of the same bytes an input may cost. */
export const TIMES_JSON_PARSE = 20

/** The same for an adapter on the page, which makes several events and parts of each small item. */
export const TIMES_ADAPTED = 120

/** Milliseconds of processor time that `work` took, in all threads of this process. What other processes do does not count. */
export async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Parses JSON, and the JSON that its texts hold, as arguments and results of calls are. */
export function parseAll(json: string): void {
  const open: unknown[] = [JSON.parse(json)]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === 'object' && value !== null)
      for (const member of Object.values(value)) open.push(member ?? false)
    else if (typeof value === 'string' && /^[[{]/.test(value)) open.push(parsed(value))
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return false
  }
}
