import { appendFile, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

/** Access to the files of one folder and to nothing outside it. Paths are relative to the folder, with forward slashes. */
export interface Files {
  /** All files in a folder and its subfolders, sorted. Symbolic links are not followed. */
  list(folder: string): Promise<string[]>
  read(path: string): Promise<Buffer>
  append(path: string, text: string): Promise<void>
  remove(path: string): Promise<void>
}

/** Opens the folder `root`, which must exist. */
export async function openFiles(root: string): Promise<Files> {
  const top = await realpath(root)

  /** The resolved path of an existing file. Links are resolved before the check that it is inside the folder. */
  async function inside(path: string): Promise<string> {
    const real = await realpath(join(top, path)).catch(() => {
      // the system's error message would name folders outside
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
