import type { PageName } from './demo.js'
import { accessing } from './page-script/accessibility.js'
import { pageBench } from './page-script/bench.js'
import { answeringInTheThread } from './page-script/cards.js'
import { choosing } from './page-script/chats.js'
import { conversing } from './page-script/conversing.js'
import { answeringOneByOne } from './page-script/dialog.js'
import { keepingOneByOne } from './page-script/dialog-limits.js'
import { revoking } from './page-script/grants.js'
import { keepingInView } from './page-script/in-view.js'
import { looking } from './page-script/looks.js'
import { previewing } from './page-script/previews.js'
import { readingProse } from './page-script/prose.js'
import { facingSeveral } from './page-script/several.js'

/**
 * What `npm test` runs, on React's page only: each way to answer, a chain of answers, edits, text that grows, the keyboard, arguments that
 * look like markup, the reading gate, and failures on the way. `npm run test:full` runs all specs on every page.
 */
export const onePage: readonly RegExp[] = [
  /^S3\.100 /,
  /^an edit: what the person wrote/,
  /^a streaming answer grows in place/,
  /^S3\.98 keyboard alone/,
  /^S3\.99 arguments are text/,
  /^F40 the dialog edits/,
  /^F39 .*a long card/,
  /^F40 S3\.9[01] /,
  /^F41 nothing covers/,
  /^F42 /,
  /^F43 the focus/,
  /^F43 a request that expires/,
  /^S3\.92 /,
  /^S3\.93 a double click answers one/,
  /^S3\.9[45] /,
  /^S3\.96 after a reload/,
  /^S3\.98 the dialog/,
  /^S3\.99 in the dialog/,
  /^S3\.124 a standing approval/,
  /^V14 (?!.* light,)/,
  /^"Deny all"/,
  /^a screen reader/,
  /^approving while other requests/,
  /^a failed request/,
  /^markdown: /,
  /^messages queue/,
  /^speaking while/,
  /^stop ends/,
  /^a long argument/,
]

/** The script that an example page passes, in Chromium, or some of its specs. Call it at the top of a test file. */
export function describePage(name: PageName, specs: readonly RegExp[] = [/^/]): void {
  const bench = pageBench(name, specs)
  answeringInTheThread(bench)
  answeringOneByOne(bench)
  keepingOneByOne(bench)
  revoking(bench)
  conversing(bench)
  choosing(bench)
  looking(bench)
  previewing(bench)
  readingProse(bench)
  facingSeveral(bench)
  keepingInView(bench)
  accessing(bench)
  bench.end()
}
