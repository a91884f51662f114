import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'countersign-unbuilt-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs what `pnpm pack` and `pnpm publish` run first, on a package of this manifest. */
function prepack(manifest: object): { readonly status: number; readonly said: string } {
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  try {
    execFileSync(process.execPath, [join(root, 'scripts/check-built.mjs')], { cwd: folder, stdio: 'pipe' })
    return { status: 0, said: '' }
  } catch (error) {
    const { status, stderr } = Object(error)
    return { status, said: String(stderr) }
  }
}

test('F62 a package that is not built is not packed: the check fails, and says which files are missing and how to make them', () => {
  for (const { name, manifest } of packages) {
    expect([name, manifest.scripts.prepack]).toEqual([name, 'node ../../scripts/check-built.mjs'])
  }
  const manifest = JSON.parse(readFileSync(join(root, 'packages/server/package.json'), 'utf8'))
  const { status, said } = prepack(manifest)
  expect(status).toBe(1)
  expect(said).toContain('@countersign/server is not built')
  expect(said).toContain('./dist/index.js')
  expect(said).toContain('./dist/node.d.cts')
  expect(said).toContain('pnpm run build')
})

test('F62 a package that holds what its manifest offers is packed, and one of its files is enough to miss', () => {
  const manifest = {
    name: 'one',
    exports: { '.': { import: { types: './dist/a.d.ts', default: './dist/a.js' } } },
  }
  mkdirSync(join(folder, 'dist'))
  writeFileSync(join(folder, 'dist/a.js'), '')
  expect(prepack(manifest)).toMatchObject({
    status: 1,
    said: expect.stringContaining('./dist/a.d.ts is missing'),
  })
  writeFileSync(join(folder, 'dist/a.d.ts'), '')
  expect(prepack(manifest)).toEqual({ status: 0, said: '' })
})
