import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../examples/registry')

interface Item {
  readonly name: string
  readonly dependencies: readonly string[]
  readonly files: readonly { readonly path: string; readonly type: string }[]
}

/** The items of the registry, as its `registry.json` lists them. */
export const items: readonly Item[] = JSON.parse(readFileSync(join(folder, 'registry.json'), 'utf8')).items

/** A file of the registry. */
export const sourceOf = (path: string): string => readFileSync(join(folder, path), 'utf8')

/** An item as the shadcn command reads it: with the text of its files. */
export function served({ files, ...item }: Item): object {
  const $schema = 'https://ui.shadcn.com/schema/registry-item.json'
  return { $schema, ...item, files: files.map((file) => ({ ...file, content: sourceOf(file.path) })) }
}
