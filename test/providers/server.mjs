import { createServer } from 'node:http'

/**
 * Serves one recorded body on loopback, in writes of `writeSize` bytes, and keeps the request bodies that came in.
 *
 * @param {{ body: Buffer | AsyncIterable<Buffer | string>, status?: number, contentType?: string, writeSize?: number, ending?: 'clean' | 'destroyed' }} recording
 * `ending`: whether the connection is closed or torn down after the last byte.
 */
export async function serveRecording({ body, status = 200, contentType, writeSize, ending }) {
  return serveRecordings([{ body, status, contentType, writeSize, ending }])
}

/** The same for several bodies: request n gets recording n, and the last one from then on. */
export async function serveRecordings(recordings) {
  const requests = []
  const server = createServer((request, response) => {
    const recording = recordings[Math.min(requests.length, recordings.length - 1)]
    const entry = { url: request.url, headers: request.headers, body: undefined }
    requests.push(entry)
    readBody(request)
      .then((text) => {
        entry.body = text === '' ? undefined : JSON.parse(text)
        return answer(response, recording)
      })
      .catch(() => response.destroy())
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    requests,
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  }
}

async function readBody(request) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

async function answer(response, { body, status = 200, contentType, writeSize = Infinity, ending = 'clean' }) {
  response.socket?.setNoDelay(true)
  response.writeHead(status, { 'content-type': contentType ?? 'text/event-stream; charset=utf-8' })
  if (!Buffer.isBuffer(body)) {
    for await (const piece of body) {
      if (response.destroyed) return
      response.write(piece)
    }
    response.end()
    return
  }
  // a reader gets what was written since it last looked: it looks after each write, but in long bodies, for time, after every eighth
  const together = body.length > 16_384 ? 8 : 1
  for (let at = 0, writes = 1; at < body.length; at += writeSize, writes++) {
    if (response.destroyed) return
    response.write(body.subarray(at, at + writeSize))
    if (writes % together === 0) await new Promise(setImmediate)
  }
  if (ending === 'clean') response.end()
  // what was written first has to leave
  else setTimeout(() => response.destroy(), 10)
}
