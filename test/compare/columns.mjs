// The servers that are compared: each as its documentation sets it up, and again with options that its documentation has.
const titles = {
  countersign: 'Countersign',
  'ai-sdk': 'AI SDK',
  tanstack: 'TanStack AI',
  langgraph: 'LangGraph',
}

export const columns = [false, true].flatMap((option) =>
  Object.entries(titles).map(([peer, title]) => ({ key: option ? `${peer}+` : peer, peer, option, title })),
)
