import { CountersignError, type FilePart, isCountersignError } from '@countersign/core'

/** Where the bytes of a file are after an upload. */
export interface Uploaded {
  readonly url: string
  /** Default: the file's own type. */
  readonly mimeType?: string | undefined
}

/** Options of {@link readFiles}. */
export interface ReadFilesOptions {
  /**
   * Uploads one file and returns where it is; the message then holds the URL instead of the bytes. Call `progress` with a
   * fraction from 0 to 1.
   */
  upload?:
    | ((
        file: Blob,
        context: {
          readonly name: string | undefined
          readonly signal: AbortSignal | undefined
          progress(fraction: number): void
        },
      ) => Promise<Uploaded>)
    | undefined
  /** Progress of all files together, from 0 to 1: by `upload`, or by files read. */
  onProgress?: ((fraction: number) => void) | undefined
  /** Most bytes of one file. Default 1 MiB, or 100 MiB with `upload`: without it, the bytes are part of the message. */
  maxBytes?: number | undefined
  /** Most files. Default 10. */
  maxFiles?: number | undefined
  signal?: AbortSignal | undefined
}

/**
 * Makes the parts of a message from files: what an `<input type="file">`, a drop or the clipboard gives. They keep their order; the name
 * of a `File` becomes `metadata.name`.
 *
 * Rejects with `invalid-argument`, before anything is read or uploaded, if there are too many, one is too large, or one is no file
 * (`data.name`, `data.bytes`, `data.limit`). Rejects with `tool-failed` if an upload failed, a file could not be read, or `signal` was aborted.
 *
 * @example await sendMessage({ text, files: await readFiles(input.files) })
 */
export async function readFiles(
  files: Blob | Iterable<Blob> | ArrayLike<Blob> | null | undefined,
  options: ReadFilesOptions = {},
): Promise<readonly FilePart[]> {
  const { upload, onProgress, maxBytes = upload ? 100 * 2 ** 20 : 2 ** 20, maxFiles = 10, signal } = options
  const all = !files ? [] : files instanceof Blob ? [files] : Array.from(files)
  if (all.length > maxFiles)
    throw refused(`There are ${all.length} files; at most ${maxFiles} may be sent.`, { limit: maxFiles })
  for (const file of all) checkFile(file, maxBytes)
  const fractions = all.map(() => 0)
  const progress = (at: number, fraction: number) => {
    fractions[at] = Math.min(Math.max(fraction, 0), 1)
    onProgress?.(fractions.reduce((sum, one) => sum + one, 0) / all.length)
  }
  return Promise.all(
    all.map(async (file, at): Promise<FilePart> => {
      const name = nameOf(file)
      const media = mediaOf(file.type)
      const metadata = name === undefined ? {} : { metadata: { name } }
      try {
        signal?.throwIfAborted()
        const context = { name, signal, progress: (fraction: number) => progress(at, fraction) }
        const uploaded = await upload?.(file, context)
        const { url, mimeType = file.type } = uploaded ?? {}
        const source =
          url === undefined
            ? { type: 'data' as const, value: await base64(file), mimeType: mimeType || unknownType }
            : { type: 'url' as const, value: url, ...(mimeType && { mimeType }) }
        progress(at, 1)
        return { type: 'file', media, source, ...metadata }
      } catch (cause) {
        if (isCountersignError(cause)) throw cause
        const which = `The file ${JSON.stringify(name ?? 'without a name')}`
        const message = signal?.aborted
          ? `${which} was not sent, because \`signal\` was aborted (see \`cause\`).`
          : `${which} could not be ${upload ? 'uploaded' : 'read'} (see \`cause\`). Try again.`
        throw new CountersignError('tool-failed', message, { name }, cause)
      }
    }),
  )
}

const unknownType = 'application/octet-stream'

function checkFile(file: Blob, limit: number): void {
  if (!(file instanceof Blob)) throw refused('This is no File or Blob.', {})
  const name = nameOf(file)
  if (file.size <= limit) return
  const message = `The file ${JSON.stringify(name ?? 'without a name')} has ${file.size} bytes; at most ${limit} may be sent.`
  throw refused(message, { name, bytes: file.size, limit })
}

function refused(message: string, data: Readonly<Record<string, unknown>>): CountersignError {
  return new CountersignError('invalid-argument', message, data)
}

/** A `Blob` has no name. */
function nameOf(file: Blob): string | undefined {
  return 'name' in file && typeof file.name === 'string' && file.name !== '' ? file.name : undefined
}

function mediaOf(mimeType: string): FilePart['media'] {
  const [kind] = mimeType.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}

/** In pieces, because a call takes only so many arguments. */
async function base64(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let text = ''
  for (let at = 0; at < bytes.length; at += 0x8000)
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  return btoa(text)
}
