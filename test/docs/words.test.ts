import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { proseOf, writtenPages } from './markdown.js'

/** Words that this project once used in a sense of its own, and what a reader understands instead. */
const privateWords: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\b(?:LocalActs?|personActs|person acts?)\b/i, 'command, event'],
  [/\b(?:Message|Part)Cells?\b|\bcells? of (?:a|the) (?:message|part|conversation)\b/i, 'draft'],
  [/\b(?:owed|untold)\b|\btold together\b|\barrives together\b/i, 'pending, dirty, notified, batched'],
  [/\bseal(?:s|ed|ing)?\b|\bwithOwn\b|\bfields of ours\b/i, 'preserved fields, Countersign metadata'],
  [/\b(?:turnTo|adrift|openRest|tellKnown)\b/, 'switchTo, detached, openReplay'],
  [/\bgoOn\b|\bgo(?:es)? on by itself\b/, 'continue'],
  [/\bwaiting rooms?\b|\bcreateWaitingRoom\b/i, 'pending results'],
  [/\b(?:isLeftHere|rejectedAs|movedOn)\b/, 'canRunOnClient, settledKind, superseded'],
  [/\bfates?\b/i, 'outcome'],
  [/\bsteps? of the machine\b/i, 'event'],
  [
    /\b(?:person's|user's|their) (?:yes|no)\b|\bsa(?:y|ys|id) (?:yes|no)\b|\bafter (?:a|the) (?:yes|no)\b/i,
    'approval, denial',
  ],
  [/\b(?:be|been) taken back\b/i, 'irreversible, revoked'],
  [/\bsa(?:y|ys) nothing of (?:itself|themselves)\b/i, 'unannotated'],
  [/\bin earnest\b/i, 'in production'],
  [
    /\b(?:the|each|every|an open|its) questions?\b(?! (?:is|of|whether|who|what|how|why)\b)/i,
    'approval request',
  ],
  [/\bthe person\b/i, 'the user'],
  [/\b(?:is|are) not to be\b/i, 'must not, may not'],
]

/** What a text says in private words: each with its replacement. */
function problemsOf(text: string): readonly string[] {
  return privateWords.flatMap(([words, instead]) => {
    const [found] = words.exec(text) ?? []
    return found === undefined ? [] : [`"${found}" -> ${instead}`]
  })
}

test('the list knows the sentences that it was made for', () => {
  const before = 'What arrives together is told together; not every delta is owed to the person who said yes.'
  expect(problemsOf(before).map((problem) => problem.split(' ->')[0])).toEqual([
    '"arrives together"',
    '"said yes"',
    '"the person"',
  ])
  expect(problemsOf('The text that is held is not to be told.')).toEqual([
    '"is not to be" -> must not, may not',
  ])
  expect(problemsOf('The person answers the question.')).toHaveLength(2)
  expect(problemsOf('Batches events from one network read into a single notification.')).toEqual([])
})

test('no comment, name or message in the sources uses the private words of the project', () => {
  const packages = join(import.meta.dirname, '../../packages')
  const files = readdirSync(packages)
    .filter((name) => existsSync(join(packages, name, 'src')))
    .flatMap((name) =>
      readdirSync(join(packages, name, 'src'), { recursive: true }).map((file) => `${name}/src/${file}`),
    )
    .filter((file) => /\.(?:tsx?|svelte)$/.test(file))
  expect(files.length).toBeGreaterThan(100)
  const lines = files.flatMap((file) =>
    readFileSync(join(packages, file), 'utf8')
      .split('\n')
      .map((line) => ({ file, line })),
  )
  const found = lines.flatMap(({ file, line }) =>
    problemsOf(line).map((problem) => `${file}: ${problem} in: ${line.trim()}`),
  )
  expect(found).toEqual([])
})

test('no page uses the private words of the project', () => {
  const found = writtenPages().flatMap((page) =>
    proseOf(page)
      .split(/\n{2,}|\n(?=[|-])/)
      .map((paragraph) => paragraph.replace(/\s+/g, ' '))
      .flatMap((text) => problemsOf(text).map((problem) => `${page}: ${problem} in: ${text.slice(0, 160)}`)),
  )
  expect(found).toEqual([])
})
