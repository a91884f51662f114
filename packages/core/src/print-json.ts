const maxIndent = 16

type PrintTask = string | { value: unknown; depth: number }

/** Prints a JSON value, without recursion, so that deep nesting cannot overflow the stack. `multiline`: indented by two spaces, up to 16 levels. */
export function printJson(json: unknown, multiline: boolean): string {
  const printed: string[] = []
  const todo: PrintTask[] = [{ value: json, depth: 0 }]
  for (let task = todo.pop(); task !== undefined; task = todo.pop()) {
    if (typeof task === 'string') printed.push(task)
    else if (typeof task.value !== 'object' || task.value === null) printed.push(printScalar(task.value))
    else for (const next of printNode(task.value, task.depth, multiline).reverse()) todo.push(next)
  }
  return printed.join('')
}

function printNode(node: object, depth: number, multiline: boolean): PrintTask[] {
  const [opening, closing] = Array.isArray(node) ? '[]' : '{}'
  const entries = Object.entries(node)
  if (entries.length === 0) return [`${opening}${closing}`]
  const tasks: PrintTask[] = []
  for (const [key, value] of entries) {
    const before = tasks.length === 0 ? opening : ','
    const label = Array.isArray(node) ? '' : `${printScalar(key)}:${multiline ? ' ' : ''}`
    tasks.push(before + lineBreak(depth + 1) + label, { value, depth: depth + 1 })
  }
  return [...tasks, lineBreak(depth) + closing]

  function lineBreak(level: number): string {
    return multiline ? `\n${'  '.repeat(Math.min(level, maxIndent))}` : ''
  }
}

/** Undoes JSON's escapes of characters that displayText escapes, so that both show them alike. */
function printScalar(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null'
  return json.replace(/\\(?:u(....)|.)/g, (sequence, hex) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return sequence === '\\b' ? '\b' : sequence === '\\f' ? '\f' : sequence
  })
}
