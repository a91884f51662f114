import { CountersignError } from '@countersign/core'
import type { SqlDatabase, SqlValue } from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'

/**
 * A connection with a time limit for each operation.
 *
 * @throws CountersignError `invalid-option` if it is not a connection.
 */
export function openDatabase(connection: SqlConnection, timeout = 5000): SqlDatabase {
  if (typeof connection?.query !== 'function' || !['postgres', 'sqlite'].includes(connection.dialect)) {
    throw new CountersignError(
      'invalid-option',
      'The first argument must be a connection: fromPg(pool), fromPostgres(sql), fromPGlite(database), fromLibsql(client), fromD1(database), fromSqlite(database), or one of your own.',
      { option: 'connection' },
    )
  }
  const numbered = connection.dialect === 'postgres'
  return {
    dialect: connection.dialect,
    session: (work) =>
      withDeadline(timeout, (stop, left) =>
        work({
          left,
          query: async (text: string, values: readonly SqlValue[]) => {
            stop.throwIfAborted()
            return connection.query(numbered ? withNumbers(text) : text, values)
          },
        }),
      ),
  }
}

/** In the statements used here, question marks are always parameters. */
function withNumbers(text: string): string {
  let count = 0
  return text.replace(/\?/g, () => `$${++count}`)
}

/** @throws CountersignError `ledger-unavailable` */
async function withDeadline<Result>(
  ms: number,
  work: (stop: AbortSignal, left: () => number) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController()
  const end = performance.now() + ms
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(outOfTime(ms))
      stop.abort(new Error('The time for this operation is over.'))
    }, ms)
  })
  try {
    return await Promise.race([work(stop.signal, () => end - performance.now()), late])
  } catch (error) {
    throw unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}

export function outOfTime(ms: number): CountersignError {
  return new CountersignError('ledger-unavailable', `The database cannot be used: no answer within ${ms} ms.`)
}

function unavailable(error: unknown): CountersignError {
  if (error instanceof CountersignError) return error
  const reason = error instanceof Error && error.message !== '' ? error.message : String(error)
  const hint = /does not exist|no such table/.test(reason) ? ' Call ensureSchema(connection) once.' : ''
  return new CountersignError(
    'ledger-unavailable',
    `The database cannot be used: ${reason}.${hint}`,
    {},
    error,
  )
}
