import { randomId } from '../encoding/ids.js'
import type { FileDatabase } from './file-ledger-sqlite.js'
import type { Grant } from './grant.js'
import type { ApprovalRecord, Owner } from './ledger.js'
import { approvalKey, approvalRow, grantKey, grantRow, joinState } from './row-format.js'
import type { Row } from './row-store.js'
import { ledgerTables, type SqlQuery, sqlNames } from './sql-rows.js'

/** The version of the tables, stored as `user_version`. Version 1 had a table for each kind of row. */
const VERSION = 2
const PAGE = 200

/** Creates the tables of a new file, or migrates an older version. Returns the ledger's id, which is stored in the file. */
export function prepareFile(database: FileDatabase, prefix: string, id: string | undefined): Promise<string> {
  return database.session((session) =>
    database.transaction(session, async () => {
      const { query } = session
      const version = Number((await query('pragma user_version', []))[0]?.user_version)
      if (version > VERSION) {
        throw new Error(
          'a newer version of Countersign has written it. Update this one, or use another file.',
        )
      }
      if (version < VERSION) {
        for (const statement of ledgerTables('sqlite', prefix)) await query(statement, [])
        const known = version === 1 ? await takeOver(database, query, prefix) : undefined
        await query(`insert into ${prefix}meta (name, value) values ('id', ?)`, [
          known ?? id ?? randomId('file_'),
        ])
        await query(`pragma user_version = ${VERSION}`, [])
      }
      const [found] = await query(`select value from ${prefix}meta where name = 'id'`, [])
      return String(found?.value)
    }),
  )
}

/** Migrates a file of version 1 and returns its id. A grant that was being made is lost: the next call needs approval. */
async function takeOver(database: FileDatabase, query: SqlQuery, prefix: string): Promise<string> {
  const insert = inserting(database, query, prefix)
  const [id] = await query(`select value from meta where name = 'id'`, [])
  const columns = await query(`select name from pragma_table_info('approvals')`, [])
  const words = columns.some(({ name }) => name === 'words') ? 'words' : 'null as words'
  await each(query, `record, state, ${words}`, 'approvals', async (row) => {
    const record: ApprovalRecord = JSON.parse(String(row.record))
    const state = joinState(String(row.state), row.words == null ? undefined : String(row.words))
    await insert(record.owner, approvalKey(record), approvalRow(record, state))
  })
  await each(query, 'body', 'grants', async ({ body }) => {
    const grant: Grant = JSON.parse(String(body))
    await insert(grant.owner, grantKey(grant), grantRow(grant))
  })
  await query(`insert into ${prefix}log (line) select entry from audit order by seq`, [])
  for (const table of ['meta', 'approvals', 'grants', 'revocations', 'audit'])
    await query(`drop table ${table}`, [])
  return String(id?.value)
}

async function each(
  query: SqlQuery,
  columns: string,
  table: string,
  take: (row: Readonly<Record<string, unknown>>) => Promise<void>,
): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await query(
      `select seq, ${columns} from ${table} where seq > ? order by seq limit ${PAGE}`,
      [after],
    )
    for (const row of rows) await take(row)
    if (rows.length < PAGE) return
    after = Number(rows.at(-1)?.seq)
  }
}

function inserting(database: FileDatabase, query: SqlQuery, prefix: string) {
  const { nameOf, ownerName } = sqlNames(database)
  return async (owner: Owner, key: string, row: Row) => {
    await query(
      `insert into ${prefix}rows (owner, key, version, list, tag, size, kept_until, record, state, words)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[await ownerName(owner), await nameOf(key), randomId('')],
        row.list === undefined ? null : await nameOf(row.list),
        row.tag === undefined ? null : await nameOf(row.tag),
        ...[Buffer.byteLength(row.record), row.keptUntil, row.record, row.state, row.words ?? null],
      ],
    )
  }
}
