// An agent of LangChain as its documentation has them: mails need a person's yes. LangGraph's server loads it from this file; the model and
// the tools are the test's, which puts them where both can find them.
import { createAgent, humanInTheLoopMiddleware } from 'langchain'

export const agent = () =>
  createAgent({
    ...globalThis[Symbol.for('countersign.test.langgraph')],
    middleware: [humanInTheLoopMiddleware({ interruptOn: { send_mail: true } })],
  })
