import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'

const root = join(import.meta.dirname, '..')
const names = packages.map(({ name }) => name)

interface Manifest {
  readonly version?: string
  readonly repository?: unknown
  readonly homepage?: string
  readonly publishConfig?: unknown
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

function changesetsIn(folder: string): readonly string[] {
  return readdirSync(join(folder, '.changeset')).filter((file) => file.endsWith('.md'))
}

/** The manifests, changesets and changelogs of this repository, in a folder that a release may change. */
function copyForRelease(): string {
  const copy = mkdtempSync(join(tmpdir(), 'countersign-release-'))
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
  const take = (file: string) => existsSync(join(root, file)) && cpSync(join(root, file), join(copy, file))
  const workspaces = ['packages', 'examples'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  )
  for (const file of ['.changeset', 'package.json', 'pnpm-workspace.yaml', 'pnpm-lock.yaml'])
    cpSync(join(root, file), join(copy, file), { recursive: true })
  for (const folder of [...workspaces, 'scripts', 'test']) {
    take(`${folder}/package.json`)
    take(`${folder}/CHANGELOG.md`)
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction')
  return copy
}

function release(copy: string): void {
  const command = join(root, 'node_modules/@changesets/cli/bin.js')
  execFileSync(process.execPath, [command, 'version'], { cwd: copy, stdio: 'pipe' })
}

test('the first release has one line in each changelog, and the next one has its changes', () => {
  const copy = copyForRelease()
  const { version } = readManifest(join(copy, 'packages/core'))
  if (version !== '0.0.0') return
  release(copy)
  const changelogOf = (name: string) => readFileSync(join(copy, 'packages', name, 'CHANGELOG.md'), 'utf8')
  for (const name of names) {
    const lines = changelogOf(name)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    expect([name, lines]).toEqual([name, ['- First release.']])
  }
  const next = "---\n'@countersign/core': minor\n---\n\nNames are shorter.\n"
  writeFileSync(join(copy, '.changeset/next.md'), next)
  release(copy)
  expect(changelogOf('core')).toContain('## 0.2.0\n\n### Minor Changes\n\n- Names are shorter.\n\n## 0.1.0')
})

test('a release gives all packages one version, at least 0.1.0, and each its changelog', () => {
  const copy = copyForRelease()
  if (changesetsIn(copy).length > 0) release(copy)
  expect(changesetsIn(copy)).toEqual([])
  const folders = names.map((name) => join(copy, 'packages', name))
  const [version = '', ...others] = new Set(folders.map((folder) => readManifest(folder).version))
  expect(others).toEqual([])
  expect(version).toMatch(/^(0\.[1-9]|[1-9])/)
  for (const [index, folder] of folders.entries()) {
    const begin = `# @countersign/${names[index]}\n\n## ${version}\n`
    expect(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8').slice(0, begin.length)).toBe(begin)
  }
})

test('every package says where its sources are, and is published to everyone with provenance', () => {
  for (const name of names) {
    expect(readManifest(join(root, 'packages', name))).toMatchObject({
      repository: {
        type: 'git',
        url: 'git+https://github.com/OWNER/countersign.git',
        directory: `packages/${name}`,
      },
      homepage: `https://github.com/OWNER/countersign/tree/main/packages/${name}#readme`,
      bugs: 'https://github.com/OWNER/countersign/issues',
      publishConfig: { access: 'public', provenance: true },
    })
  }
})
