// Links inside of the built site that lead nowhere. VitePress checks only some of them, and none that the configuration rewrites.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns `page: link` for each link in the pages of `site` to a page or file that is not there, or with `/../` in its address. */
export function deadLinks(site) {
  const pages = readdirSync(site, { recursive: true }).filter((file) => file.endsWith('.html'))
  return pages.flatMap((page) => {
    const html = readFileSync(join(site, page), 'utf8')
    const links = new Set([...html.matchAll(/<a\b[^>]*?\shref="([^"#?]+)/g)].map(([, link]) => link))
    return [...links].filter((link) => isDead(site, page, link)).map((link) => `${page}: ${link}`)
  })
}

function isDead(site, page, link) {
  if (/^[a-z]+:/.test(link)) return link.includes('/../')
  const { pathname } = new URL(link, `http://site/${page}`)
  const path = join(site, decodeURIComponent(pathname))
  const files = pathname.endsWith('/') ? [join(path, 'index.html')] : [`${path}.html`, path]
  return !files.some((file) => existsSync(file))
}
