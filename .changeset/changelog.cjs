/** Writes each change once, without the id of its commit. All packages share one version, so their updates of one another are left out. */
module.exports = {
  getReleaseLine: async ({ summary }) => `- ${summary.replaceAll('\n', '\n  ')}`,
  getDependencyReleaseLine: async () => '',
}
