// Plays one attack against fresh servers and says what came of it.
import { clientOf, yes } from './client.mjs'
import { inMemory } from './ledgers.mjs'
import { openPlace } from './place.mjs'

/** What happened in an attack: runs of gated tools, codes that were said, what went wrong. */
function newRecord() {
  const runs = []
  const notes = []
  const codes = new Set()
  const breaches = []
  const crashes = []
  const models = []
  const waiting = { count: 0, watch: () => {} }
  let answer = () => {}
  const answering = new Promise((resolve) => {
    answer = resolve
  })
  return {
    /** Requests that a store was asked for, and the end of their wait. */
    answering,
    answer: () => answer(),
    wait: () => {
      waiting.count++
      waiting.watch()
    },
    waited: (count) =>
      new Promise((resolve) => {
        waiting.watch = () => void (waiting.count >= count && resolve('waits'))
        waiting.watch()
      }),
    runs,
    notes,
    codes,
    breaches,
    crashes,
    /** What the model was sent, as text. */
    models,
    run: (run) => runs.push(run),
    note: (note) => notes.push(note),
    asked: (request) => models.push(JSON.stringify(request)),
    error: (error) => crashes.push(String(error)),
    crash: (error) => crashes.push(String(error)),
    refused: (code) => codes.add(code),
    events(events) {
      for (const { type, name, value, metadata, code } of events) {
        if (type === 'CUSTOM' && name === 'approval-refused') codes.add(value.code)
        const own = type === 'TOOL_CALL_RESULT' ? metadata?.countersign : undefined
        if (own?.outcome !== undefined) codes.add(own.code ?? own.outcome)
        if (type === 'RUN_ERROR') crashes.push(`RUN_ERROR ${code}`)
      }
    },
  }
}

/** How long an attack may take, in milliseconds, until it counts as a server that hangs. */
const PATIENCE = 300_000

/**
 * Plays an attack, against ledgers of one kind.
 *
 * @returns `executions`; `through`: whether the attacker got anything; `ok`: everything as stated; and what was seen.
 */
export async function play(built, attack, ledgers = inMemory) {
  const record = newRecord()
  const places = []
  let ahead = 0
  const clock = () => Date.now() + ahead
  const closing = []
  const newLedger = async (options = {}) => {
    const { ledger, close } = await ledgers.open(built.server, { now: clock, ...options })
    closing.push(close)
    return ledger
  }
  const open = async ({ ledger, ...options } = {}) => {
    const place = await openPlace(built.server, record, {
      clock,
      ...options,
      ledger: ledger ?? (await newLedger()),
    })
    places.push(place)
    return { ...clientOf(place.port, record), version: place.version }
  }
  const world = {
    ...built,
    record,
    /** Another server of the same application. */
    open,
    /** A new and empty ledger. */
    newLedger,
    /** A ledger for several processes. */
    shared: ledgers.forProcesses(),
    /** The time of all servers. */
    now: clock,
    /** Moves the clock of all servers, in milliseconds. */
    later: (ms) => {
      ahead += ms
    },
    /** The attacker got something although no tool ran. */
    breach: (what) => record.breaches.push(what),
    /** What the server did in the place of a code. */
    saw: (word) => record.codes.add(word),
    closing,
  }
  const crash = (error) => record.crash(error)
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
  try {
    const options = typeof attack.server === 'function' ? await attack.server(world) : attack.server
    const client = await open(options)
    await inTime(attack.play(client, world))
    if (record.crashes.length === 0) await inTime(isAlive(client, record))
  } catch (error) {
    record.crash(error)
  } finally {
    await Promise.all(places.map((place) => place.close()))
    for (const close of closing) await close()
    process.off('uncaughtException', crash)
    process.off('unhandledRejection', crash)
  }
  return verdictOn({ ...attack, code: codeOf(attack, ledgers) }, record)
}

/** The code that an attack is refused with. A ledger that outlives its process knows more of what it did not issue. */
export function codeOf({ code, durable = code }, { kind } = inMemory) {
  return kind === 'memory' ? code : durable
}

function verdictOn({ code, executions: allowed = 0 }, { runs, codes, breaches, crashes }) {
  const counted = runs.filter(({ honest }) => !honest)
  const unauthorised = Math.max(0, counted.length - allowed)
  const through = unauthorised > 0 || breaches.length > 0
  const refused = codes.has(code)
  return {
    executions: counted.length,
    unauthorised,
    through,
    refused,
    ok: !through && refused && crashes.length === 0,
    codes: [...codes],
    breaches,
    crashes,
  }
}

/** After the attack an honest person still gets a question, and a yes still runs it. */
async function isAlive({ ask, answer }, record) {
  const before = record.runs.length
  const codes = [...record.codes]
  const question = await ask('send', { alive: true }, { user: 'zoe', threadId: 'alive' })
  if (question.asked === undefined) throw new Error('after the attack the server asks nobody any more')
  await answer(question, yes)
  const own = record.runs.slice(before)
  for (const one of own) one.honest = true
  if (own.length !== 1) throw new Error(`after the attack a yes runs its call ${own.length} times`)
  for (const code of record.codes) if (!codes.includes(code)) record.codes.delete(code)
}

function inTime(work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('the server hangs')), PATIENCE)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
