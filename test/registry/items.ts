import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of what can be copied: a folder of files for each framework, and `base.css`. */
export const registryFolder = join(import.meta.dirname, '../../packages/registry')

interface Item {
  readonly name: string
  readonly dependencies: readonly string[]
  readonly files: readonly { readonly path: string; readonly type: string }[]
  /** What the item adds to the styles of the application, by selector. */
  readonly css: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** The items of the registry, as its `registry.json` lists them. */
export const items: readonly Item[] = JSON.parse(
  readFileSync(join(registryFolder, 'registry.json'), 'utf8'),
).items

/** A file of the registry. */
export const sourceOf = (path: string): string => readFileSync(join(registryFolder, path), 'utf8')

/** An item as the shadcn command reads it: with the text of its files. */
export function served({ files, ...item }: Item): object {
  const $schema = 'https://ui.shadcn.com/schema/registry-item.json'
  return { $schema, ...item, files: files.map((file) => ({ ...file, content: sourceOf(file.path) })) }
}
