/** Suggested first messages. */
export const examples: readonly string[] = [
  'Tidy up the logs, then mail the team a summary',
  'Read notes.txt',
  'Search for crane',
  'Write a list of all files to index.md',
  'Rename todo.md to tasks.md',
  'Help',
]
