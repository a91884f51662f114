import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fillOnce, restoreSamples } from '../src/samples.js'
import { openWorkspace, pathSegments, WorkspaceError } from '../src/workspace.js'

const now = Date.UTC(2026, 0, 31)
let outside: string
let root: string

beforeEach(async () => {
  outside = await realpath(await mkdtemp(join(tmpdir(), 'countersign-workspace-')))
  root = join(outside, 'workspace')
  await mkdir(root)
  await writeFile(join(outside, 'secret.txt'), 'secret')
})

afterEach(() => rm(outside, { recursive: true }))

const open = () => openWorkspace(root, () => now)

test.each([
  '../secret.txt',
  'a/../../secret.txt',
  '/etc/passwd',
  'C:\\x',
  '\\\\host\\x',
  '~/x',
  'a\\..\\x',
  'a\u0000b',
  'a\nb',
])('refuses the path %j', (path) => {
  expect(() => pathSegments(path)).toThrow(WorkspaceError)
})

test('a path is read as its parts', () => {
  expect(pathSegments('./a//b.txt')).toEqual(['a', 'b.txt'])
  expect(pathSegments('.')).toEqual([])
  expect(pathSegments('..notes')).toEqual(['..notes'])
})

test('no tool follows a symbolic link out of the workspace', async () => {
  await symlink(outside, join(root, 'way-out'))
  await symlink(join(outside, 'secret.txt'), join(root, 'secret'))
  const workspace = open()
  await expect(workspace.read('secret')).rejects.toThrow('symbolic link')
  await expect(workspace.read('way-out/secret.txt')).rejects.toThrow('symbolic link')
  await expect(workspace.write('secret', 'x')).rejects.toThrow('symbolic link')
  await expect(workspace.write('way-out/new.txt', 'x')).rejects.toThrow('symbolic link')
  await expect(workspace.delete('way-out/secret.txt')).rejects.toThrow('symbolic link')
  await expect(workspace.list('way-out')).rejects.toThrow('symbolic link')
  await writeFile(join(root, 'a.txt'), 'a')
  await expect(workspace.move('a.txt', 'way-out/a.txt')).rejects.toThrow('symbolic link')
  expect(await workspace.list('')).toEqual([expect.objectContaining({ path: 'a.txt' })])
  expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
})

test('lists the files of a folder with size and age', async () => {
  await open().write('logs/deep/a.log', 'four')
  const old = new Date(now - 3 * 24 * 60 * 60 * 1000)
  await utimes(join(root, 'logs/deep/a.log'), old, old)
  expect(await open().list('logs')).toEqual([{ path: 'logs/deep/a.log', bytes: 4, daysOld: 3 }])
})

test('writing says whether it replaced a file', async () => {
  expect(await open().write('new/a.txt', 'one')).toEqual({ replaced: false })
  expect(await open().write('new/a.txt', 'two')).toEqual({ replaced: true })
  expect(await open().read('new/a.txt')).toBe('two')
})

test('moving never replaces a file', async () => {
  await open().write('a.txt', 'a')
  await open().write('b.txt', 'b')
  await expect(open().move('a.txt', 'b.txt')).rejects.toThrow('exists already')
  await open().move('a.txt', 'c/a.txt')
  expect(await open().read('c/a.txt')).toBe('a')
})

test('errors say what is wrong in words for a person', async () => {
  await open().write('logs/a.log', 'a')
  await expect(open().read('nope.txt')).rejects.toThrow('There is no nope.txt in the workspace.')
  await expect(open().delete('logs')).rejects.toThrow('logs is a folder, not a file.')
  await expect(open().read('logs/a.log/b')).rejects.toThrow('logs/a.log is a file, not a folder.')
})

test('search finds lines in any case', async () => {
  await open().write('a.txt', 'one\nThe Crane\n')
  expect(await open().search('crane')).toEqual([{ path: 'a.txt', line: 2, text: 'The Crane' }])
})

test('the sample files are put into an empty folder once and restored on request only', async () => {
  await fillOnce(root, now)
  const logs = await open().list('logs')
  expect(logs.filter((file) => file.daysOld >= 14)).toHaveLength(3)
  await open().delete('notes.txt')
  await open().write('own.txt', 'mine')
  await fillOnce(root, now)
  await expect(open().read('notes.txt')).rejects.toThrow('There is no notes.txt')
  expect(await restoreSamples(root, now)).toEqual(['notes.txt'])
  expect(await open().read('own.txt')).toBe('mine')
})

test('F12 restoring the samples follows no symbolic link out of the folder', async () => {
  await symlink(join(outside, 'secret.txt'), join(root, 'notes.txt'))
  await expect(restoreSamples(root, now)).rejects.toThrow(WorkspaceError)
  expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
  await rm(join(root, 'notes.txt'))
  await mkdir(join(outside, 'elsewhere'))
  await symlink(join(outside, 'elsewhere'), join(root, 'logs'))
  await expect(restoreSamples(root, now)).rejects.toThrow(WorkspaceError)
  expect(await readdir(join(outside, 'elsewhere'))).toEqual([])
})
