import { randomId } from '../encoding/ids.js'
import { column, type Database } from './file-ledger-sqlite.js'

const VERSION = 1

/**
 * Keys are JSON texts of their parts: unambiguous, and whole also where a part is not well-formed Unicode, which SQLite would change.
 * `kept_until` is in milliseconds since the epoch. `words` comes last, so that what does not ask for it does not read it: SQLite reads a long
 * row from its beginning.
 */
const TABLES = [
  'create table meta (name text primary key, value) without rowid',
  `create table approvals (
    seq integer primary key, key text not null unique, thread text not null, open integer not null,
    kept_until real not null, record text not null, state text not null, words text)`,
  'create index approvals_open on approvals (thread, seq) where open = 1',
  'create index approvals_past on approvals (kept_until)',
  `create table grants (
    seq integer primary key, key text not null unique, owner text not null, thread text not null,
    kept_until real not null, body text not null)`,
  'create index grants_of_owner on grants (owner, thread, seq)',
  'create index grants_past on grants (kept_until)',
  'create table revocations (owner text primary key, revision integer not null) without rowid',
  'create table audit (seq integer primary key, entry text not null)',
]

/** The call that a record is about. */
export const CALL_OF_RECORD = `json_extract(record, '$.toolCallId')`

/** Makes the tables of a new file. Answers the ledger's id, which lives in the file. */
export function prepareTables(database: Database, id: string | undefined): Promise<string> {
  const version = () => Number(column(database.prepare('pragma user_version').get(), 'user_version'))
  return database.write(() => {
    if (version() > VERSION) {
      throw new Error('a newer version of Countersign has written it. Update this one, or use another file.')
    }
    if (version() === 0) create(database, id ?? randomId('file_'))
    // later than the tables: a file that has none gets them now
    if (!hasWords(database)) database.prepare('alter table approvals add column words text').run()
    database
      .prepare(`create index if not exists approvals_of_call on approvals (thread, ${CALL_OF_RECORD})`)
      .run()
    return String(column(database.prepare(`select value from meta where name = 'id'`).get(), 'value'))
  })
}

function hasWords(database: Database): boolean {
  const columns = database.prepare('select name from pragma_table_info(?)').all('approvals')
  return columns.some((one) => column(one, 'name') === 'words')
}

function create(database: Database, id: string): void {
  for (const statement of TABLES) database.prepare(statement).run()
  const insert = database.prepare('insert into meta (name, value) values (?, ?)')
  insert.run('id', id)
  insert.run('revision', 0)
  database.prepare(`pragma user_version = ${VERSION}`).run()
}
