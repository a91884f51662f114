import type { ResumeEntry } from '@countersign/core'
import type { AnswerChannel, AnswerContext, Delivery, Receive } from '@countersign/server'
import {
  checkOptions,
  endedRun,
  fairDeliveries,
  milliseconds,
  plainMembers,
  received,
  sqlClock,
  sqlNames,
  text,
} from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase, outOfTime } from './database.js'
import { prefixOf } from './schema.js'

export interface SqlAnswerChannelOptions {
  /** Prefix of the tables' names. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Milliseconds after which an operation without a response from the database fails. Default 5,000. */
  readonly timeout?: number | undefined
  /** Milliseconds between two polls for answers, if the connection can't `listen`. Default 500. */
  readonly pollMs?: number | undefined
}

export interface SqlAnswerChannel extends AnswerChannel {
  /** Stops polling: open runs receive no more answers. */
  close(): Promise<void>
}

/** How long a run may hold an answer before it replies: its approval may not have been requested yet. `timeout` is added. */
const EARLY_MS = 10_000
/** How long a process counts as listening after its last sign of life. */
const LEASE_MS = 15_000
/** How often a process polls that is also notified. */
const TOLD_MS = 5_000
/** How many answers one query takes. */
const AT_ONCE = 64

interface Parcel {
  readonly entries: readonly ResumeEntry[]
  readonly context: AnswerContext
}

/**
 * An answer channel in PostgreSQL or SQLite: an answer that reaches one server is delivered to a run that is open on another. If the
 * connection can `listen` (PostgreSQL), it arrives at once, otherwise with the next poll. A process polls only while it has an open run.
 * Of the context of whoever answers, `approvals.confirm` gets the plain data: strings, numbers, booleans, null, plain objects and arrays, up
 * to 16 Ki characters of JSON per member. It is stored in the database until the run has replied, so keep secrets out of it.
 *
 * @throws CountersignError `invalid-option`
 */
export function sqlAnswerChannel(
  connection: SqlConnection,
  options: SqlAnswerChannelOptions = {},
): SqlAnswerChannel {
  checkOptions('sqlAnswerChannel', options, { prefix: text, timeout: milliseconds, pollMs: milliseconds })
  const { timeout = 5000, pollMs = 500 } = options
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, timeout)
  const { nameOf } = sqlNames(database)
  const clock = sqlClock(connection.dialect)
  const listening = `${prefix}listening`
  const answers = `${prefix}answers`
  const listener = globalThis.crypto.randomUUID()
  // Without a dot: some PostgreSQL clients don't quote the name. Prefixes that share a topic only cause additional polls.
  const topic = `${prefix.replace('.', '_')}answers`
  const runs = new Map<string, Receive>()
  const taken = new Set<string>()
  const fairly = fairDeliveries()
  const bell = createBell()
  let looking: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  let isClosed = false

  const write = (text: string, values: readonly (string | number)[]) =>
    database.session(({ query }) => query(text, values))

  /** Wakes all listeners, here and in other processes. */
  async function ring(): Promise<void> {
    bell.ring()
    if (connection.listen !== undefined) await write('select pg_notify(?, ?)', [topic, '']).catch(() => {})
  }

  const listen = async () => connection.listen?.(topic, bell.ring).catch(() => undefined)

  /** Takes answers for the runs of this process, as long as there are any. */
  async function look(): Promise<void> {
    let stop = await listen()
    try {
      for (let isTold = true; runs.size > 0 && !isClosed; ) {
        const rung = bell.rung(stop === undefined ? pollMs : TOLD_MS, false)
        const found = await take().catch(() => 0)
        // Nobody has told of it: the connection that listens was lost, as when the database restarts.
        if (found > 0 && !isTold && stop !== undefined) {
          stop().catch(() => {})
          stop = await listen()
          bell.ring()
        }
        isTold = await rung
      }
    } finally {
      // At once: a run that opens while this stops looks itself.
      looking = undefined
      stopping = stop?.().catch(() => {})
    }
  }

  /** Returns how many answers there were. */
  async function take(): Promise<number> {
    let found = 0
    await write(`update ${listening} set kept_until = ${clock} + ? where listener = ?`, [LEASE_MS, listener])
    // A taken answer has no parcel any more: however many wait for their reply, they hide none that comes later.
    for (let isMore = true; isMore; ) {
      const rows = await write(
        `select id, run, parcel from ${answers} where listener = ? and reply is null and parcel <> ''
        order by seq limit ${AT_ONCE}`,
        [listener],
      )
      for (const { id, run, parcel } of rows) {
        const name = String(id)
        if (taken.has(name)) continue
        taken.add(name)
        void reply(name, runs.get(String(run)), JSON.parse(String(parcel)))
      }
      const ids = rows.map(({ id }) => String(id))
      const places = ids.map(() => '?').join(', ')
      if (ids.length > 0) await write(`update ${answers} set parcel = '' where id in (${places})`, ids)
      found += ids.length
      isMore = ids.length === AT_ONCE
    }
    return found
  }

  async function reply(
    id: string,
    receive: Receive | undefined,
    { entries, context }: Parcel,
  ): Promise<void> {
    const delivery = receive === undefined ? endedRun : await received(receive, entries, context)
    // If the reply can't be written, the sender of the answer times out.
    await write(`update ${answers} set reply = ? where id = ?`, [JSON.stringify(delivery), id]).catch(
      () => {},
    )
    taken.delete(id)
    await ring()
  }

  /** The reply, or that the run has ended if nobody is left to reply. */
  async function replyTo(id: string): Promise<Delivery> {
    const end = performance.now() + EARLY_MS + timeout
    for (let gone = false; ; ) {
      if (performance.now() > end) throw outOfTime(EARLY_MS + timeout)
      const rung = bell.rung(Math.min(pollMs, 100), true)
      const [row] = await write(
        `select a.reply, l.run from ${answers} a left join ${listening} l
        on l.run = a.run and l.listener = a.listener and l.kept_until > ${clock} where a.id = ?`,
        [id],
      )
      if (row?.reply != null) return JSON.parse(String(row.reply))
      const isGone = row?.run == null
      // Checks again after the first miss: the run may just have replied and closed.
      if (isGone && gone) return endedRun
      gone = isGone
      await rung
    }
  }

  async function send(
    run: string,
    entries: readonly ResumeEntry[],
    context: AnswerContext,
  ): Promise<Delivery> {
    const id = globalThis.crypto.randomUUID()
    const parcel: Parcel = { entries, context: plainMembers(context) }
    await write(`delete from ${answers} where kept_until <= ${clock}`, [])
    const sent = await write(
      `insert into ${answers} (id, run, listener, parcel, kept_until)
      select cast(? as text), run, listener, cast(? as text), ${clock} + cast(? as double precision)
      from ${listening} where run = ? and kept_until > ${clock} returning id`,
      [id, JSON.stringify(parcel), 2 * (EARLY_MS + timeout), run],
    )
    if (sent.length === 0) return endedRun
    await ring()
    const delivery = await replyTo(id)
    await write(`delete from ${answers} where id = ?`, [id]).catch(() => {})
    return delivery
  }

  return {
    async open(runKey, receive) {
      const run = await nameOf(runKey)
      await write(`delete from ${listening} where kept_until <= ${clock}`, [])
      await write(
        `insert into ${listening} (run, listener, kept_until)
        select cast(? as text), cast(? as text), ${clock} + cast(? as double precision) where true
        on conflict (run) do update set listener = excluded.listener, kept_until = excluded.kept_until`,
        [run, listener, LEASE_MS],
      )
      runs.set(run, receive)
      looking ??= look()
      return async () => {
        if (runs.get(run) !== receive) return
        runs.delete(run)
        bell.ring()
        await write(`delete from ${listening} where run = ? and listener = ?`, [run, listener])
      }
    },

    deliver: (runKey, entries, context = {}) =>
      fairly(runKey, async () => send(await nameOf(runKey), entries, context)),

    async close() {
      isClosed = true
      runs.clear()
      bell.ring()
      await looking
      await stopping
      await write(`delete from ${listening} where listener = ?`, [listener]).catch(() => {})
    },
  }
}

/** Wakes all waiters. Waiting for future answers does not keep the process alive. */
function createBell() {
  const waiting = new Set<() => void>()
  return {
    ring: () => {
      for (const wake of [...waiting]) wake()
    },
    /** Whether it rang within the time. */
    rung: (ms: number, keepsAlive: boolean) =>
      new Promise<boolean>((resolve) => {
        const end = (isRung: boolean) => {
          clearTimeout(timer)
          waiting.delete(wake)
          resolve(isRung)
        }
        const wake = () => end(true)
        const timer = setTimeout(end, ms, false)
        if (!keepsAlive && typeof timer === 'object') timer.unref?.()
        waiting.add(wake)
      }),
  }
}
