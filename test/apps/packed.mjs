// The packages of this repository as they would be published.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from '../../scripts/install.mjs'
import { packages, root } from '../../scripts/packages.mjs'
import { capture } from '../../scripts/run.mjs'

const ours = new Map(packages.map((one) => [one.manifest.name, one.manifest]))

/**
 * Packs all packages into a folder; they have to be built. Resolves to a function: the tarballs that a manifest needs, by package name.
 */
export async function packAll(folder) {
  const [command, ...args] = pnpm(
    '-r',
    '--filter',
    './packages/*',
    '--filter',
    '!@countersign/registry',
    'pack',
    '--pack-destination',
    folder,
  )
  const { status, output } = await capture(command, args, { cwd: root })
  if (status !== 0) throw new Error(`The packages could not be packed:\n${output}`)
  const files = readdirSync(folder)
  return (manifest) =>
    new Map(
      [...needed(manifest)].map((name) => {
        const file = `${name.slice(1).replace('/', '-')}-${ours.get(name).version}.tgz`
        if (!files.includes(file)) throw new Error(`${name} was not packed as ${file}.`)
        return [name, join(folder, file)]
      }),
    )
}

/** The names of our packages that a manifest depends on, and those that they depend on in turn. */
function needed({ dependencies = {}, devDependencies = {} }, found = new Set()) {
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    if (!ours.has(name) || found.has(name)) continue
    found.add(name)
    needed({ dependencies: ours.get(name).dependencies }, found)
  }
  return found
}
