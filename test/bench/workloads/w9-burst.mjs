import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findChromium } from '../../../scripts/chromium.mjs'
import { contenders } from '../contenders/index.mjs'
import { textDeltas } from '../material.mjs'
import { bundlePage } from '../pages/bundle.mjs'
import { number } from '../report.mjs'
import { frame, textScenario } from '../scenarios.mjs'

const scales = {
  full: { buffered: 2000, inPage: 10_000 },
  quick: { buffered: 2000, inPage: 10_000 },
  tiny: { buffered: 20, inPage: 0 },
}

export async function run({ scale, log }) {
  const { buffered, inPage } = scales[scale]
  const tables = [await told(buffered)]
  if (inPage > 0) {
    log('  in Chromium')
    tables.push(await inChromium(inPage))
  }
  return tables
}

/** How often a page is told of deltas that have all arrived already. */
async function told(count) {
  const deltas = textDeltas(count)
  const scenario = {
    ...textScenario(deltas),
    agui: [{ batches: [textScenario(deltas).agui[0].batches.flat()] }],
  }
  const measured = []
  for (const { id, name, load } of contenders) {
    const contender = await load()
    const session = contender.text(scenario)
    await session.run({ start() {} })
    const result = session.result()
    if (result.text !== scenario.text) throw new Error(`${name}: the text differs`)
    measured.push({
      contender: id,
      name,
      published: result.published,
      notified: result.notified,
    })
    session.close?.()
  }
  return {
    id: 'w9',
    title: `W9 A burst of ${count.toLocaleString('en')} buffered deltas: notifications`,
    columns: ['', 'notifications with more text'],
    rows: measured.map(({ name, published }) => [name, String(published)]),
    facts: { measured },
  }
}

async function inChromium(count) {
  const { chromium } = await import('playwright-core')
  const folder = await mkdtemp(join(tmpdir(), 'bench-chromium-'))
  const script = await readFile(await bundlePage('burst.js', join(folder, 'burst.js')), 'utf8')
  const deltas = textDeltas(count)
  const events = [
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
    ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta })),
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
  ]
  const body = events.map(frame).join('')
  const length = deltas.join('').length
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  const context = await chromium.launchPersistentContext(join(folder, 'profile'), {
    executablePath: findChromium(),
    headless: true,
    args,
  })
  try {
    const measured = []
    for (const hidden of [false, true]) {
      const page = await context.newPage()
      await page.route('**/*', (route) =>
        route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>burst</title>' }),
      )
      await page.goto('http://localhost/')
      await page.addScriptTag({ content: script, type: 'module' })
      await page.waitForFunction(() => 'burst' in window)
      // The first time the engine has yet to learn what it runs; that one counts as well.
      for (const name of ['cold', 'warm']) {
        const result = await page.evaluate((given) => window.burst(given), { body, hidden })
        if (result.length !== length)
          throw new Error(`in Chromium ${result.length} of ${length} characters are shown`)
        measured.push({ name: `${hidden ? 'hidden' : 'visible'} page, ${name}`, hidden, ...result })
      }
      await page.close()
    }
    return {
      id: 'w9-page',
      title: `W9 ${count.toLocaleString('en')} buffered events in Chromium`,
      columns: ['', 'ms', 'notifications', 'longest pause of the page, ms', 'tasks over 50 ms'],
      rows: measured.map((one) => [
        one.name,
        number(one.ms),
        String(one.notified),
        number(one.longest),
        String(one.long.length),
      ]),
      facts: { measured, version: context.browser()?.version() },
      notes: [
        'One response whose body is available at once; the listener writes the text to the page. A hidden page gets no animation frames. Only Countersign is measured here.',
      ],
    }
  } finally {
    await context.close()
    await rm(folder, { recursive: true, force: true })
  }
}
