import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

test('the lock file names packages by their hashes and no address that they came from', () => {
  const lock = readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')
  expect(lock.match(/.*(?:https?:\/\/|tarball).*/g) ?? []).toEqual([])
})

test('pnpm is the only package manager that left a lock file', () => {
  const others = ['package-lock.json', 'npm-shrinkwrap.json', 'yarn.lock', 'bun.lock']
  expect(others.filter((name) => existsSync(join(root, name)))).toEqual([])
})
