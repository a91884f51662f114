// Imported first: exits with a clear message if this Node is too old for the rest.
const needed = [20, 19]
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  console.error(
    `Countersign needs Node ${needed.join('.')} or newer, and this is Node ${process.versions.node}. Install a newer one from nodejs.org or with your version manager, then run this again.`,
  )
  process.exit(1)
}
