import { PerformanceObserver } from 'node:perf_hooks'

/** More than one collection: what a first one finalises, a second one frees. */
export async function settle() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Collects, and watches from then on. What it gives throws if there was a collection meanwhile: then the bytes in use say nothing. */
export async function watchCollections() {
  let collections = 0
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().length
  })
  await settle()
  observer.observe({ entryTypes: ['gc'] })
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    observer.disconnect()
    if (collections > 0)
      throw new Error('there was a collection meanwhile: the young generation is too small')
  }
}
