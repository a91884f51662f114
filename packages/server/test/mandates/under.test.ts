import { isCountersignError } from '@countersign/core'
import { meetsConstraints } from '@countersign/server'
import { expect, test } from 'vitest'
import { isUnderByForce } from './brute-force.js'

type Case = readonly [base: string, value: string, isUnder: boolean, reason: string]

const SRV = '/srv/data'
const API = 'https://example.org/v1'

const cases: readonly Case[] = [
  // paths that are below
  [SRV, '/srv/data/a', true, 'a file in the folder'],
  [SRV, '/srv/data/a/b/c.txt', true, 'a file in a folder of it'],
  [SRV, '/srv/data/a/', true, 'a slash at the end only says that it is a folder'],
  [SRV, '/srv/data//a', true, 'in a path, two slashes are one'],
  [SRV, '/srv//data/a', true, 'also before the base ends'],
  [SRV, '/srv/data/./a', true, 'a dot changes nothing'],
  [SRV, '/srv/./data/a', true, 'also before the base ends'],
  [SRV, '/srv/data/.env', true, 'a name may begin with one dot'],
  [SRV, '/srv/data/a b', true, 'a space within a name'],
  [SRV, '/srv/data/é', true, 'a composed letter'],
  [SRV, '/srv/data/100%', true, 'a percent sign that is no escape'],
  [SRV, '/srv/data/%zz', true, 'nor is this one'],
  [SRV, '/srv/data/a:b', true, 'a colon within a name'],
  [SRV, '/srv/data/~', true, 'a tilde that does not begin the path'],
  [SRV, '/srv/data/\u{1f600}', true, 'a character beyond the basic plane'],
  ['/srv/data/', '/srv/data/a', true, 'the slash at the end of a base is ignored'],
  ['/srv//./data', '/srv/data/a', true, 'a base is normalised like a value'],
  ['/', '/etc', true, 'everything absolute is below the root'],
  ['.', 'a/b', true, 'everything relative is below the working directory'],
  ['.', './a', true, 'the same, written out'],
  ['src', 'src/a.ts', true, 'relative paths are below relative ones'],
  ['./src', 'src/a.ts', true, 'a dot at the start of the base changes nothing'],
  ['C:/data', 'C:/data/a', true, 'a drive is the first segment'],
  // paths that are not
  [SRV, SRV, false, 'the base is not below itself: to delete it would delete everything'],
  [SRV, '/srv/data/', false, 'nor with a slash'],
  [SRV, '/srv/data/.', false, 'nor with a dot'],
  [SRV, '/srv', false, 'above'],
  [SRV, '/srv/database', false, 'only the text begins alike'],
  [SRV, '/srv/data.old/a', false, 'another folder'],
  [SRV, 'srv/data/a', false, 'a relative path depends on the working directory'],
  ['srv/data', '/srv/data/a', false, 'an absolute path is not below a relative one'],
  ['.', '/etc/passwd', false, 'nor below the working directory'],
  ['/', 'etc', false, 'a relative path is not below the root'],
  [SRV, '/srv/data/../etc', false, 'it leads out'],
  [SRV, '/srv/data/a/../../../etc/passwd', false, 'it leads out later'],
  [SRV, '/srv/data/link/../a', false, 'if link is a symbolic link, the parent is elsewhere'],
  [SRV, '/srv/x/../data/a', false, 'the same before the base'],
  [SRV, '/srv/data/..', false, 'the parent'],
  [SRV, '/srv/data/...', false, 'some systems read three dots as two, or as a name'],
  [SRV, '/srv/data/..a', false, 'two dots at the start of a name are never taken for a name'],
  [SRV, '/srv/data/.. /a', false, 'Windows drops the space, and two dots remain'],
  [SRV, '/srv/data/..;/a', false, 'some servers drop what follows a semicolon'],
  [SRV, '/srv/data/ ..;/a', false, 'and the space before the dots'],
  [SRV, '/srv/data/.. ;a=b/a', false, 'or after them'],
  [SRV, '/srv/data/.;/a', false, 'one dot'],
  [SRV, '/srv/data/ .;x/a', false, 'one dot with a space'],
  [SRV, '/srv/data/ . . ;/a', false, 'dots and spaces'],
  [SRV, '/srv/data/;x/a', false, 'nothing remains'],
  [SRV, '/srv/data/ ;x/a', false, 'a space remains'],
  [SRV, '/srv/data/a;v=1', true, 'a name remains'],
  [SRV, '/srv/data/a.b;v=1', true, 'a name with a dot'],
  ...[
    '\u034f',
    '\u115f',
    '\u1160',
    '\u17b4',
    '\u17b5',
    '\u180b',
    '\u3164',
    '\ufe00',
    '\ufe0f',
    '\u{e0041}',
    '\u{e0100}',
  ].flatMap((letter): Case[] => [
    [SRV, `/srv/data/a${letter}`, false, 'a character that programs may leave out'],
    [SRV, `/srv/data/.${letter}./a`, false, 'between two dots'],
    [API, `${API}/a${letter}`, false, 'in a URL'],
    [API, `${API}/a${encodeURIComponent(letter)}`, false, 'escaped'],
  ]),
  [SRV, '/srv/data/a.', false, 'Windows drops the dot: another name'],
  [SRV, '/srv/data/a ', false, 'Windows drops the space: another name'],
  [SRV, '/srv/data./a', false, 'a dot at the end of the folder'],
  [SRV, '/srv/data\\a', false, 'a backslash separates on some systems'],
  [SRV, '/srv/data/..\\..\\etc', false, 'and leads out there'],
  [SRV, '\\srv\\data\\a', false, 'also at the start'],
  [SRV, '//srv/data/a', false, 'two slashes at the start name a host on some systems'],
  ['/', '//host/share', false, 'even below the root'],
  [SRV, '/srv/data/%2e%2e/etc', false, 'an escape that the tool may resolve'],
  [SRV, '/srv/data/%252e%252e/etc', false, 'one that two tools may resolve'],
  [SRV, '/srv/data/a%2f..%2fb', false, 'an escaped slash'],
  [SRV, '/srv/data/a%00.txt', false, 'an escaped end of text'],
  [SRV, '/srv/data/a\u0000.txt', false, 'an end of text: some systems stop reading there'],
  [SRV, '/srv/data/a\nb', false, 'a line break'],
  [SRV, '/srv/data/\u202etxt.a', false, 'an invisible character that reverses what is shown'],
  [SRV, '/srv/data/\u200ba', false, 'an invisible space'],
  [SRV, '/srv/data/\ufeffa', false, 'a byte order mark'],
  [SRV, '/srv/data/\ud800', false, 'half a character'],
  [SRV, '/srv/data/e\u0301', false, 'a decomposed letter: some systems compose it, others do not'],
  [SRV, '/srv/data/\uff0e\uff0e/etc', false, 'full-width dots, which some tools turn into dots'],
  [SRV, '/srv/data\uff0fa', false, 'a full-width slash'],
  [SRV, '/srv/data/\u2024\u2024/etc', false, 'dot leaders, which become dots'],
  [SRV, '/srv/data/ﬁle', false, 'a ligature, which becomes two letters'],
  [SRV, '/SRV/data/a', false, 'another case is another folder on many systems'],
  [SRV, '/srv/Data/a', false, 'also in the last segment'],
  [SRV, 'file:///srv/data/a', false, 'a URL is not a path'],
  ['.', 'C:/Windows', false, 'a drive is a root of its own'],
  ['.', 'file:/etc/passwd', false, 'and so is a scheme'],
  ['.', '~/.ssh/id', false, 'a shell replaces the tilde'],
  ['.', '../a', false, 'it leads out'],
  ['.', '', false, 'nothing'],
  [SRV, '', false, 'nothing'],
  [SRV, ' /srv/data/a', false, 'a space before the root'],
  [SRV, `/srv/data/${'a'.repeat(8192)}`, false, 'too long'],
  // URLs that are below
  [API, 'https://example.org/v1/a', true, 'a resource'],
  [API, 'https://example.org/v1/a/', true, 'with a slash at the end'],
  [API, 'https://example.org/v1/a?b=/../c#d', true, 'what follows the path is for the resource'],
  [API, 'https://example.org/v1/a%20b', true, 'an escaped space'],
  [API, 'https://example.org/v1/%C3%A9', true, 'an escaped letter beyond ASCII'],
  [API, 'https://example.org/v1/%c3%a9', true, 'the same in lower case'],
  [API, 'https://example.org/v1/é', true, 'the same without an escape'],
  ['https://example.org', 'https://example.org/a', true, 'a host without a path'],
  ['https://example.org/', 'https://example.org/a', true, 'the same with its slash'],
  ['https://example.org:8443/v1', 'https://example.org:8443/v1/a', true, 'a port'],
  ['https://xn--mller-kva.de', 'https://xn--mller-kva.de/a', true, 'a host in punycode'],
  ['http://[::1]/v1', 'http://[::1]/v1/a', true, 'an address'],
  ['s3://bucket/key', 's3://bucket/key/a', true, 'another scheme'],
  ['file:///srv/data', 'file:///srv/data/a', true, 'a file'],
  // URLs that are not
  [API, API, false, 'the base is not below itself'],
  [API, 'https://example.org/v1/', false, 'nor with a slash'],
  [API, 'https://example.org/v1?a', false, 'nor with a query'],
  ['https://example.org', 'https://example.org/', false, 'nor a host below itself'],
  [API, 'https://example.org/v10/a', false, 'only the text begins alike'],
  [API, 'https://example.org/v1.1/a', false, 'another version'],
  [API, 'http://example.org/v1/a', false, 'another scheme'],
  [API, 'HTTPS://example.org/v1/a', false, 'not in normal form'],
  [API, 'https://EXAMPLE.org/v1/a', false, 'not in normal form'],
  [API, 'https://example.org/V1/a', false, 'paths have a case'],
  [API, 'https://example.org./v1/a', false, 'a dot at the end of the host makes another name'],
  [API, 'https://example.org:443/v1/a', false, 'a port that is written although it is the usual one'],
  [API, 'https://example.org:8443/v1/a', false, 'another port'],
  [API, 'https://example.org@evil.example/v1/a', false, 'the host is what follows the @'],
  [API, 'https://user:secret@example.org/v1/a', false, 'a user changes who asks'],
  [API, 'https://example.org.evil.example/v1/a', false, 'another host'],
  [API, 'https://evil.example/https://example.org/v1/a', false, 'the base in a path'],
  [API, 'https://exаmple.org/v1/a', false, 'a Cyrillic letter in the host'],
  [API, 'https://example\u200b.org/v1/a', false, 'an invisible space in the host'],
  [API, 'https://example\u3002org/v1/a', false, 'a full stop that becomes a dot'],
  [API, 'https:\\\\example.org\\v1\\a', false, 'backslashes, which browsers take for slashes'],
  [API, 'https://example.org\\@evil.example/v1/a', false, 'a backslash before an @'],
  [API, 'https:/example.org/v1/a', false, 'one slash'],
  [API, 'https:example.org/v1/a', false, 'no slash'],
  [API, '//example.org/v1/a', false, 'without a scheme'],
  [API, '/v1/a', false, 'a path'],
  [API, 'https://example.org/v1/../admin', false, 'it leads out'],
  [API, 'https://example.org/v1/a/../b', false, 'it leads back; a server may not follow'],
  [API, 'https://example.org/v1/./a', false, 'servers differ about a dot'],
  [API, 'https://example.org/v1//a', false, 'servers differ about two slashes'],
  [API, 'https://example.org//v1/a', false, 'also before the base'],
  [API, 'https://example.org/v1/%20..;/admin', false, 'an escaped space, two dots and parameters'],
  [API, 'https://example.org/v1/%20..%20;x=/admin', false, 'two spaces'],
  [API, 'https://example.org/v1/.;x/a', false, 'one dot and parameters'],
  [API, 'https://example.org/v1/a;x=1', true, 'a name with parameters'],
  [API, 'https://example.org/v1/%2e%2e/admin', false, 'escaped dots are dots'],
  [API, 'https://example.org/v1/%2E%2E/admin', false, 'in upper case as well'],
  [API, 'https://example.org/v1/.%2e/admin', false, 'also one of two'],
  [API, 'https://example.org/v1/%252e%252e/admin', false, 'escaped twice: resolved twice by some'],
  [API, 'https://example.org/v1/..%2fadmin', false, 'an escaped slash'],
  [API, 'https://example.org/v1%2fa', false, 'an escaped slash before the base ends'],
  [API, 'https://example.org/v1/..%5cadmin', false, 'an escaped backslash'],
  [API, 'https://example.org/v1/a%00', false, 'an escaped end of text'],
  [
    API,
    'https://example.org/v1/%c0%ae%c0%ae/admin',
    false,
    'a dot in a form that is not allowed, and resolved by some',
  ],
  [API, 'https://example.org/v1/%ef%bc%8e%ef%bc%8e/admin', false, 'escaped full-width dots'],
  [API, 'https://example.org/v1/%e2%80%ae', false, 'an escaped invisible character'],
  [API, 'https://example.org/v1/%', false, 'half an escape'],
  [API, 'https://example.org/v1/%zz', false, 'no escape'],
  [API, 'https://example.org/v1/..;/admin', false, 'some servers drop what follows a semicolon'],
  [API, 'https://example.org/v1/.\t./admin', false, 'browsers drop a tab'],
  [API, 'https://example.org/v1/a\n', false, 'and a line break'],
  [API, ' https://example.org/v1/a', false, 'and a space at the start'],
  [API, 'https://example.org/v1/a ', false, 'and at the end'],
  ['s3://bucket/key', 's3://Bucket/key/a', false, 'the case of another scheme'],
  ['file:///srv/data', 'file://host/srv/data/a', false, 'another host'],
  ['file:///srv/data', '/srv/data/a', false, 'a path is not a URL'],
]

test(`W2 under: ${cases.length} paths and URLs, each with its reason`, () => {
  expect(cases.length).toBeGreaterThanOrEqual(80)
  const wrong = cases.filter(
    ([under, value, expected]) => meetsConstraints({ at: value }, [{ field: 'at', under }]) !== expected,
  )
  expect(wrong).toEqual([])
})

test('W2 the second matcher agrees about them', () => {
  expect(cases.filter(([base, value, expected]) => isUnderByForce(value, base) !== expected)).toEqual([])
})

test('W2 what is under a URL as text is under it for the URL parser as well', () => {
  for (const [base, value, isUnder] of cases) {
    if (!isUnder || !base.includes('://')) continue
    const [one, other] = [new URL(base), new URL(value)]
    expect([other.protocol, other.host, other.username]).toEqual([one.protocol, one.host, ''])
    expect(other.pathname.startsWith(one.pathname), value).toBe(true)
  }
})

test('W2 a base that could be read in two ways is refused where it is written', () => {
  const bases = [
    ...[
      '/srv/../data',
      '../data',
      '\\srv',
      '//host/share',
      '/srv/%2e',
      '/srv/data.',
      '/srv/\u202ea',
      'src/..',
      '~\u0000',
    ],
    ...['https://EXAMPLE.org', 'HTTPS://example.org', 'https://example.org:443', 'https://user@example.org'],
    ...[
      'https://müller.de',
      'https://example.org/v1/..',
      'https://example.org/a//b',
      'https://example.org/v1?a',
      'https://',
    ],
  ]
  for (const under of bases) {
    const refuse = () => meetsConstraints({}, [{ field: 'at', under }])
    expect(refuse, under).toThrow('where[0].under must be a path or URL in its normal form')
    try {
      refuse()
    } catch (error) {
      expect(isCountersignError(error) && [error.code, error.data]).toEqual([
        'invalid-option',
        { option: 'where[0].under' },
      ])
    }
  }
})
