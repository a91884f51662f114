import { lutimes, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openWorkspace, type Workspace } from './workspace.js'

interface Sample {
  path: string
  daysOld: number
  lines: readonly string[]
}

const samples: readonly Sample[] = [
  {
    path: 'notes.txt',
    daysOld: 1,
    lines: [
      'Harbour office, notes of the week',
      '',
      '- The tide gauge at pier 4 reports every 10 minutes again.',
      '- Import of the berth list: 3 rows rejected, see logs/import-debug.log.',
      '- Ask Mara whether the budget line for the crane survey is still open.',
      '- Old logs fill the disk. Tidy up, then tell the team.',
    ],
  },
  {
    path: 'todo.md',
    daysOld: 2,
    lines: [
      '# To do',
      '',
      '- [x] Renew the harbour radio licence',
      '- [ ] Crane survey: choose a date',
      '- [ ] Tidy up the logs',
    ],
  },
  {
    path: 'reports/quarter-2.md',
    daysOld: 92,
    lines: [
      '# Second quarter',
      '',
      'Arrivals: 412 vessels, 31 more than a year before.',
      'Delays: 18, most of them weather. Crane 2 stood still for four days.',
      'Budget: 96 % of plan.',
    ],
  },
  {
    path: 'reports/quarter-3.md',
    daysOld: 5,
    lines: [
      '# Third quarter (draft)',
      '',
      'Arrivals: 447 vessels. The new berth list saves about an hour a day.',
      'Delays: 9. No crane stood still.',
      'Budget: 101 % of plan, because of the crane survey.',
    ],
  },
  {
    path: 'reports/budget.csv',
    daysOld: 12,
    lines: [
      'item,planned,spent',
      'dredging,120000,118400',
      'crane survey,15000,21200',
      'radio licence,900,900',
      'lighting,8000,7650',
    ],
  },
  {
    path: 'logs/app.log',
    daysOld: 0,
    lines: log('app', 0, ['started', 'tide gauge pier 4: ok', 'berth list: 88 rows']),
  },
  {
    path: 'logs/app.1.log',
    daysOld: 6,
    lines: log('app', 6, ['started', 'tide gauge pier 4: ok', 'stopped']),
  },
  {
    path: 'logs/app.2.log',
    daysOld: 21,
    lines: log('app', 21, ['started', 'tide gauge pier 4: timeout', 'stopped']),
  },
  { path: 'logs/app.3.log', daysOld: 35, lines: log('app', 35, ['started', 'disk 91 % full', 'stopped']) },
  {
    path: 'logs/import-debug.log',
    daysOld: 48,
    lines: log('import', 48, [
      'row 17 rejected: berth "7b" is unknown',
      'row 40 rejected: length missing',
      'row 41 rejected: length missing',
      'keep until the audit is done (Mara)',
    ]),
  },
]

function log(source: string, daysOld: number, events: readonly string[]): string[] {
  return events.map((event, index) => `day -${daysOld} 0${6 + index}:00 ${source} ${event}`)
}

const contentOf = (sample: Sample): string => `${sample.lines.join('\n')}\n`

/** Creates the folder and fills it with the sample files. A folder that is not empty stays as it is. */
export async function fillOnce(root: string, now: number): Promise<void> {
  await mkdir(root, { recursive: true })
  if ((await readdir(root)).length === 0) await restoreSamples(root, now)
}

/** A sample file that is missing or was changed. */
export interface ChangedSample {
  path: string
  content: string
  daysOld: number
  /** Its content now; undefined if it is missing, or too large to be read. */
  now: string | undefined
}

/** The sample files that {@link restoreSamples} would write. */
export async function changedSamples(workspace: Workspace): Promise<ChangedSample[]> {
  const looked = samples.map(async (sample) => ({
    ...{ path: sample.path, daysOld: sample.daysOld, content: contentOf(sample) },
    now: await workspace.read(sample.path).catch(() => undefined),
  }))
  return (await Promise.all(looked)).filter(({ content, now }) => content !== now)
}

/**
 * Restores every sample file that is missing or was changed, and touches nothing else. Resolves to the restored paths.
 *
 * @throws WorkspaceError if a symbolic link or a folder has the path of a sample.
 */
export async function restoreSamples(root: string, now: number): Promise<string[]> {
  // as the other tools do, so that no symbolic link leads out of the folder
  const workspace = openWorkspace(root)
  const changed = await changedSamples(workspace)
  for (const { path, content, daysOld } of changed) {
    await workspace.write(path, content)
    const modified = new Date(now - daysOld * 24 * 60 * 60 * 1000)
    await lutimes(join(root, path), modified, modified)
  }
  return changed.map(({ path }) => path)
}
