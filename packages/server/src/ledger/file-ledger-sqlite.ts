import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CountersignError } from '@countersign/core'

type SqliteValue = string | number | null

/** What `node:sqlite` and the packages that follow it have in common, as far as it is needed here. */
export interface SqliteModule {
  readonly DatabaseSync: new (path: string) => SqliteConnection
}

interface SqliteConnection {
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

export interface SqliteStatement {
  run(...values: SqliteValue[]): unknown
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown[]
}

/** How long a process waits for another one that writes, in milliseconds. */
const BUSY_MS = 5000

/** SQLite of one file, as the ledger uses it. */
export interface Database {
  prepare(sql: string): SqliteStatement
  /** One transaction that writes, alone among all processes. What `work` throws undoes it. */
  write<Result>(work: () => Result): Result
  read<Result>(work: () => Result): Result
  close(): void
}

/**
 * Opens the file, which only its own user may read from now on, and makes it if there is none.
 *
 * @throws CountersignError `ledger-unavailable` where no SQLite can be had, or the file cannot be used; the message says why.
 */
export async function openDatabase(path: string, given: SqliteModule | undefined): Promise<Database> {
  const { DatabaseSync } = given ?? (await findSqlite())
  let connection: SqliteConnection | undefined
  try {
    await mkdir(dirname(path), { recursive: true })
    // SQLite gives its journals the mode of the file, so they are as private
    for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`])
      await keepPrivate(file, file === path)
    connection = new DatabaseSync(path)
    connection.exec(`pragma busy_timeout = ${BUSY_MS}`)
    return database(path, connection, await settle(connection))
  } catch (error) {
    connection?.close()
    throw unavailable(path, error)
  }
}

/** Makes a file that is missing where it is to be made, and closes one to others that they could read until now. */
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
    // Windows has no such modes
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
      // the next one may be there
    }
  }
  throw new CountersignError(
    'ledger-unavailable',
    'fileLedger needs SQLite. Node 22.13 and newer has it built in; for an older Node install it: npm install @photostructure/sqlite',
  )
}

// the name is kept from bundlers, some of which take `node:` off it: without it there is no such module
const builtInName: string = ['node', 'sqlite'].join(':')
const builtInSqlite = (): Promise<SqliteModule> => import(/* @vite-ignore */ builtInName)
const installedSqlite = (): Promise<SqliteModule> => import('@photostructure/sqlite')

type Journal = 'wal' | 'rollback'

/**
 * Sets how the file is written. SQLite before 3.51.3 can damage a file that several processes write by a write-ahead log
 * (https://sqlite.org/wal.html, the WAL-reset bug), so such a one uses the slower rollback journal. Waits while others hold the file.
 */
async function settle(connection: SqliteConnection): Promise<Journal> {
  const version = String(column(connection.prepare('select sqlite_version() as version').get(), 'version'))
  const wanted = isOlder(version, [3, 51, 3]) ? 'truncate' : 'wal'
  const journalOf = (pragma: string) => column(connection.prepare(pragma).get(), 'journal_mode')
  let mode: unknown
  try {
    mode = await untilFree(() => journalOf(`pragma journal_mode = ${wanted}`))
  } catch (error) {
    if (wanted === 'wal' || journalOf('pragma journal_mode') !== 'wal') throw error
    throw new Error(`SQLite ${version} ${TOO_OLD}`, { cause: error })
  }
  connection.exec('pragma synchronous = full')
  return mode === 'wal' ? 'wal' : 'rollback'
}

const TOO_OLD =
  'is too old to share this file with processes that have a newer one (3.51.3 and later). Use the same version for all of them.'

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map(Number)
  const at = than.findIndex((number, index) => parts[index] !== number)
  return at >= 0 && (parts[at] ?? 0) < (than[at] ?? 0)
}

/** A change of the journal does not wait for others by itself. */
async function untilFree<Result>(attempt: () => Result): Promise<Result> {
  for (const deadline = Date.now() + BUSY_MS; ; await pause(20)) {
    try {
      return attempt()
    } catch (error) {
      if (!/locked|busy/i.test(String(error)) || Date.now() > deadline) throw error
    }
  }
}

function database(path: string, connection: SqliteConnection, journal: Journal): Database {
  const journalMode = connection.prepare('pragma journal_mode')
  const guarded = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (error) {
      throw unavailable(path, error)
    }
  }
  // a process with a newer SQLite may have come since; this one must not write its log
  const checkJournal = () => {
    if (journal === 'rollback' && column(journalMode.get(), 'journal_mode') === 'wal') {
      throw new Error(`The SQLite of this process ${TOO_OLD}`)
    }
  }
  const transaction = <Result>(work: () => Result): Result => {
    connection.exec('begin immediate')
    try {
      checkJournal()
      const result = work()
      connection.exec('commit')
      return result
    } catch (error) {
      rollBack(connection)
      throw error
    }
  }
  return {
    prepare: (sql) => connection.prepare(sql),
    write: (work) => guarded(() => transaction(work)),
    read: guarded,
    close: () => connection.close(),
  }
}

function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec('rollback')
  } catch {
    // some failures have ended the transaction already
  }
}

function unavailable(path: string, error: unknown): CountersignError {
  if (error instanceof CountersignError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new CountersignError(
    'ledger-unavailable',
    `The ledger in ${path} cannot be used: ${reason}`,
    { path },
    error,
  )
}

/** A column of a row, whatever the row's prototype. */
export function column(row: unknown, name: string): unknown {
  return typeof row === 'object' && row !== null ? Reflect.get(row, name) : undefined
}
