/**
 * The options of the site's search. The site gets its functions as text, so each is complete in itself: it uses nothing from outside.
 * `test/docs/search-tasks.json` has what a newcomer types, and the page that has to be found.
 */
export const search = {
  options: {
    /** Words without meaning match nothing, and a word matches its other forms: "denied" finds "denial" and "deny". */
    processTerm: (term: string): string | null => {
      const word = term.toLowerCase().replace(/['’]s$/, '')
      const empty =
        /^(a|an|and|are|as|at|be|before|by|can|do|does|for|from|how|i|if|in|into|is|it|its|me|my|of|on|or|so|that|the|then|this|to|want|was|what|when|with|you|your)$/
      if (empty.test(word)) return null
      const synonyms: Readonly<Record<string, string>> = { postgresql: 'postgres', args: 'argument', denial: 'deny' }
      const known = synonyms[word]
      if (known !== undefined) return known
      if (word.length < 5) return word
      return word
        .replace(/(?:ies|ied|ying)$/, 'y')
        .replace(/(?:als?|ed|ings?|es|s)$/, '')
        .replace(/e$/, '')
    },
  },
  searchOptions: {
    prefix: (term: string): boolean => term.length > 2,
    fuzzy: (term: string): number => (term.length > 5 ? 0.15 : 0),
    boost: { title: 5, titles: 3, text: 1 },
    /** A guide explains, and an API page is for those who know the name: that one still comes first if nothing else has the word. */
    boostDocument: (id: string): number => {
      if (id.includes('/api/')) return 0.02
      // measurements and tables that commands write, and the inside of the project
      return /\/(?:performance|interop-matrix|architecture|releases)(?:#|$)/.test(id) ? 0.3 : 1
    },
  },
}
