import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { type Machine, startMachine } from '../machines/processes.js'
import { startProxy } from '../machines/proxy.js'
import { randomFrom } from '../random.js'
import { type RoundsConfig, wordsOf } from './config.js'
import type { Shown } from './page.js'

export interface RoundsOptions {
  /** The built server and the page's script. */
  readonly script: string
  readonly page: string
  readonly postgres: string
  /** For the log of the processes. */
  readonly folder: string
  readonly browser: Browser
  readonly rounds: number
  readonly seed: number
}

export interface RoundsReport {
  /** What was lost, doubled or shown differently, in words. */
  readonly wrong: readonly string[]
  readonly words: number
  readonly ran: number
  readonly interrupted: number
  readonly kills: number
  readonly retries: number
}

const WORDS = 40
const PACE = 4

/** Milliseconds after which a round that makes no progress has failed. */
const PATIENCE = 60_000

/**
 * Two browsers on one conversation, two processes behind a proxy that takes turns, one PostgreSQL. Each round: the first browser asks and
 * reloads while the reply streams; the second one answers the approval request; the process that streams is killed; both go on.
 */
export async function playRounds(options: RoundsOptions): Promise<RoundsReport> {
  const { script, postgres, folder, browser, rounds, seed } = options
  const log = join(folder, 'log')
  const page = join(folder, 'page.js')
  await Promise.all([writeFile(log, ''), writeFile(page, options.page)])
  const prefix = `r${randomUUID().slice(0, 8)}_`
  const config: RoundsConfig = { log, page, postgres, prefix, lease: 1500, words: WORDS, pace: PACE }
  const start = () => startMachine(script, config)
  const machines: Machine[] = await Promise.all([start(), start()])
  const proxy = await startProxy(() => machines.map(({ url }) => url))
  const windows = await Promise.all([browser.newContext(), browser.newContext()])
  const random = randomFrom(seed)
  const report = { wrong: [] as string[], words: 0, ran: 0, interrupted: 0, kills: 0, retries: 0 }

  /** Kills the process that streamed last, and starts another in its place. */
  async function killStreaming(): Promise<void> {
    const last = (await lines(log)).findLast((line) => line.startsWith('stream '))
    const pid = Number(last?.split(' ')[1])
    const at = machines.findIndex((machine) => machine.pid === pid)
    const machine = machines[at]
    if (!machine) return
    await machine.kill()
    report.kills++
    machines[at] = await start()
  }

  async function playRound(round: number): Promise<void> {
    const url = `${proxy.url}/?thread=round-${round}`
    const job = `job-${round}`
    const isApproved = random() < 0.8
    const [reloadAt, killAt] = [
      1 + Math.floor(random() * (WORDS - 2)),
      Math.floor(random() * (WORDS + 5)) - 4,
    ]
    const [first, second] = await Promise.all(windows.map((window) => window.newPage()))
    if (!first || !second) throw new Error('Two pages were to be opened.')
    await first.goto(url)
    await first.evaluate((text) => roundsPage.send(text), `ask ${job}`)
    await words(first, `ask ${job}`, reloadAt)
    await first.reload()
    await Promise.all([first, second.goto(url).then(() => second)].map(isAsked))
    await second.evaluate((approved) => roundsPage.answer(approved), isApproved)
    // Below zero: before the reply begins, so perhaps while the tool runs.
    if (killAt > 0) await words(second, `ask ${job} after`, killAt)
    await killStreaming()
    await goOn([first, second])
    await first.evaluate(() => roundsPage.send('more'))
    await goOn([first, second])
    const fresh = await windows[0]?.newPage()
    if (!fresh) throw new Error('A third page was to be opened.')
    await fresh.goto(url)
    await goOn([fresh])
    const shown = await Promise.all(
      [first, second, fresh].map((one) => one.evaluate(() => roundsPage.shown())),
    )
    await judge(round, job, isApproved, shown)
    await Promise.all([first.close(), second.close(), fresh.close()])
  }

  /** Tries again, as a user would, until every page shows the end of the conversation. */
  async function goOn(pages: readonly Page[]): Promise<void> {
    for (const until = Date.now() + PATIENCE; ; ) {
      const shown = await Promise.all(pages.map((one) => one.evaluate(() => roundsPage.shown())))
      const isSame = new Set(shown.map(({ texts }) => JSON.stringify(texts))).size === 1
      const isOver = shown.every(({ status, queued, pending, calls, texts }) => {
        const isAnswered = texts.at(-1)?.startsWith('assistant: ')
        const isOpen = pending.length > 0 || Object.values(calls).includes('approval-responded')
        return status === 'ready' && queued === 0 && !isOpen && isAnswered
      })
      if (isSame && isOver) return
      if (Date.now() > until) throw new Error(`nothing goes on: ${JSON.stringify(shown.map(brief))}`)
      for (const [at, { status, calls }] of shown.entries()) {
        if (
          status !== 'error' &&
          !(status === 'ready' && Object.values(calls).includes('approval-responded'))
        )
          continue
        report.retries++
        await pages[at]?.evaluate(() => roundsPage.retry())
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async function judge(
    round: number,
    job: string,
    isApproved: boolean,
    shown: readonly Shown[],
  ): Promise<void> {
    const wrong = (what: string) => report.wrong.push(`round ${round}: ${what}`)
    const all = await lines(log)
    const starts = all.filter((line) => line === `start ${job}`).length
    const ends = all.filter((line) => line === `end ${job}`).length
    const [page] = shown
    if (shown.some(({ texts }) => JSON.stringify(texts) !== JSON.stringify(page?.texts)))
      wrong(`the pages differ: ${JSON.stringify(shown.map(brief))}`)
    const state = page?.calls[`call_${job}`]
    if (starts > 1) wrong(`the tool ran ${starts} times`)
    if (starts > 0 && !isApproved) wrong('the tool ran though it was denied')
    if (!isApproved && state !== 'denied') wrong(`a denied call ended as ${state}`)
    if (isApproved && state === 'complete' && ends !== 1) wrong('a complete call did not run to its end')
    if (isApproved && state !== 'complete' && state !== 'interrupted')
      wrong(`an approved call ended as ${state}`)
    if (state === 'interrupted') report.interrupted++
    report.ran += starts
    const said = page?.texts.filter((text) => text.startsWith('assistant: ')).join('') ?? ''
    for (const reply of [`ask ${job}`, `ask ${job} after`, 'more']) {
      const expected = wordsOf(reply, WORDS)
      const whole = said.split(expected.join('')).length - 1
      if (whole !== 1)
        wrong(`the reply to "${reply}" is there ${whole} times: ${JSON.stringify(page && brief(page))}`)
      report.words += expected.length
    }
  }

  try {
    for (let round = 0; round < rounds; round++)
      await playRound(round).catch((error: unknown) => report.wrong.push(`round ${round}: ${error}`))
    return report
  } finally {
    await Promise.all(windows.map((window) => window.close()))
    await proxy.close()
    await Promise.all(machines.map((machine) => machine.kill()))
  }
}

/** What a page shows, with each run of words as its first and last one. */
function brief({ texts, ...rest }: Shown) {
  const ends = (text: string) => text.replace(/(\S+\.)(\d+) (?:\1\d+ )*\1(\d+)/g, '$1$2-$3')
  return { ...rest, texts: texts.map(ends) }
}

async function lines(log: string): Promise<string[]> {
  return (await readFile(log, 'utf8')).split('\n')
}

/** Resolves once the page shows the first `count` words of a reply, or more. */
async function words(page: Page, reply: string, count: number): Promise<void> {
  const last = wordsOf(reply, count).at(-1) ?? ''
  await page.waitForFunction((word) => roundsPage.shown().texts.join('').includes(word), last, {
    timeout: PATIENCE,
  })
}

async function isAsked(page: Page | Promise<Page>): Promise<void> {
  await (await page).waitForFunction(() => roundsPage.shown().pending.length === 1, undefined, {
    timeout: PATIENCE,
  })
}
