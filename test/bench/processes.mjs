import { fork } from 'node:child_process'

/**
 * A script in a process of its own that answers one question at a time. `ask(question)` resolves with its answer; `stop()` ends it.
 * A page has one library: whoever is measured shares neither heap nor compiled code with the others.
 */
export function startProcess(script, args = [], execArgv = []) {
  const child = fork(script, args, { env: { ...process.env, NODE_ENV: 'production' }, execArgv })
  let open
  const settle = (how) => {
    const { resolve, reject } = open ?? {}
    open = undefined
    how({ resolve: resolve ?? (() => {}), reject: reject ?? (() => {}) })
  }
  child.on('message', ({ error, answer }) =>
    settle(({ resolve, reject }) => (error === undefined ? resolve(answer) : reject(new Error(error)))),
  )
  child.on('error', (error) => settle(({ reject }) => reject(error)))
  child.on('exit', (code) =>
    settle(({ reject }) => reject(new Error(`${script} ${args.join(' ')} ended with ${code}`))),
  )
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        open = { resolve, reject }
        child.send(question)
      }),
    stop: () => child.kill(),
  }
}

/** A young generation so large that nothing is collected unless it is asked for. */
export const uncollected = ['--expose-gc', '--min-semi-space-size=512', '--max-semi-space-size=512']

/** What a script in a process of its own sends, which then ends. */
export function runOnce(script, args, execArgv = []) {
  return new Promise((resolve, reject) => {
    const child = fork(script, args, { env: { ...process.env, NODE_ENV: 'production' }, execArgv })
    let sent
    child.on('message', (message) => {
      sent = message
    })
    child.on('error', reject)
    child.on('exit', (code) =>
      sent ? resolve(sent.answer) : reject(new Error(`${script} ${args.join(' ')} ended with ${code}`)),
    )
  })
}

/** The other side: answers each question in turn. */
export function answerQuestions(answer) {
  process.on('message', async (question) => {
    try {
      process.send({ answer: await answer(question) })
    } catch (error) {
      process.send({ error: error instanceof Error ? error.message : String(error) })
    }
  })
}
