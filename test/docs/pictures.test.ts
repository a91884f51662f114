import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { animatedWebp, chunksOf, readAnimation } from '../../scripts/animated-webp.mjs'
import { allPages, readPage } from './markdown.js'

const images = join(import.meta.dirname, '../../docs/images')
const files = readdirSync(images).map((name) => ({ name, bytes: readFileSync(join(images, name)) }))

test('the animation is half a minute, has many frames, and is small enough for a page', () => {
  const file = readFileSync(join(images, 'conversation.webp'))
  const { width, height, durations } = readAnimation(file)
  const seconds = durations.reduce((sum, ms) => sum + ms, 0) / 1000
  expect([width, height]).toEqual([860, 640])
  expect(Math.abs(seconds - 30)).toBeLessThan(6)
  expect(durations.length).toBeGreaterThan(40)
  expect(file.length).toBeLessThan(1024 * 1024)
})

test('every picture is small, is shown on a page, and is described there', () => {
  const pages = allPages().map(readPage).join('\n')
  for (const { name, bytes } of files.filter(({ name }) => name.endsWith('.png'))) {
    expect([name, bytes.length < 120_000]).toEqual([name, true])
  }
  for (const { name } of files) expect([name, pages.includes(`images/${name}`)]).toEqual([name, true])
  const undescribed = [...pages.matchAll(/!\[\]\(|<img (?![^>]*alt="[^"]+")/g)]
  expect(undescribed).toEqual([])
})

test('an animation is a container of frames, each with its place, its time and its picture', () => {
  // the container alone: nothing here decodes the picture
  const picture = Buffer.concat([
    Buffer.from('RIFF\u0010\0\0\0WEBPVP8L\u0003\0\0\0', 'latin1'),
    Buffer.from([1, 2, 3, 0]),
  ])
  const frame = { x: 4, y: 2, width: 6, height: 8, ms: 70_000, webp: picture }
  const file = animatedWebp({ width: 300, height: 200, frames: [frame, { ...frame, ms: 40 }] })
  expect(file.readUInt32LE(4)).toBe(file.length - 8)
  expect(readAnimation(file)).toEqual({ width: 300, height: 200, durations: [70_000, 40] })
  const [, , first] = chunksOf(file)
  expect([...(first?.data.subarray(0, 12) ?? [])]).toEqual([2, 0, 0, 1, 0, 0, 5, 0, 0, 7, 0, 0])
  expect(first?.data.subarray(16).toString('latin1', 0, 4)).toBe('VP8L')
  expect(() => readAnimation(picture)).toThrow('no animation')
})
