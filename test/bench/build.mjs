import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from '../../scripts/build-packages.mjs'
import { packages } from '../../scripts/packages.mjs'

/** What is measured. */
const measured = ['core', 'client', 'server', 'react', 'solid', 'vue', 'svelte']

/** Builds the JavaScript of what has changed since it was built. */
export async function buildChanged(log) {
  let changed = false
  for (const one of packages.filter(({ name }) => measured.includes(name))) {
    const built = newest(join(one.folder, 'dist'))
    if (newest(join(one.folder, 'src')) <= built) continue
    changed = true
    log(`building ${one.name}`)
    await buildPackage(one)
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
