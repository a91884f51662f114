/**
 * The options of the site's search. The site gets its functions as text, so each is complete in itself: it uses nothing from outside.
 * `test/docs/search-tasks.json` has what a newcomer types, and the pages that have to be found.
 */
export const search = {
  options: {
    /** Words, and names with hyphens also as a whole: an error code finds its row, not every page with "not" and "found". */
    tokenize: (text: string): string[] => [
      ...text.split(/[\n\r\p{Z}\p{P}]+/u),
      ...(text.match(/[a-z]+(?:-[a-z]+)+/gi) ?? []),
    ],
    /** Words without meaning match nothing, and a word matches its other forms: "denied" finds "denial" and "deny". */
    processTerm: (term: string): string | null => {
      const word = term.toLowerCase().replace(/['’]s$/, '')
      const empty =
        /^(?:a|an|and|are|as|at|be|before|by|can|do|does|for|from|how|i|if|in|into|is|it|its|me|my|not|of|on|or|so|that|the|then|this|to|want|was|what|when|with|you|your|)$/
      if (empty.test(word)) return null
      const same = new Map([
        ['approval', 'approve'],
        ['approvals', 'approve'],
        ['approving', 'approve'],
        ['args', 'argument'],
        ['chat', 'conversation'],
        ['chats', 'conversation'],
        ['denial', 'deny'],
        ['postgresql', 'postgres'],
        ['save', 'store'],
      ])
      const known = same.get(word)
      if (known !== undefined || word.length < 5 || word.includes('-')) return known ?? word
      return word
        .replace(/(?:ies|ied|ying)$/, 'y')
        .replace(/(?:als?|ed|ings?|es|s)$/, '')
        .replace(/e$/, '')
    },
  },
  searchOptions: {
    /** Whoever types `approval-not-found` looks for that, and not for its three words. */
    tokenize: (text: string): string[] => {
      const codes = text.match(/[a-z]+(?:-[a-z]+){2,}/gi) ?? []
      const rest = codes.reduce((all, code) => all.replace(code, ' '), text)
      return [...codes, ...rest.split(/[\n\r\p{Z}\p{P}]+/u)]
    },
    prefix: (term: string): boolean => term.length > 2,
    fuzzy: (term: string): number => (term.length > 5 && !term.includes('-') ? 0.15 : 0),
    boost: { title: 5, titles: 3, text: 1 },
    /** Guides come before API pages, unless somebody types the name of what an API page is about. */
    boostDocument: (id: string, term: string): number => {
      if (id.includes('/api/')) return id.toLowerCase().endsWith(`/${term}`) && term.length > 6 ? 0.4 : 0.02
      // measurements and tables that commands write, and the inside of the project
      return /\/(?:performance|interop-matrix|architecture|releases)(?:#|$)/.test(id) ? 0.3 : 1
    },
  },
}
