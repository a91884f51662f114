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
