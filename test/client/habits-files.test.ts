import { readFiles } from '@countersign/client/files'
import { text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { openChat } from './open-chat.js'

const photo = new File(['photo'], 'cat.png', { type: 'image/png' })
const notes = new File(['notes'], 'notes.txt', { type: 'text/plain' })

test('H9 File and Blob become parts with type, name and bytes, in order', async () => {
  const parts = await readFiles([photo, new Blob(['x']), notes])
  expect(parts).toEqual([
    {
      type: 'file',
      media: 'image',
      source: { type: 'data', value: btoa('photo'), mimeType: 'image/png' },
      metadata: { name: 'cat.png' },
    },
    {
      type: 'file',
      media: 'document',
      source: { type: 'data', value: btoa('x'), mimeType: 'application/octet-stream' },
    },
    {
      type: 'file',
      media: 'document',
      source: { type: 'data', value: btoa('notes'), mimeType: 'text/plain' },
      metadata: { name: 'notes.txt' },
    },
  ])
})

test('H9 a FileList, one file or nothing will do, and the parts can be sent', async () => {
  const list: ArrayLike<File> = { 0: photo, length: 1 }
  expect(await readFiles(null)).toEqual([])
  expect(await readFiles(photo)).toEqual(await readFiles(list))
  const { person, server } = await openChat('sse', [[text('A cat.')]])
  expect(await person.sendMessage({ text: 'what?', files: await readFiles(list) })).toEqual({
    status: 'sent',
  })
  expect(server.requests[0]?.messages[0]).toMatchObject({
    content: [{ type: 'text' }, { type: 'image', source: { mimeType: 'image/png' } }],
  })
})

test('H9 upload gives the URL that the message holds, and reports progress of all files', async () => {
  const seen: number[] = []
  const parts = await readFiles([photo, notes], {
    upload: async (_, { name, progress }) => {
      progress(0.5)
      return { url: `https://files.example/${name}` }
    },
    onProgress: (fraction) => seen.push(fraction),
  })
  expect(parts.map(({ source }) => source)).toEqual([
    { type: 'url', value: 'https://files.example/cat.png', mimeType: 'image/png' },
    { type: 'url', value: 'https://files.example/notes.txt', mimeType: 'text/plain' },
  ])
  expect(seen).toEqual([0.25, 0.5, 0.75, 1])
})

test('H9 a file beyond the limit is refused by name before anything is uploaded', async () => {
  const uploads: unknown[] = []
  const upload = async (file: Blob) => {
    uploads.push(file)
    return { url: 'https://files.example/' }
  }
  await expect(readFiles([notes, photo], { upload, maxBytes: 4 })).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('notes.txt'),
    data: { bytes: 5, limit: 4 },
  })
  await expect(readFiles([notes, photo], { upload, maxFiles: 1 })).rejects.toMatchObject({
    data: { limit: 1 },
  })
  expect(uploads).toEqual([])
})

test('H9 a failed upload names its file and keeps the cause', async () => {
  const cause = new Error('offline')
  await expect(readFiles(photo, { upload: () => Promise.reject(cause) })).rejects.toMatchObject({
    code: 'tool-failed',
    message: expect.stringContaining('cat.png'),
    cause,
  })
})

test('H9 files that the page has stopped are not said to have failed', async () => {
  const stopped = new AbortController()
  const upload = async (_: Blob, { signal }: { signal: AbortSignal | undefined }) => {
    stopped.abort()
    signal?.throwIfAborted()
    return { url: '/files/1' }
  }
  const { signal } = stopped
  for (const options of [{ signal, upload }, { signal }]) {
    const refused = await readFiles(photo, options).catch((error: unknown) => error)
    expect(refused).toMatchObject({
      code: 'tool-failed',
      message: 'The file "cat.png" was not sent, because `signal` was aborted (see `cause`).',
      cause: signal.reason,
    })
  }
})
