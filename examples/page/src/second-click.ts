/**
 * From now on the second click of a double click answers nothing: the page may have moved on under the
 * pointer to a request that the user has not read.
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
