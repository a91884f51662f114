/**
 * The options of the site's search. The site gets its functions as text, so each is complete in itself: it uses nothing from outside.
 * `test/docs/search-tasks.json` has what a newcomer types, and the pages that have to be found.
 */
export const search = {
  options: {
    /**
     * Words. Names with hyphens and names such as `useChat` are also indexed as a whole, so that an error code finds its row, not every
     * page with "found". The `=` keeps whole names apart from words: "approve" must not find `approvalHistory`.
     */
    tokenize: (text: string): string[] => [
      ...text.split(/[\n\r\p{Z}\p{P}]+/u),
      ...(text.match(/[a-z]+(?:-[a-z]+)+/gi) ?? []).map((name) => `=${name}`),
      ...(text.match(/\b[A-Za-z]+[a-z][A-Z]\w*/g) ?? []).map((name) => `=${name}`),
    ],
    /** Words without meaning match nothing, and a word matches its other forms: "denied" finds "denial" and "deny". */
    processTerm: (term: string): string | null => {
      const word = term.toLowerCase().replace(/['’]s$/, '')
      const empty =
        /^(?:a|an|and|are|as|at|be|before|by|can|do|does|for|from|how|i|if|in|into|is|it|its|me|my|not|of|on|or|show|so|that|the|then|this|to|want|was|what|when|with|you|your|)$/
      if (empty.test(word)) return null
      const same = new Map([
        ['approval', 'approve'],
        ['approvals', 'approve'],
        ['approving', 'approve'],
        ['args', 'argument'],
        ['auth', 'authentication'],
        ['authenticate', 'authentication'],
        ['chat', 'conversation'],
        ['chats', 'conversation'],
        ['denial', 'deny'],
        ['login', 'authentication'],
        ['multiple', 'several'],
        ['postgresql', 'postgres'],
        ['save', 'store'],
        ['several', 'several'],
      ])
      const known = same.get(word)
      if (known !== undefined || word.length < 5 || /[-=]/.test(word)) return known ?? word
      return word
        .replace(/(?:ies|ied|ying)$/, 'y')
        .replace(/(?:als?|ed|ings?|es|s)$/, '')
        .replace(/e$/, '')
    },
  },
  searchOptions: {
    /** Whoever types `approval-not-found` or `useChat` looks for that, and not for its parts. */
    tokenize: (text: string): string[] => {
      const codes = text.match(/[a-z]+(?:-[a-z]+)+/gi) ?? []
      const names = text.match(/\b[A-Za-z]+[a-z][A-Z]\w*/g) ?? []
      // two words with a hyphen may also be just that: "client-tool" finds "client tool"
      const rest = text.replace(/[a-z]+(?:-[a-z]+){2,}/gi, ' ')
      return [...[...codes, ...names].map((name) => `=${name}`), ...rest.split(/[\n\r\p{Z}\p{P}]+/u)]
    },
    /** The last word may be half typed. */
    prefix: (term: string, at: number, terms: string[]): boolean =>
      term.length > (at === terms.length - 1 ? 2 : 4) && !/^=[^-]*$/.test(term),
    /** Only in longer words: "redact" is not a slip for "React". */
    fuzzy: (term: string): number => (term.length > 6 && !/[-=]/.test(term) ? 0.15 : 0),
    boost: { title: 5, titles: 3, text: 1 },
    /** Guides come before API pages, except before the page of a name that somebody types. */
    boostDocument: (id: string, term: string, stored?: Record<string, unknown>): number => {
      // whoever types an error code wants its row, wherever else the code is named
      if (/^=.*-/.test(term) && /\/errors(?:#|$)/.test(id)) return 20
      const isPage = Array.isArray(stored?.titles) && stored.titles.length === 0
      if (id.includes('/api/')) {
        const [, name = ''] = /\/([^/#]+)(?:#|$)/.exec(id) ?? []
        return isPage && term === `=${name.toLowerCase()}` ? 2 : 0.02
      }
      // measurements and tables that commands write, and the inside of the project
      if (/\/(?:performance|interop-matrix|architecture|releases)(?:#|$)/.test(id)) return 0.3
      return isPage ? 1.6 : 1
    },
  },
}
