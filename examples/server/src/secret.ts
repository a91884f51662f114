import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * The secret in `file`, created on first use: random, readable only by its owner. If several processes create
 * it at the same time, one wins and all get the same: the file gets its name only once it is complete.
 */
export async function secretIn(file: string): Promise<string> {
  const known = await read(file)
  if (known !== undefined) return known
  await mkdir(dirname(file), { recursive: true })
  const own = `${file}.${randomBytes(8).toString('hex')}`
  await writeFile(own, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' })
  try {
    await link(own, file)
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  } finally {
    await rm(own)
  }
  return readFile(file, 'utf8')
}

async function read(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
