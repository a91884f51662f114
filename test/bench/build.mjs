import { execFile } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const packages = join(import.meta.dirname, '../../packages')
const tsup = join(dirname(createRequire(import.meta.url).resolve('tsup/package.json')), 'dist/cli-default.js')

/** What is measured, each after what it imports. */
const order = ['core', 'client', 'server', 'react', 'solid', 'vue', 'svelte']

/** Builds what has changed since it was built, as its package does. */
export async function buildChanged(log) {
  let changed = false
  for (const name of order) {
    const folder = join(packages, name)
    const built = newest(join(folder, 'dist'))
    if (newest(join(folder, 'src')) <= built) continue
    changed = true
    log(`building ${name}`)
    await promisify(execFile)(process.execPath, [tsup], { cwd: folder })
  }
  return changed
}

function newest(folder) {
  let latest = 0
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
      if (entry.isFile())
        latest = Math.max(latest, statSync(join(entry.parentPath ?? entry.path, entry.name)).mtimeMs)
    }
  } catch (cause) {
    if (cause.code !== 'ENOENT') throw cause
  }
  return latest
}
