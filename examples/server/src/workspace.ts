import type { Stats } from 'node:fs'
import {
  appendFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { ToolError } from '@countersign/server'

/** A listed file. `path` is relative to the workspace, with forward slashes. */
interface FileEntry {
  path: string
  bytes: number
  /** Whole days since the file was last changed. */
  daysOld: number
}

interface FileLook {
  bytes: number
  changedAt: Date
}

interface SearchHit {
  path: string
  /** Counted from 1. */
  line: number
  text: string
}

/** The files that the demo may work on: one real folder and nothing outside it. */
export interface Workspace {
  list(folder: string): Promise<FileEntry[]>
  read(path: string): Promise<string>
  /** Size and time of the last change; undefined if there is nothing at `path`. */
  look(path: string): Promise<FileLook | undefined>
  search(text: string): Promise<SearchHit[]>
  /** Creates missing folders; returns whether a file of that name was replaced. */
  write(path: string, content: string): Promise<{ replaced: boolean }>
  /** Adds `text` at the end of a file, which it creates if there is none. */
  append(path: string, text: string): Promise<void>
  /** Fails if `to` exists. */
  move(from: string, to: string): Promise<void>
  delete(path: string): Promise<{ bytes: number }>
}

/** An error whose message tells the user why a file operation failed. */
export class WorkspaceError extends ToolError {}

const MAX_READ_BYTES = 256 * 1024
const MAX_HITS = 50
const DAY = 24 * 60 * 60 * 1000

/**
 * The segments of a path given by a model, checked before any file is touched: relative, forward slashes, no `..`,
 * no control characters. `''` and `'.'` are the workspace itself. Throws a {@link WorkspaceError} otherwise.
 */
export function pathSegments(path: string): string[] {
  const quoted = JSON.stringify(path)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not pass
  if (/[\u0000-\u001f\u007f]/.test(path)) throw new WorkspaceError(`${quoted} contains control characters.`)
  if (/^([\\/~]|[a-z]:)/i.test(path)) {
    throw new WorkspaceError(
      `${quoted} is not inside the workspace. Use a path relative to it, such as notes.txt.`,
    )
  }
  if (path.includes('\\')) throw new WorkspaceError(`${quoted} uses backslashes. Use forward slashes.`)
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..'))
    throw new WorkspaceError(`${quoted} leaves the workspace. Paths with ".." are refused.`)
  return segments
}

/** Opens the folder `root`, which must exist. `now` is the clock that ages are calculated with. */
export function openWorkspace(root: string, now: () => number = Date.now): Workspace {
  return {
    list: async (folder) => {
      const at = await existing(root, folder)
      if (!at.stats.isDirectory()) return [entryOf(at.path, at.stats, now())]
      return listFiles(at.absolute, at.path, now())
    },
    read: async (path) => {
      const at = await existingFile(root, path)
      if (at.stats.size > MAX_READ_BYTES) {
        throw new WorkspaceError(
          `${at.path} is larger than ${MAX_READ_BYTES / 1024} KB, too large to read here.`,
        )
      }
      return readFile(at.absolute, 'utf8')
    },
    look: async (path) => {
      const { stats } = await locate(root, path)
      return stats && { bytes: stats.size, changedAt: stats.mtime }
    },
    search: async (text) => searchFiles(root, await listFiles(await realpath(root), '', now()), text),
    write: async (path, content) => {
      const at = await writable(root, path)
      await writeFile(at.absolute, content)
      return { replaced: at.stats !== undefined }
    },
    append: async (path, text) => appendFile((await writable(root, path)).absolute, text),
    move: async (from, to) => {
      const source = await existingFile(root, from)
      const target = await locate(root, to)
      if (target.path === '') throw new WorkspaceError('The new name is missing.')
      if (target.stats) throw new WorkspaceError(`${target.path} exists already; nothing was moved.`)
      await mkdir(dirname(target.absolute), { recursive: true })
      await rename(source.absolute, target.absolute)
    },
    delete: async (path) => {
      const at = await existingFile(root, path)
      await rm(at.absolute)
      return { bytes: at.stats.size }
    },
  }
}

interface Located {
  path: string
  absolute: string
  stats: Stats | undefined
}

/** Walks down from the root one segment at a time, so that a symbolic link anywhere on the way is noticed before it is followed. */
async function locate(root: string, path: string): Promise<Located> {
  const segments = pathSegments(path)
  let absolute = await realpath(root)
  let stats: Stats | undefined = await lstat(absolute)
  for (const [index, segment] of segments.entries()) {
    if (stats && !stats.isDirectory()) {
      throw new WorkspaceError(`${segments.slice(0, index).join('/')} is a file, not a folder.`)
    }
    absolute = join(absolute, segment)
    stats = stats && (await statsOf(absolute))
    if (stats?.isSymbolicLink()) {
      throw new WorkspaceError(
        `${segments.slice(0, index + 1).join('/')} is a symbolic link; links are not followed.`,
      )
    }
  }
  return { path: segments.join('/'), absolute, stats }
}

async function existing(root: string, path: string): Promise<Located & { stats: Stats }> {
  const at = await locate(root, path)
  if (!at.stats) throw new WorkspaceError(`There is no ${at.path} in the workspace.`)
  return { ...at, stats: at.stats }
}

async function existingFile(root: string, path: string): Promise<Located & { stats: Stats }> {
  const at = await existing(root, path)
  if (!at.stats.isFile())
    throw new WorkspaceError(`${at.path === '' ? 'The workspace' : at.path} is a folder, not a file.`)
  return at
}

/** Where a file is, or will be: its folder exists. */
async function writable(root: string, path: string): Promise<Located> {
  const at = await locate(root, path)
  if (at.path === '') throw new WorkspaceError('A file needs a name.')
  if (at.stats && !at.stats.isFile())
    throw new WorkspaceError(`${at.path} is a folder; a file cannot replace it.`)
  await mkdir(dirname(at.absolute), { recursive: true })
  return at
}

async function statsOf(absolute: string): Promise<Stats | undefined> {
  try {
    return await lstat(absolute)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function entryOf(path: string, stats: Stats, now: number): FileEntry {
  const daysOld = Math.max(0, Math.floor((now - stats.mtimeMs) / DAY))
  return { path, bytes: stats.size, daysOld }
}

async function listFiles(absolute: string, path: string, now: number): Promise<FileEntry[]> {
  const found = await readdir(absolute, { withFileTypes: true, recursive: true })
  const files = found.filter((entry) => entry.isFile())
  const entries = files.map(async (entry) => {
    const file = join(entry.parentPath, entry.name)
    const relative = file
      .slice(absolute.length + 1)
      .split(sep)
      .join('/')
    return entryOf(path === '' ? relative : `${path}/${relative}`, await lstat(file), now)
  })
  return (await Promise.all(entries)).sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function searchFiles(root: string, files: readonly FileEntry[], text: string): Promise<SearchHit[]> {
  const wanted = text.toLowerCase()
  const hits: SearchHit[] = []
  for (const file of files) {
    if (file.bytes > MAX_READ_BYTES) continue
    const lines = (await readFile(join(root, file.path), 'utf8')).split('\n')
    for (const [index, line] of lines.entries()) {
      if (!line.toLowerCase().includes(wanted)) continue
      hits.push({ path: file.path, line: index + 1, text: line.trim().slice(0, 200) })
      if (hits.length === MAX_HITS) return hits
    }
  }
  return hits
}
