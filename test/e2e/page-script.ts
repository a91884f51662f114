import type { PageName } from './demo.js'
import { pageBench } from './page-script/bench.js'
import { answeringInTheThread } from './page-script/cards.js'
import { conversing } from './page-script/conversing.js'
import { answeringOneByOne } from './page-script/dialog.js'
import { keepingOneByOne } from './page-script/dialog-limits.js'
import { revoking } from './page-script/grants.js'
import { looking } from './page-script/looks.js'

/** The script that the example page of every framework passes, in Chromium. Call it at the top of a test file. */
export function describePage(name: PageName): void {
  const bench = pageBench(name)
  answeringInTheThread(bench)
  answeringOneByOne(bench)
  keepingOneByOne(bench)
  revoking(bench)
  conversing(bench)
  looking(bench)
}
