import { addresses } from '@countersign/example-page/addresses'
import { expect, test } from 'vitest'
import { formatMail } from '../src/mail.js'

const sentAt = new Date(Date.UTC(2026, 1, 3, 4, 5, 6))
const format = (subject: string, body: string, to = 'ann@example.org') =>
  formatMail({ to, subject, body }, sentAt, 'id-1')

const bodyOf = (mail: string) => mail.slice(mail.indexOf('\r\n\r\n') + 4)

/** An independent reading of RFC 2045 6.7. */
function readQuotedPrintable(text: string): string {
  const bytes = text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

test('a mail has the headers that RFC 5322 asks for and CRLF line ends', () => {
  const mail = format('Hello', 'Line one\nLine two')
  expect(mail).toContain('Date: Tue, 03 Feb 2026 04:05:06 +0000\r\n')
  expect(mail).toContain('From: Countersign demo <demo@localhost>\r\n')
  expect(mail).toContain('To: ann@example.org\r\n')
  expect(mail).toContain('Message-ID: <id-1@countersign.localhost>\r\n')
  expect(mail.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
  expect(bodyOf(mail)).toBe('Line one\r\nLine two\r\n')
})

test('a subject cannot add a header', () => {
  const mail = format('Hi\r\nBcc: eve@example.org', 'x')
  expect(mail).toContain('Subject: Hi Bcc: eve@example.org\r\n')
  expect(mail).not.toMatch(/^Bcc:/m)
})

test('a subject beyond ASCII goes into encoded words of at most 75 characters', () => {
  const subject = 'Grüße aus dem Hafen 🚢 '.repeat(5)
  const header = /Subject: ((?:.|\r\n )*)/.exec(format(subject, 'x'))?.[1] ?? ''
  const words = header.split('\r\n ')
  expect(words.every((word) => word.length <= 75)).toBe(true)
  const read = words.map((word) =>
    Buffer.from(word.slice('=?utf-8?B?'.length, -2), 'base64').toString('utf8'),
  )
  expect(read.join('')).toBe(subject)
})

test('a body of any characters is kept and its lines stay short', () => {
  const body = `Übergrößen = teuer \ntrailing \t\n${'word '.repeat(60)}\n🚢${'x'.repeat(200)}\n.`
  const written = bodyOf(format('x', body))
  expect(written.split('\r\n').every((line) => line.length <= 76)).toBe(true)
  expect(readQuotedPrintable(written).replaceAll('\r\n', '\n')).toBe(`${body}\n`)
})

test('addresses are all good or none is', () => {
  expect(addresses('ann@example.org, bob@localhost')).toEqual(['ann@example.org', 'bob@localhost'])
  for (const bad of ['', 'ann', 'ann@', 'ann@x.org,', 'ann@x.org\r\nBcc: a@x.org', 'a b@x.org']) {
    expect(addresses(bad)).toEqual([])
  }
})
