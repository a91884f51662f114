import type { LoggedEvent, RunLog, RunWriter } from '@countersign/server'
import {
  checkOptions,
  milliseconds,
  type SqlSession,
  sqlClock,
  sqlNames,
  text,
  wholeNumber,
} from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase } from './database.js'
import { prefixOf } from './schema.js'

export interface SqlRunLogOptions {
  /** Prefix of the tables' names. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Milliseconds after which an operation without a response from the database fails. Default 5,000. */
  readonly timeout?: number | undefined
  /** Milliseconds that a run is kept after its end. Default 5 minutes. */
  readonly keepFor?: number | undefined
  /** Bytes of one run. A longer record is dropped whole: the run continues, but can't be rejoined. Default 4 Mi. */
  readonly maxRunSize?: number | undefined
  /**
   * Milliseconds after its server's last sign of life until an open run counts as ended. Default 30,000, whatever `approvals.lease` is: that
   * one frees the thread of such a run. The next run of its thread may still read it for `keepFor`.
   */
  readonly lease?: number | undefined
}

/** How many batches one poll reads. */
const BATCHES = 64
/** How often a reader polls: soon after the last event, then less and less often. Milliseconds. */
const LOOK_MS = { first: 50, last: 1000 }
/** How many runs start between two sweeps. */
const SWEEP_EVERY = 16

/** A run, as one poll found it. */
interface Look {
  readonly writer: string
  readonly isOpen: boolean
  /** The number of its last event. */
  readonly length: number
  readonly events: readonly LoggedEvent[]
}

/**
 * A run log in PostgreSQL or SQLite: what one server writes, others can read, even while it is written. Each `append` is one statement,
 * however many events it has. Readers poll at least once a second. The readers of a run whose server
 * is gone end when its lease expires. It needs the tables of `ensureSchema`.
 *
 * @throws CountersignError `invalid-option`
 */
export function sqlRunLog(connection: SqlConnection, options: SqlRunLogOptions = {}): RunLog {
  checkOptions('sqlRunLog', options, {
    prefix: text,
    timeout: milliseconds,
    keepFor: wholeNumber,
    maxRunSize: wholeNumber,
    lease: milliseconds,
  })
  const { keepFor = 5 * 60_000, lease = 30_000, maxRunSize = 4 * 1024 * 1024 } = options
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, options.timeout)
  const runs = `${prefix}runs`
  const said = `${prefix}events`
  const clock = sqlClock(connection.dialect)
  const { nameOf } = sqlNames(database)
  let begun = 0

  async function look(key: string, after: number, wait: boolean): Promise<Look | undefined> {
    const isKept = `r.kept_until > ${clock}${wait ? '' : " or r.state = 'open'"}`

    const rows = await database.session(({ query }) =>
      query(
        `select r.writer, r.state, e.n, e.events, (select max(n) from ${said} where writer = r.writer) as last
        from ${runs} r left join ${said} e on e.writer = r.writer and e.n > ?
        where r.name = ? and (${isKept}) order by e.n limit ${BATCHES}`,
        [after, key],
      ),
    )
    const [run] = rows
    if (run === undefined) return undefined
    const events = rows.flatMap((row) => (row.n == null ? [] : eventsOf(Number(row.n), String(row.events))))
    return {
      writer: String(run.writer),
      isOpen: wait && run.state === 'open',
      length: Number(run.last ?? 0),
      events: events.filter(({ n }) => n > after),
    }
  }

  /** Removes expired runs, and events that nobody can read any more. */
  async function sweep({ query }: SqlSession): Promise<void> {
    await query(
      `delete from ${runs} where kept_until <= ${clock} - case when state = 'open' then cast(? as double precision) else 0 end`,
      [keepFor],
    )
    await query(`delete from ${said} where writer not in (select writer from ${runs})`, [])
  }

  function writerOf(key: string, writer: string): RunWriter {
    const state = { n: 0, size: 0, isOver: false }
    const write = (text: string, values: readonly (string | number)[]) =>
      database.session(({ query }) => query(text, values))
    const isMine = `name = ? and writer = ? and state = 'open'`
    const signs = setInterval(
      () => {
        void write(`update ${runs} set kept_until = ${clock} + ? where ${isMine}`, [
          lease,
          key,
          writer,
        ]).catch(() => {})
      },
      Math.ceil(lease / 3),
    )
    if (typeof signs === 'object') signs.unref?.()
    const stop = () => {
      state.isOver = true
      clearInterval(signs)
    }
    return {
      async append(events) {
        if (events.length === 0 || state.isOver) return
        const text = JSON.stringify(events)
        state.n += events.length
        state.size += Buffer.byteLength(text)
        if (state.size > maxRunSize) {
          stop()
          await write(`delete from ${runs} where ${isMine}`, [key, writer])
          return
        }
        const written = await write(
          `insert into ${said} (writer, n, events) select cast(? as text), cast(? as bigint), cast(? as text)
          where exists (select 1 from ${runs} where ${isMine}) returning n`,
          [writer, state.n, text, key, writer],
        )
        if (written.length === 0) stop()
      },
      async end() {
        stop()
        const values = [keepFor, key, writer]
        await write(`update ${runs} set state = 'ended', kept_until = ${clock} + ? where ${isMine}`, values)
      },
    }
  }

  async function* follow(key: string, writer: string, after: number, signal: AbortSignal, wait: boolean) {
    let pause = LOOK_MS.first
    for (let read = after; !signal.aborted; ) {
      const found = await look(key, read, wait).catch(() => undefined)
      if (found === undefined || found.writer !== writer || signal.aborted) return
      if (found.events.length > 0) {
        read = found.events.at(-1)?.n ?? read
        pause = LOOK_MS.first
        yield found.events
      } else if (found.isOpen) {
        await rest(pause, signal)
        pause = Math.min(2 * pause, LOOK_MS.last)
      } else return
    }
  }

  return {
    async begin(runKey) {
      const key = await nameOf(runKey)
      const writer = globalThis.crypto.randomUUID()
      await database.session(async (session) => {
        if (++begun % SWEEP_EVERY === 1) await sweep(session)
        await session.query(
          `insert into ${runs} (name, writer, state, kept_until)
          select cast(? as text), cast(? as text), 'open', ${clock} + cast(? as double precision) where true
          on conflict (name) do update set writer = excluded.writer, state = 'open', kept_until = excluded.kept_until`,
          [key, writer, lease],
        )
      })
      return writerOf(key, writer)
    },
    async read(runKey, after, signal, { wait = true } = {}) {
      const key = await nameOf(runKey)
      const found = await look(key, after, wait)
      if (found === undefined || after > found.length) return undefined
      if (!found.isOpen && after === found.length) return undefined
      return follow(key, found.writer, after, signal, wait)
    },
  }
}

/** The events of a batch whose last event has the number `n`. */
function eventsOf(n: number, text: string): LoggedEvent[] {
  const events: string[] = JSON.parse(text)
  return events.map((data, index) => ({ n: n - events.length + 1 + index, data }))
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
