// Writes the declarations of the packages.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { offersCommonJs, packages, root } from './packages.mjs'
import { tsc } from './tsc.mjs'

/**
 * Declarations for the CommonJS files import each other with the extension .cjs. They omit `declare global`: a program may load both
 * declarations, and a global name must not get two types.
 */
const asCommonJs = (text) =>
  text
    .replace(/((?:from |import\()['"]\.{1,2}\/[^'"]*)\.js(?=['"])/g, '$1.cjs')
    .replace(/^declare global \{\n(?: .*\n)*\}\n/gm, '')

const written = join(root, '.countersign/types')

/** `packages/core/src/json/reader.ts` is declared in `packages/core/dist/json/reader.d.ts`. */
function place(one) {
  const declarations = join(written, one.name, 'src')
  if (!existsSync(declarations)) return
  for (const file of readdirSync(declarations, { recursive: true })) {
    if (!file.endsWith('.d.ts')) continue
    const text = readFileSync(join(declarations, file), 'utf8')
    const path = join(one.folder, 'dist', file).replace(/\.d\.ts$/, '')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.d.ts`, text)
    if (offersCommonJs(one)) writeFileSync(`${path}.d.cts`, asCommonJs(text))
  }
}

/** Resolves to what the compiler says against them; to an empty text if nothing. */
export async function writeDeclarations() {
  rmSync(written, { recursive: true, force: true })
  const { status, output } = await tsc('-p', 'tsconfig.declarations.json')
  for (const one of packages) place(one)
  return status === 0 ? '' : output
}
