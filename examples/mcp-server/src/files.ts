import { appendFile, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

/** The files of one folder, and no way out of it. Paths are relative to it, with forward slashes. */
export interface Files {
  /** All files in a folder and in the folders in it, sorted. Links are not followed. */
  list(folder: string): Promise<string[]>
  read(path: string): Promise<Buffer>
  append(path: string, text: string): Promise<void>
  remove(path: string): Promise<void>
}

/** Opens the folder `root`, which must exist. */
export async function openFiles(root: string): Promise<Files> {
  const top = await realpath(root)

  /** The real place of something that exists; links are resolved before it is looked where it lies. */
  async function inside(path: string): Promise<string> {
    const real = await realpath(join(top, path)).catch(() => {
      // the system's own words would name folders outside
      throw new Error(`There is no ${JSON.stringify(path)} in the workspace.`)
    })
    if (real === top || real.startsWith(top + sep)) return real
    throw new Error(`${JSON.stringify(path)} is not inside the workspace.`)
  }

  return {
    async list(folder) {
      const entries = await readdir(await inside(folder), { withFileTypes: true, recursive: true })
      const files = entries.filter((entry) => entry.isFile())
      return files.map((entry) => slashed(relative(top, join(entry.parentPath, entry.name)))).sort()
    },
    read: async (path) => readFile(await inside(path)),
    append: async (path, text) => appendFile(await inside(path), text),
    remove: async (path) => rm(await inside(path)),
  }
}

function slashed(path: string): string {
  return path.split(sep).join('/')
}
