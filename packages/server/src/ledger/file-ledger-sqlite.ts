import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CountersignError } from '@countersign/core'
import { nextTurn } from '../encoding/signals.js'
import type { SqlDatabase, SqlRow, SqlValue } from './sql-rows.js'

/** The API shared by `node:sqlite` and compatible packages, as far as it is needed here. */
export interface SqliteModule {
  readonly DatabaseSync: new (path: string) => SqliteConnection
}

interface SqliteConnection {
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

interface SqliteStatement {
  run(...values: SqlValue[]): unknown
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
}

/** How long an operation waits for another process that writes, in milliseconds. */
const BUSY_MS = 5000

/**
 * SQLite for one file, as the ledger uses it. Operations run in the order of their calls. While another process writes, an operation waits
 * asynchronously: SQLite's own waiting would block the whole process.
 */
export interface FileDatabase extends SqlDatabase {
  readonly transaction: NonNullable<SqlDatabase['transaction']>
  close(): void
}

/**
 * Opens the file, or creates it, and makes it readable only for its own user. It counts as full from `maxSize` bytes.
 *
 * @throws CountersignError `ledger-unavailable` if there is no SQLite, or the file can't be used; the message says why.
 */
export async function openDatabase(
  path: string,
  given: SqliteModule | undefined,
  maxSize: number,
): Promise<FileDatabase> {
  const { DatabaseSync } = given ?? (await findSqlite())
  let connection: SqliteConnection | undefined
  try {
    await mkdir(dirname(path), { recursive: true })
    // SQLite gives its journals the mode of the file, so they are private too.
    for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`])
      await keepPrivate(file, file === path)
    const opened = new DatabaseSync(path)
    connection = opened
    opened.exec('pragma busy_timeout = 0')
    const journal = await settle(opened)
    return await untilFree(() => database(path, opened, journal, maxSize))
  } catch (error) {
    connection?.close()
    throw unavailable(path, error)
  }
}

/** Removes access for other users. Creates the file first if `make` is set. */
async function keepPrivate(path: string, make: boolean): Promise<void> {
  let file: FileHandle
  try {
    file = await open(path, make ? 'a' : 'r', 0o600)
  } catch (error) {
    if (make) throw error
    return
  }
  try {
    const { mode } = await file.stat()
    // Windows has no such modes.
    if ((mode & 0o077) !== 0 && process.platform !== 'win32') await file.chmod(0o600)
  } finally {
    await file.close()
  }
}

/** @throws CountersignError `ledger-unavailable` */
async function findSqlite(): Promise<SqliteModule> {
  for (const load of [builtInSqlite, installedSqlite]) {
    try {
      return await load()
    } catch {
      // Try the next one.
    }
  }
  const message =
    'fileLedger needs SQLite. Node 22.13 and newer has it built in; for an older Node install it: npm install @photostructure/sqlite'
  throw new CountersignError('ledger-unavailable', message)
}

// Bundlers must not see the name: some strip `node:` from it, and the module has no name without it.
const builtInName: string = ['node', 'sqlite'].join(':')
const builtInSqlite = (): Promise<SqliteModule> => import(/* @vite-ignore */ builtInName)
const installedSqlite = (): Promise<SqliteModule> => import('@photostructure/sqlite')

type Journal = 'wal' | 'rollback'

/**
 * Chooses the journal mode. SQLite before 3.51.3 can damage a file that several processes write through a write-ahead log
 * (https://sqlite.org/wal.html, the WAL-reset bug), so older versions use the slower rollback journal. Waits while others hold the file.
 */
async function settle(connection: SqliteConnection): Promise<Journal> {
  const ask = () => connection.prepare('select sqlite_version() as version').get()
  const version = String(column(await untilFree(ask), 'version'))
  const wanted = isOlder(version, [3, 51, 3]) ? 'truncate' : 'wal'
  const journalOf = (pragma: string) => column(connection.prepare(pragma).get(), 'journal_mode')
  let mode: unknown
  try {
    mode = await untilFree(() => journalOf(`pragma journal_mode = ${wanted}`))
  } catch (error) {
    if (wanted === 'wal' || journalOf('pragma journal_mode') !== 'wal') throw error
    throw new Error(`SQLite ${version} ${TOO_OLD}`, { cause: error })
  }
  await untilFree(() => connection.exec('pragma synchronous = full'))
  // A transaction must lock the file only at its end, where it can wait, and never in the middle.
  await untilFree(() => connection.exec('pragma cache_spill = off'))
  return mode === 'wal' ? 'wal' : 'rollback'
}

const TOO_OLD =
  'is too old to share this file with processes that have a newer one (3.51.3 and later). Use the same version for all of them.'

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map(Number)
  const at = than.findIndex((number, index) => parts[index] !== number)
  return at >= 0 && (parts[at] ?? 0) < (than[at] ?? 0)
}

/** Retries while another process is in the way, for at most five seconds. The first attempt is made at once. */
async function untilFree<Result>(attempt: () => Result, since = performance.now()): Promise<Result> {
  for (let ms = 1; ; ms = Math.min(2 * ms, 20)) {
    try {
      return attempt()
    } catch (error) {
      if (!/locked|busy/i.test(String(error))) throw error
      if (performance.now() - since > BUSY_MS)
        throw new Error(`another process has kept it locked for ${BUSY_MS / 1000} seconds.`, { cause: error })
    }
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

function database(
  path: string,
  connection: SqliteConnection,
  journal: Journal,
  maxSize: number,
): FileDatabase {
  const journalMode = connection.prepare('pragma journal_mode')
  const statements = new Map<string, SqliteStatement>()
  let last: Promise<unknown> | undefined

  function prepared(text: string): SqliteStatement {
    const known = statements.get(text)
    if (known !== undefined) return known
    const statement = connection.prepare(text)
    // Statements differ only in the number of their parameters.
    if (statements.size < MAX_STATEMENTS) statements.set(text, statement)
    return statement
  }

  /** `since` is when it was called: operations that wait together time out together. */
  function inTurn<Result>(work: (since: number) => Promise<Result>): Promise<Result> {
    const since = performance.now()
    const turn = async () => {
      try {
        return await work(since)
      } catch (error) {
        throw unavailable(path, error)
      }
    }
    // A long queue of operations must not block the process.
    const result = last === undefined ? turn() : last.then(nextTurn).then(turn)
    const over = result.catch(() => {})
    last = over
    void over.then(() => {
      if (last === over) last = undefined
    })
    return result
  }

  // A process with a newer SQLite may have switched to the write-ahead log, which this one must not write.
  const checkJournal = () => {
    if (journal === 'rollback' && column(journalMode.get(), 'journal_mode') === 'wal') {
      throw new Error(`The SQLite of this process ${TOO_OLD}`)
    }
  }
  return {
    dialect: 'sqlite',
    hash: (text) => createHash('sha256').update(text).digest('base64url'),
    session: (work) =>
      inTurn((since) =>
        work({
          query: (text, values) => untilFree(() => rowsOf(prepared(text), values), since),
          left: () => since + BUSY_MS - performance.now(),
        }),
      ),
    transaction: async ({ left }, work) => {
      const since = performance.now() + left() - BUSY_MS
      await untilFree(() => connection.exec('begin immediate'), since)
      try {
        checkJournal()
        const result = await work()
        await untilFree(() => connection.exec('commit'), since)
        return result
      } catch (error) {
        rollBack(connection)
        throw error
      }
    },
    isFull: async ({ query }) => {
      const [sizes] = await query(SIZES, [])
      const [pages, free, size] = [sizes?.pages, sizes?.free, sizes?.size].map(Number)
      return ((pages ?? 0) - (free ?? 0)) * (size ?? 0) >= maxSize
    },
    close: () => connection.close(),
  }
}

const MAX_STATEMENTS = 64

const SIZES =
  'select p.page_count as pages, f.freelist_count as free, s.page_size as size from pragma_page_count p, pragma_freelist_count f, pragma_page_size s'

function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec('rollback')
  } catch {
    // Some failures have already ended the transaction.
  }
}

function unavailable(path: string, error: unknown): CountersignError {
  if (error instanceof CountersignError) return error
  const reason = error instanceof Error ? error.message : String(error)
  const message = `The ledger in ${path} cannot be used: ${reason}`
  return new CountersignError('ledger-unavailable', message, { path }, error)
}

function rowsOf(statement: SqliteStatement, values: readonly SqlValue[]): readonly SqlRow[] {
  return statement.all(...values).filter(isRow)
}

function isRow(row: unknown): row is SqlRow {
  return typeof row === 'object' && row !== null
}

function column(row: unknown, name: string): unknown {
  return isRow(row) ? row[name] : undefined
}
