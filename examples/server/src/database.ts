import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureSchema, fromSqlite, type SqlConnection } from '@countersign/sql'
import { DatabaseSync } from '@photostructure/sqlite'

/** Opens the SQLite file with everything that survives a restart, and creates what is missing. Only its own user may read it. */
export async function openDatabase(file: string): Promise<SqlConnection> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, '', { flag: 'a', mode: 0o600 })
  const database = new DatabaseSync(file)
  database.exec('pragma busy_timeout = 5000; pragma synchronous = full')
  await useWriteAheadLog(database)
  const connection = fromSqlite(database)
  await ensureSchema(connection)
  return connection
}

/** SQLite does not wait by itself here while another process that has just started does the same. */
async function useWriteAheadLog(database: InstanceType<typeof DatabaseSync>): Promise<void> {
  for (let tries = 100; ; tries--) {
    try {
      return database.exec('pragma journal_mode = wal')
    } catch (error) {
      if (tries === 0) throw error
      await sleep(50)
    }
  }
}
