/**
 * From now on the second click of a double click chooses no answer: the page has moved on under the pointer, and the request that is there
 * now was not read.
 */
export function ignoreSecondClicks(): void {
  const ignore = (event: MouseEvent) => {
    const isChoice = event.target instanceof Element && event.target.closest('.approval-choices') !== null
    if (event.detail < 2 || !isChoice) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('click', ignore, { capture: true })
}
