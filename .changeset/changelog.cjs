const { version } = require('../packages/core/package.json')

/** Nobody had an earlier version that the changes could be told from. */
const isFirst = version === '0.0.0'

/**
 * Writes each change once, without the id of its commit. All packages share one version, so their updates of one another are left out.
 * The first release is one line, in the place of those updates: it is the only text that is asked for once for each package.
 */
module.exports = {
  getReleaseLine: async ({ summary }) => (isFirst ? '' : `- ${summary.replaceAll('\n', '\n  ')}`),
  getDependencyReleaseLine: async () => (isFirst ? '- First release.' : ''),
}
