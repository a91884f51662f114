import { addresses } from '@countersign/example-page/addresses'
import type { Workspace } from './workspace.js'

export interface Mail {
  /** One or more addresses, separated by commas. */
  to: string
  subject: string
  body: string
}

export interface SentMail extends Mail {
  /** The path of the mail, relative to the workspace. */
  file: string
}

const SENDER = 'Countersign demo <demo@localhost>'

/** Writes `mail` as an `.eml` file into `outbox/`, for any mail program to open. Nothing leaves this machine. */
export async function putIntoOutbox(
  workspace: Workspace,
  mail: Mail,
  now: Date,
  id: string,
): Promise<SentMail> {
  const file = `outbox/${now.toISOString().replace(/[:.]/g, '-')}-${slug(mail.subject)}.eml`
  await workspace.write(file, formatMail(mail, now, id))
  return { ...mail, file }
}

/**
 * A message in the format of RFC 5322 with a MIME text body (RFC 2045). `id` becomes its Message-ID. Line
 * breaks in the headers become spaces, so that a subject cannot add a header.
 */
export function formatMail(mail: Mail, now: Date, id: string): string {
  const headers = [
    `Date: ${now.toUTCString().replace('GMT', '+0000')}`,
    `From: ${SENDER}`,
    `To: ${addresses(mail.to).join(',\r\n ')}`,
    `Subject: ${encodeHeader(oneLine(mail.subject))}`,
    `Message-ID: <${id.replace(/[^\w.-]/g, '')}@countersign.localhost>`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: quoted-printable',
  ]
  return `${headers.join('\r\n')}\r\n\r\n${quotedPrintable(mail.body)}\r\n`
}

/** The mail as its reader will see it. */
export function renderMail({ to, subject, body }: Mail): string {
  const headers = [`From: ${SENDER}`, `To: ${addresses(to).join(', ')}`, `Subject: ${oneLine(subject)}`]
  return `${headers.join('\n')}\n\n${body}`
}

function oneLine(text: string): string {
  const lines = text.split(/[\r\n]+/)
  const trimmed = lines.map((line, index) => {
    const begun = index === 0 ? line : line.trimStart()
    return index === lines.length - 1 ? begun : begun.trimEnd()
  })
  return trimmed.join(' ')
}

function slug(text: string): string {
  const words = text.toLowerCase().match(/[a-z0-9]+/g) ?? ['mail']
  return words.join('-').slice(0, 40)
}

/** RFC 2047: non-ASCII text goes into encoded words of at most 75 characters, split between characters. */
function encodeHeader(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text) && !text.includes('=?') && text.length < 900) return text
  const words: string[] = []
  let bytes = 0
  let word = ''
  for (const character of text) {
    const size = Buffer.byteLength(character)
    if (bytes + size > 45) {
      words.push(word)
      word = ''
      bytes = 0
    }
    word += character
    bytes += size
  }
  return [...words, word].map((part) => `=?utf-8?B?${Buffer.from(part).toString('base64')}?=`).join('\r\n ')
}

/** RFC 2045 section 6.7: plain text stays readable, lines have at most 76 characters. */
function quotedPrintable(text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map(quotedPrintableLine)
    .join('\r\n')
}

function quotedPrintableLine(line: string): string {
  const bytes = Buffer.from(line)
  let out = ''
  let column = 0
  for (const [index, byte] of bytes.entries()) {
    const last = index === bytes.length - 1
    const plain = (byte > 32 && byte < 127 && byte !== 61) || ((byte === 32 || byte === 9) && !last)
    const piece = plain ? String.fromCharCode(byte) : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
    if (column + piece.length > 75) {
      out += '=\r\n'
      column = 0
    }
    out += piece
    column += piece.length
  }
  return out
}
