import { parseArgs } from 'node:util'

/** The arguments after `npm run NAME --`. pnpm passes the `--` on, npm removes it. */
export const given = process.argv.slice(process.argv[2] === '--' ? 3 : 2)

/**
 * Reads the arguments of `npm run NAME`. Where they ask for `--help`, or are not what it takes, one line says what that is, and the process ends.
 * `options` are those of `parseArgs`; one may also have the type `number`. `words` lists the words that it takes besides, or names a free one.
 */
export function readArguments(name, { options = {}, words = [], args = given } = {}) {
  const usage = usageOf(name, options, words)
  if (args.includes('--help')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return read(args, options, words)
  } catch (error) {
    fail(`${error.message.split(/\.\s/)[0].replace(/\.?$/, '.')} ${usage}`)
  }
}

/** Ends the process because of what it was given: a stack trace would not help. */
export function fail(message) {
  console.error(message)
  process.exit(1)
}

function usageOf(name, options, words) {
  const flags = Object.entries(options).map(([option, { type }]) =>
    type === 'boolean' ? `[--${option}]` : `[--${option} ${type === 'number' ? 'N' : 'TEXT'}]`,
  )
  const free = typeof words === 'string' ? [`[${words}]`] : []
  const listed = typeof words !== 'string' && words.length > 0 ? [`[${words.join('|')}]`] : []
  const all = [...free, ...listed, ...flags]
  return all.length > 0 ? `Usage: npm run ${name} -- ${all.join(' ')}` : `npm run ${name} takes no arguments.`
}

function read(args, options, words) {
  const known = Object.entries(options).map(([option, { type, default: fallback }]) => {
    const isNumber = type === 'number'
    const text = isNumber ? 'string' : type
    return [
      option,
      { type: text, ...(fallback !== undefined && { default: isNumber ? `${fallback}` : fallback }) },
    ]
  })
  const allowPositionals = words.length > 0
  const { values, positionals } = parseArgs({ args, options: Object.fromEntries(known), allowPositionals })
  const unknown = typeof words === 'string' ? undefined : positionals.find((word) => !words.includes(word))
  if (unknown !== undefined) throw new Error(`There is no "${unknown}"`)
  for (const [option, { type }] of Object.entries(options)) {
    if (type !== 'number' || values[option] === undefined) continue
    if (!/^\d+$/.test(values[option]))
      throw new Error(`--${option} takes a whole number, not "${values[option]}"`)
    values[option] = Number(values[option])
  }
  return { values, positionals }
}
