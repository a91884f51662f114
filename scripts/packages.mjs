// The packages of this repository and their entries, as in their package.json.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..')

/** Every published package: its folder and its package.json. */
export const packages = readdirSync(join(root, 'packages'))
  .map((name) => ({ name, folder: join(root, 'packages', name) }))
  .map(({ name, folder }) => ({
    name,
    folder,
    manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')),
  }))
  .filter(({ manifest }) => !manifest.private)

/** The source file of every entry in a package's `exports`: `./node` is `src/node.ts`. */
export function entriesOf({ folder, manifest }) {
  const paths = Object.keys(manifest.exports).filter((path) => path !== './package.json')
  return paths.map((path) => join(folder, 'src', `${path === '.' ? 'index' : path.slice(2)}.ts`))
}

/** Whether a package can be loaded with `require`. */
export function offersCommonJs({ manifest }) {
  return 'require' in manifest.exports['.']
}
